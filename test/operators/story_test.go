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

package operators_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLife leads one job of each kind through everything that a queue does to it.
func TestLife(t *testing.T) {
	c := sharedCluster(t)
	for i := range jobKinds {
		kind := &jobKinds[i]
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			l := c.create(t, kind, kind.name+"-life", true)

			// It waits, and says so.
			waiting := l.await("is suspended", hasCondition("Suspended", "True"))
			require.Never(t, func() bool { return len(l.pods()) > 0 }, second, pace, "a job that waits has no pods")
			require.Empty(t, startTime(waiting))
			l.saveState("suspended-at-creation", l.current())

			// It runs.
			l.suspend(false)
			pods := l.awaitRunning()
			running := l.awaitStatus()
			require.Equal(t, kind.startTime, startTime(running) != "")
			l.saveState("running", running)
			l.savePods()
			var sets []string
			for _, pod := range pods {
				require.Equal(t, l.name, pod.Labels[kind.jobLabel])
				require.Equal(t, kind.owners, l.owners(&pod))
				sets = append(sets, pod.Labels[kind.setLabel])
			}
			slices.Sort(sets)
			require.Equal(t, kind.sets, slices.Compact(sets))

			// It is stopped: its pods go, and it says that it waits again.
			l.suspend(true)
			stopped := l.await("is suspended again", hasCondition("Suspended", "True"))
			l.awaitNoPods()
			require.Equal(t, startTime(running), startTime(stopped), "the time of the first start stays while it waits")
			if kind.running != nil {
				l.await("does not run any more", func(job *unstructured.Unstructured) bool { return !kind.running(job) })
			}
			l.saveState("suspended-while-running", l.current())
			require.Never(t, func() bool { return len(l.pods()) > 0 }, second, pace)

			// It runs again, with new pods, and ends.
			l.suspend(false)
			for _, pod := range l.awaitRunning() {
				for _, before := range pods {
					require.NotEqual(t, before.UID, pod.UID)
				}
			}
			resumed := l.awaitStatus()
			l.saveState("resumed", resumed)
			l.endPods(true)
			l.await("succeeds", hasCondition(kind.succeeded, "True"))
			l.saveState("succeeded", l.current())
		})
	}
}

// awaitStatus returns the job with a status that says that it runs, where its kind has one, and is not suspended.
func (l *life) awaitStatus() *unstructured.Unstructured {
	l.t.Helper()
	return l.await("runs", func(job *unstructured.Unstructured) bool {
		return condition(job, "Suspended") != "True" && (l.kind.running == nil || l.kind.running(job))
	})
}

// TestFailure creates a job of each kind that does not wait, and has its pods fail.
func TestFailure(t *testing.T) {
	c := sharedCluster(t)
	for i := range jobKinds {
		kind := &jobKinds[i]
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			l := c.create(t, kind, kind.name+"-failure", false)
			created := l.current()
			if kind.running != nil { // else nobody writes a status yet
				created = l.await("was seen by its operator", func(job *unstructured.Unstructured) bool {
					status, _, _ := unstructured.NestedMap(job.Object, "status")
					return len(status) > 0
				})
			}
			l.saveState("created", created)
			l.awaitRunning()
			l.awaitStatus()
			l.endPods(false)
			failed := l.await("fails", hasCondition("Failed", "True"))
			require.NotEqual(t, "True", condition(failed, kind.succeeded))
			l.saveState("failed", l.current())
		})
	}
}
