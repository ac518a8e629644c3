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

package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/restraint"
)

// For ten minutes the owner of a job lets others lose quota for it, and then lets the job give up. However it does so,
// others lose something five times at most, because the pauses double from 30 seconds on.
func TestAPreemptorThatGivesUpPreemptsRarely(t *testing.T) {
	const (
		asks  = "unit a1 queue=qa quota=a request=cpu:4 active=true gangs= job=a1:a1"
		queue = "queue qa reclaim=any"
	)
	for name, c := range map[string]struct{ before, trick, undo string }{
		"it asks for more than its min":          {trick: asks + " request=cpu:7", undo: asks},
		"it asks for more than others borrow":    {before: "quota b min=cpu:6", trick: asks + " request=cpu:6", undo: asks},
		"it is put on hold":                      {trick: asks + " active=false", undo: asks},
		"it is deleted":                          {trick: "delete-unit a1", undo: asks},
		"its gang group is not complete":         {trick: asks + " gangs=x,y/x", undo: asks},
		"its queue preempts nobody":              {trick: "queue qa", undo: queue},
		"it is in a queue that preempts nobody":  {trick: asks + " queue=qb", undo: asks},
		"it asks for what its quota has not":     {trick: asks + " request=cpu:4,gpu:1", undo: asks},
		"it is of a quota that promises it less": {trick: asks + " quota=c", undo: asks},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStory(t)
			st.out = &strings.Builder{}
			lines := func(lines ...string) (said string) {
				st.out.Reset()
				for _, line := range lines {
					if line != "" {
						st.line(line)
					}
				}
				return st.out.String()
			}
			lines("quota root limit=cpu:8 used=none", "quota a parent=root min=cpu:6 max=cpu:8",
				"quota b parent=root min=cpu:0 max=cpu:8", "quota c parent=root min=cpu:1 max=cpu:8", c.before, queue, "queue qb")
			for _, name := range []string{"b1", "b2"} {
				lines("job "+name+" uid="+name, "unit "+name+" queue=qb quota=b request=cpu:4 job="+name+":"+name)
			}
			lines("decide confirm", "job a1 uid=a1")
			evictions := 0
			for range 60 {
				lines("tick 4s")
				if said := lines(asks, "decide confirm", "decide confirm"); !strings.Contains(said, "Reclaimed") {
					continue
				}
				evictions++
				lines(c.trick, "decide confirm", "decide confirm", "unit a1 active=false", "decide confirm",
					"tick 6s", "decide confirm", c.undo)
			}
			require.GreaterOrEqual(t, evictions, 2)
			require.LessOrEqual(t, evictions, 5)
		})
	}
}

// A unit that gives up because it fits soon, or because pods of others stay, preempts again at once.
func TestAPreemptorWithoutFaultPreemptsAgain(t *testing.T) {
	bare := []string{"delete-pod b1 p", "quota b used=cpu:4", "quota d used=cpu:4"} // these pods use the quota of victims
	deleted := append(bare, "job b2 uid=b2 gone", "delete-unit b2")                 // its pods are on their way out
	ended := []string{"delete-pod b2 p", "unit b2 phase=Succeed"}
	for name, c := range map[string]struct {
		then   []string
		paused bool
	}{
		"it fits when those are gone that go anyway": {then: deleted},
		"it fits, and leaves before it holds that": {
			then: slices.Concat(deleted, []string{"decide confirm", "delete-unit a1"}), paused: true,
		},
		"pods of the victim stay": {then: append(ended, "tick 2m", "quota b used=cpu:4", "quota d used=cpu:4")},
		"others use what it freed": {
			then: append(ended, "delete-pod b1 p", "quota b used=none", "quota d used=cpu:8"), paused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStory(t)
			st.out = &strings.Builder{}
			for _, line := range append([]string{
				"quota root limit=cpu:8 used=none", "quota a parent=root min=cpu:4 max=cpu:8",
				"quota b parent=root max=cpu:8", "quota d parent=root max=cpu:8 used=none",
				"queue qa reclaim=any", "queue qb", "queue qc priority=1",
				"job b1 uid=b1", "unit b1 queue=qb quota=b request=cpu:4 job=b1:b1",
				"job b2 uid=b2", "unit b2 queue=qb quota=b request=cpu:4 job=b2:b2",
				"decide confirm", "pod b1 p request=cpu:4 assigned", "pod b2 p request=cpu:4 assigned",
				"quota b used=cpu:8", "quota root used=cpu:8",
				"job a1 uid=a1", "unit a1 queue=qa quota=a request=cpu:4 job=a1:a1", "decide confirm", "decide confirm",
			}, c.then...) {
				st.line(line)
			}
			require.Contains(t, st.out.String(), "evict b1")
			for range 3 {
				st.line("tick 1s")
				st.line("decide confirm")
			}
			said := st.out.String()
			require.Contains(t, said, "take for a1: \n", said)
			_, times := st.s.roster.preemptions.vain.Until(st.now, restraint.Beneficiary{Namespace: "ns", Quota: "a"})
			require.Equal(t, c.paused, times > 0, said)
		})
	}
}
