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

package output

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A list is one document with the same fields, however many units it has: programs read it.
func TestAListIsOneDocument(t *testing.T) {
	for _, n := range []int{0, 1, 1001} {
		for _, format := range []string{"json", "yaml"} {
			units := make([]v1alpha1.QueueUnit, n)
			for i := range units {
				units[i].Name = fmt.Sprint(i)
			}
			out := &bytes.Buffer{}
			require.NoError(t, Units(out, format, units))
			var list struct {
				Kind  string                `json:"kind"`
				Items *[]v1alpha1.QueueUnit `json:"items"`
			}
			require.NoError(t, yaml.Unmarshal(out.Bytes(), &list))
			require.NotContains(t, out.String(), "\n---")
			require.Equal(t, "List", list.Kind, "%d units as %s", n, format)
			require.NotNil(t, list.Items, "%d units as %s", n, format)
			require.Len(t, *list.Items, n)
			for i := range *list.Items {
				require.Equal(t, "QueueUnit", (*list.Items)[i].Kind)
			}
		}
	}
}
