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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestPlans: a handful here; test/sim runs as many as are asked for.
func TestPlans(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		plan := Generate(seed, DefaultProfile())
		if r := Run(plan, Options{}); len(r.Violations) > 0 {
			t.Errorf("seed %d: %v\n%s", seed, r.Violations[0], Shrink(plan, Options{}))
		}
	}
}

// TestSameSeedSameLog: byte by byte (I13).
func TestSameSeedSameLog(t *testing.T) {
	for seed := uint64(100); seed < 103; seed++ {
		plan := Generate(seed, DefaultProfile())
		require.NotEmpty(t, Run(plan, Options{Log: true}).Log)
		require.Empty(t, difference(plan, Options{}))
	}
}

func TestPlansAreRead(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		plan := Generate(seed, DefaultProfile())
		again, err := Parse(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan, again, "seed %d", seed)
	}
	plan := Generate(7, DefaultProfile())
	again, err := Parse(plan.String())
	require.NoError(t, err)
	require.Equal(t, Run(plan, Options{}).Hash, Run(again, Options{}).Hash)
	_, err = Parse("plan seed=1\n1s dance j0\n")
	require.ErrorContains(t, err, "no such verb")
}

// TestShrink leaves the steps that matter.
func TestShrink(t *testing.T) {
	plan := planIn(t, "two-leaders.plan")
	plan.Steps = append(plan.Steps, Step{At: 50 * time.Second, Verb: "compact"},
		Step{At: 51 * time.Second, Verb: "crash", On: "controller-0"})
	shrunk := Shrink(plan, Options{})
	require.Equal(t, "I1", Run(shrunk, Options{}).Violations[0].Invariant)
	for _, s := range shrunk.Steps {
		require.False(t, s.Verb == "compact" || s.On == "controller-0", "%s", s)
	}
}

// TestRefusals: the API of the simulator refuses what the real one does.
func TestRefusals(t *testing.T) {
	w := newWorld(Plan{Seed: 1, Lease: ShippedLease}, Options{})
	job := w.createObject(byUser, jobKind, team, "j", nil, nil, map[string]any{"spec": map[string]any{
		"suspend": true, "completions": int64(1), "template": map[string]any{"spec": map[string]any{"priority": int64(1)}},
	}})
	patch := func(data string, status bool) error {
		_, err := w.api.patch(byUser, jobKind, job.key, []byte(data), status)
		return err
	}
	require.True(t, apierrors.IsConflict(patch(`{"metadata":{"resourceVersion":"1"}}`, false)))
	require.True(t, apierrors.IsConflict(patch(`{"metadata":{"uid":"other"}}`, false)))
	require.True(t, apierrors.IsInvalid(patch(`{"spec":{"completions":2}}`, false)))
	require.True(t, apierrors.IsInvalid(patch(`{"spec":{"template":{"spec":{"priority":2}}}}`, false)))
	require.NoError(t, patch(`{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`, false))
	require.NoError(t, patch(`{"status":{"startTime":"2026-01-01T00:00:00Z"}}`, true))
	require.True(t, apierrors.IsInvalid(patch(`{"spec":{"template":{"metadata":{"labels":{"a":"c"}}}}}`, false)))
	version := w.api.version
	require.NoError(t, patch(`{"spec":{"suspend":true},"status":{"startTime":null}}`, false),
		"the status belongs to its own endpoint")
	require.Equal(t, version, w.api.version, "a write that changes nothing makes no version")
	_, err := w.api.create(byUser, jobKind, job.u)
	require.True(t, apierrors.IsAlreadyExists(err))
	require.True(t, apierrors.IsConflict(w.api.delete(byUser, jobKind, job.key, "other")))
	require.NoError(t, w.api.delete(byUser, jobKind, job.key, job.uid()))
	require.True(t, apierrors.IsNotFound(patch(`{}`, false)))
}

func planIn(t *testing.T, file string) Plan {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	plan, err := Parse(string(text))
	require.NoError(t, err)
	return plan
}

// TestTwoLeaders: no request of the first leader is in flight when the second one lists, so two leaders cannot give
// away the same quota. With kube-scheduler's own timing one is, and the simulator finds that.
func TestTwoLeaders(t *testing.T) {
	plan := planIn(t, "two-leaders.plan")
	require.Equal(t, StockLease, plan.Lease)
	found := Run(plan, Options{}).Violations
	require.NotEmpty(t, found)
	require.Equal(t, "I1", found[0].Invariant)
	plan.Lease = ShippedLease
	require.Empty(t, Run(plan, Options{}).Violations)
	for seed := uint64(1); seed <= 3; seed++ {
		require.Empty(t, Run(Generate(seed, FailoverProfile()), Options{}).Violations, "seed %d", seed)
	}
}

// TestKeptPlans runs plans that once failed. test/sim prints a failure as such a file. The first line "# want I6" marks
// a violation that is still open, and "# want miscount" one that is Koordinator's.
func TestKeptPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.plan")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".plan"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			plan, err := Parse(string(text))
			require.NoError(t, err)
			want, _ := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "# want ")
			r := Run(plan, Options{})
			found := r.Violations
			switch _, open := strings.CutPrefix(string(text), "# want "); {
			case open && want == "miscount":
				require.Empty(t, found)
				require.NotEmpty(t, r.Miscounts, "it is solved: the file belongs here without its first line")
			case open:
				require.NotEmpty(t, found, "it is solved: the file belongs here without its first line")
				require.Equal(t, want, found[0].Invariant)
			default:
				require.Empty(t, found)
				require.Empty(t, r.Miscounts)
			}
		})
	}
}

func ExampleStep_String() {
	fmt.Println(Step{
		At: 1500 * time.Millisecond, Verb: "job", On: "j1", Args: map[string]string{"quota": "a", "cpu": "500"},
	})
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
