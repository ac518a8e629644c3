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

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine"
)

// TestPlans: a handful here; test/sim runs as many as are asked for.
func TestPlans(t *testing.T) {
	for seed := uint64(1); seed <= 25; seed++ {
		plan := Generate(seed, DefaultProfile())
		if r := Run(plan, Options{}); len(r.Violations) > 0 {
			t.Errorf("seed %d: %v\n%s", seed, r.Violations[0], Shrink(plan, Options{}))
		}
	}
}

// TestSameSeedSameLog: byte by byte (I13).
func TestSameSeedSameLog(t *testing.T) {
	for seed := uint64(100); seed < 106; seed++ {
		plan := Generate(seed, DefaultProfile())
		first, second := Run(plan, Options{Log: true}), Run(plan, Options{Log: true})
		require.NotEmpty(t, first.Log)
		require.Equal(t, first.Log, second.Log)
	}
}

func TestPlansAreRead(t *testing.T) {
	plan := Generate(7, DefaultProfile())
	again, err := Parse(plan.String())
	require.NoError(t, err)
	require.Equal(t, plan.String(), again.String())
	require.Equal(t, Run(plan, Options{}).Hash, Run(again, Options{}).Hash)
	_, err = Parse("plan seed=1\n1s dance j0\n")
	require.ErrorContains(t, err, "no such verb")
}

// generous quotas say that there is twice as much as there is.
type generous struct{ engine.Quotas }

func (g generous) Observe(names []string) (found []admission.Quota, gone []string) {
	found, gone = g.Quotas.Observe(names)
	for i := range found {
		found[i].Limit, found[i].Max = twice(found[i].Limit), twice(found[i].Max)
	}
	return found, gone
}

func twice(l resources.List) resources.List { return l.Add(l) }

// finds runs seeds until one of them violates the invariant.
func finds(t *testing.T, invariant string, profile Profile, o Options) {
	t.Helper()
	others := map[string]int{}
	for seed := uint64(1); seed <= 60; seed++ {
		for _, v := range Run(Generate(seed, profile), o).Violations {
			if v.Invariant == invariant {
				return
			}
			others[v.Invariant]++
		}
	}
	t.Errorf("no violation of %s in 60 seeds, but %v", invariant, others)
}

// TestBrokenParts: what keeps an invariant is taken away, and the simulator says so.
func TestBrokenParts(t *testing.T) {
	t.Run("an adapter that lies", func(t *testing.T) {
		finds(t, "I1", DefaultProfile(), Options{variants: &variants{
			Quotas: func(q engine.Quotas) engine.Quotas { return generous{q} },
		}})
	})
	t.Run("patches without a precondition", func(t *testing.T) {
		finds(t, "I3", DefaultProfile(), Options{variants: &variants{NoPrecondition: true}})
	})
}

// TestWriteDeadline: what keeps two leaders from giving away the same quota is that no request of the first is under way
// any more when the second one lists. With a deadline beyond that, the simulator finds it out.
func TestWriteDeadline(t *testing.T) {
	profile := FailoverProfile()
	profile.Deadline = 20 * time.Second
	finds(t, "I1", profile, Options{})
}

func ExampleStep_String() {
	fmt.Println(Step{At: 1500 * time.Millisecond, Verb: "job", On: "j1", Args: map[string]string{"quota": "a", "cpu": "500"}})
	// Output: 1.5s job j1 cpu=500 quota=a
}

// TestCrashes: every write of a short life fails in every way; test/sim does the same with the whole corpus.
func TestCrashes(t *testing.T) {
	scenarios, err := Scenarios()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(scenarios), 10)
	for _, s := range scenarios {
		if s.Name != "one-job" && s.Name != "deactivated" {
			continue
		}
		without := Run(s.Plan, Options{})
		require.Empty(t, without.Violations, s.Name)
		met := map[string]int{}
		for _, c := range Crashes(s.Plan) {
			r := s.RunCrash(c, without)
			require.Empty(t, r.Violations, "%s, %s", s.Name, c)
			met[c.Fault] += r.Faults[c.Fault]
		}
		require.Len(t, met, 3)
		require.Greater(t, met[string(faultCrashAfter)], 5)
	}
}
