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

package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
)

// The borrowers fill the cluster, and the owners ask for their whole min.
func TestReclaimScenarioIsWhole(t *testing.T) {
	cores := map[string]struct{ min, max int }{}
	for _, text := range strings.Split(string(reclaimScenario), "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Min, Max struct {
					CPU int `json:"cpu,string"`
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object))
		if object.Kind == "ElasticQuota" {
			cores[object.Metadata.Name] = struct{ min, max int }{object.Spec.Min.CPU, object.Spec.Max.CPU}
		}
	}
	asked, last := map[string]int{}, ""
	jobs, err := reclaim().Jobs()
	require.NoError(t, err)
	for _, job := range jobs {
		last = job.Object.GetLabels()[v1alpha1.LabelQuotaName]
		asked[last] += job.Pods
	}
	require.Equal(t, "research", last, "owners come last")
	require.Equal(t, cores["company"].max, asked["platform"])
	require.Equal(t, cores["company"].max, 8*reclaim().Nodes)
	require.Equal(t, cores["research"].min, asked["research"])
}

// lived is the story of a job of the case at an index, that ran as often as it lost its quota and once more.
func lived(t *Stories, name string, at int, lost ...string) *story {
	s := t.of(name)
	s.of, s.name, s.sent = &t.cases[at], "company/"+name, storyStart
	s.complete, s.lost, s.attempts = true, lost, int64(len(lost)+1)
	for i := range s.of.pods {
		s.bound[fmt.Sprint(i)] = storyStart.Add(time.Duration(i) * time.Second)
	}
	return s
}

func TestVerdictOfReclaim(t *testing.T) {
	for _, tc := range []struct {
		name      string
		suspended int
		change    func(owner, victim, other *story)
		want      string
	}{
		{"as it should be", 6, func(_, _, _ *story) {}, ""},
		{"too many", 7, func(_, _, _ *story) {}, "7 borrowers were suspended, and not 6"},
		{"nothing taken", 0, func(_, _, _ *story) {}, "0 borrowers were suspended, and not 6"},
		{"not resumed", 6, func(_, victim, _ *story) { victim.attempts, victim.complete = 1, false },
			"1 of 2 cases without what they promise\n5 of 6 suspended borrowers were resumed"},
		{"suspended twice", 6, func(_, victim, _ *story) { victim.lost = []string{"Reclaimed", "Reclaimed"} },
			"1 of 2 cases without what they promise\n5 of 6 suspended borrowers were resumed"},
		{"for another reason", 6, func(_, victim, _ *story) { victim.lost = []string{"Unschedulable"} }, "1 of 2 cases"},
		{"owner without pods", 6, func(owner, _, _ *story) { delete(owner.bound, "7") }, "1 of 2 cases"},
		{"owner late", 6, func(owner, _, _ *story) { owner.sent = storyStart.Add(-4 * time.Second) }, "1 of 2 cases"},
		{"borrower failed", 6, func(_, _, other *story) { other.complete, other.failed = false, true }, "1 of 2 cases"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stories := reclaim().Stories()
			var victim, other *story
			for i := range borrowers {
				if i < tc.suspended {
					victim = lived(stories, fmt.Sprintf("borrower-%d", i), 0, "Reclaimed")
				} else {
					other = lived(stories, fmt.Sprintf("borrower-%d", i), 0)
				}
			}
			var owner *story
			for i := range owners {
				owner = lived(stories, fmt.Sprintf("owner-%d", i), 1)
			}
			tc.change(owner, victim, other)
			v := stories.Verdict(tc.want == "")
			text := strings.Join(v.Lines(screen.Screen{}), "\n")
			if tc.want == "" {
				require.NoError(t, v.Err())
				require.Contains(t, text, "7.0s, 7.0s, 7.0s: from")
				require.Contains(t, text, "6 of 12 suspended, the fewest that free what the owner needs are 6; 6 resumed")
				require.Contains(t, text, "jobs ended once  yes")
				require.NotContains(t, text, "BROKEN")
				return
			}
			require.ErrorContains(t, v.Err(), tc.want)
			require.Contains(t, text, "jobs ended once  no")
			require.Contains(t, text, "BROKEN")
		})
	}
}

// Owners come when all borrowers are on nodes, and keep what they get.
func TestTurn(t *testing.T) {
	stories := reclaim().Stories()
	borrower, owner := &stories.cases[0], &stories.cases[1]
	require.True(t, stories.Turn(borrower))
	s := lived(stories, "borrower-0", 0)
	require.True(t, stories.Turn(borrower))
	require.False(t, stories.Turn(owner))
	for i := range borrowerPods {
		s.alive[fmt.Sprint(i)] = true
	}
	require.True(t, stories.Turn(owner))
	lived(stories, "owner-0", 1)
	require.True(t, stories.Turn(owner), "an owner waits for no owner")
	require.True(t, stories.MayLose("borrower-0"))
	require.False(t, stories.MayLose("owner-0"))
}
