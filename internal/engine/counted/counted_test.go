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

package counted

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var names = []string{"cpu", "gpu", "memory"}

// pod is one that is assigned, and charged to a quota.
type pod struct {
	quota string
	uses  resources.List
}

// Each pod is counted as ElasticQuota does it: masked by the max of its own quota, then added to every level above.
func TestAtCountsAsKoordinatorDoes(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		quotas := []admission.Quota{{Name: "root", Max: amounts(t, "total")}}
		for _, name := range []string{"a", "b", "c", "d"} {
			parent := quotas[rapid.IntRange(0, len(quotas)-1).Draw(t, "parent")].Name
			quotas = append(quotas, admission.Quota{Name: name, Parent: parent, Max: amounts(t, "max")})
		}
		want, all := map[string]resources.List{}, map[string]resources.List{}
		for range rapid.IntRange(0, 6).Draw(t, "pods") {
			leaf := quotas[rapid.IntRange(1, len(quotas)-1).Draw(t, "quota")]
			p := pod{leaf.Name, amounts(t, "uses")}
			for at := leaf; ; {
				want[at.Name] = want[at.Name].Add(p.uses.Mask(leaf.Max))
				all[at.Name] = all[at.Name].Add(p.uses)
				if at.Parent == "" {
					break
				}
				at = named(quotas, at.Parent)
			}
		}
		shuffled := rapid.Permutation(quotas).Draw(t, "order")
		got := At(shuffled, func(level string) resources.List { return all[level] })
		for _, q := range quotas {
			require.True(t, want[q.Name].Equal(got[q.Name]), "%s: want %s, got %s", q.Name,
				want[q.Name].Key(), got[q.Name].Key())
		}
	})
}

func named(quotas []admission.Quota, name string) admission.Quota {
	for _, q := range quotas {
		if q.Name == name {
			return q
		}
	}
	return admission.Quota{}
}

// amounts of some resources: a max may name others than its parent, or none.
func amounts(t *rapid.T, label string) resources.List {
	m := map[string]int64{}
	for _, name := range names {
		if rapid.Bool().Draw(t, label+" names "+name) {
			m[name] = rapid.Int64Range(1, 9).Draw(t, name)
		}
	}
	return resources.FromMap(m)
}
