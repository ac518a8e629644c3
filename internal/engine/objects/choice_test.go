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

package objects

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func TestChoiceOf(t *testing.T) {
	q := &Queue{Selectors: map[string]map[string]string{"a": {"card": "a"}}}
	require.Equal(t, &v1alpha1.QuotaChoice{Name: "a", First: "a", NodeSelector: map[string]string{"card": "a"}},
		ChoiceOf(&unit.Unit{Quota: "a"}, q))
	require.Nil(t, ChoiceOf(&unit.Unit{Quota: "b"}, q))
	require.Nil(t, ChoiceOf(&unit.Unit{Quota: "a"}, nil), "the queue is gone")
	require.Equal(t, &v1alpha1.QuotaChoice{Name: "b", First: "a"},
		ChoiceOf(&unit.Unit{Quota: "b", MovesTo: "a", Chosen: true}, q))
}

// A merge patch adds to a map: what the object said of nodes before has to go.
func TestChoicePatch(t *testing.T) {
	choice := func(name, key string) *v1alpha1.QuotaChoice {
		return &v1alpha1.QuotaChoice{Name: name, First: "a", NodeSelector: map[string]string{key: "x"}}
	}
	_, some := ChoicePatch(nil, nil)
	require.False(t, some)
	for want, c := range map[string][2]*v1alpha1.QuotaChoice{
		`null`: {choice("a", "k"), nil},
		`{"first":"a","name":"b","nodeSelector":{"k":"x"}}`:          {nil, choice("b", "k")},
		`{"first":"a","name":"c","nodeSelector":{"k":null,"l":"x"}}`: {choice("b", "k"), choice("c", "l")},
	} {
		patch, some := ChoicePatch(c[0], c[1])
		require.True(t, some)
		text, err := json.Marshal(patch)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text))
	}
}

func TestQuotasOfAQueue(t *testing.T) {
	w := &WireQueue{}
	require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"q"},
		"spec":{"quotas":[{"name":"a","nodeSelector":{"card":"a"}},{"name":"b"}]}}`), w))
	q := DecodeQueue(w, "Priority", queue.Timeouts{})
	require.Equal(t, []string{"a", "b"}, q.Spec.Lists)
	require.Nil(t, q.Spec.Quotas, "it accepts all")
	require.Equal(t, map[string]map[string]string{"a": {"card": "a"}}, q.Selectors)
	w.Metadata.Labels = map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController}
	require.Equal(t, []string{"q", "a", "b"}, DecodeQueue(w, "Priority", queue.Timeouts{}).Spec.Quotas)
}
