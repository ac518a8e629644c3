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

package managedjobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// The label of a namespace goes before the configuration, and a value that is not known is no value.
func TestObserves(t *testing.T) {
	for text, want := range map[string]map[string]bool{
		"":              {"": false, "Observe": true, "Manage": false, "observe": false},
		"mode: Manage":  {"": false, "Observe": true, "Manage": false, "observe": false},
		"mode: Observe": {"": true, "Observe": true, "Manage": false, "manage": true},
	} {
		m, err := Parse(text)
		require.NoError(t, err)
		p, err := NewPredicate(m)
		require.NoError(t, err)
		for label, observed := range want {
			require.Equal(t, observed, Observes(p, map[string]string{v1alpha1.LabelMode: label}), "%s %s", text, label)
		}
	}
	_, err := Parse("mode: Watch")
	require.ErrorContains(t, err, `"Watch" is none of Manage and Observe`)
	plain, managed, observed := Default(), Jobs{Mode: ModeManage}, Jobs{Mode: ModeObserve}
	require.Equal(t, plain.Hash(), managed.Hash())
	require.NotEqual(t, plain.Hash(), observed.Hash())
}
