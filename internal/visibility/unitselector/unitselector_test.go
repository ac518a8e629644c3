/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package unitselector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

func TestRead(t *testing.T) {
	s, err := Read(nil, nil)
	require.NoError(t, err)
	require.Nil(t, s.States)
	require.Nil(t, s.Labels)
	s, err = Read(labels.SelectorFromSet(labels.Set{"a": "b"}),
		fields.ParseSelectorOrDie("job=train,queue=shared,quota==red,state!=Succeeded,state!=Failed,state!=Pending"))
	require.NoError(t, err)
	require.Equal(t, []string{"train", "shared", "red"}, []string{s.Job, s.Queue, s.Quota})
	require.Equal(t, "a=b", s.Labels.String())
	require.Equal(t, []unitstate.State{"Backoff", "Deactivated", "Reserved", "Admitted", "Running"}, s.States)
	s, err = Read(nil, fields.ParseSelectorOrDie("state=Running,state=Pending"))
	require.NoError(t, err)
	require.NotNil(t, s.States, "no unit is in two states")
	require.Empty(t, s.States)
}

func TestReadRefuses(t *testing.T) {
	for _, selector := range []string{"job!=train", "queue=", "state=Waiting", "phase=Enqueued"} {
		_, err := Read(nil, fields.ParseSelectorOrDie(selector))
		require.ErrorContains(t, err, "fieldSelector", selector)
	}
	many, err := labels.Parse(strings.Repeat("a,", mostRequirements) + "a")
	require.NoError(t, err)
	_, err = Read(many, nil)
	require.ErrorContains(t, err, "9 requirements")
	_, _, err = Field("phase", "Enqueued")
	require.ErrorContains(t, err, `"phase"`)
	_, _, err = Field("state", "Pending")
	require.NoError(t, err)
}
