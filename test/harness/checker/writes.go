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

package checker

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
)

// Writers are the users that may write.
type Writers struct{ Scheduler, Controller string }

// garbageCollector deletes units after their jobs, if the controller does not come first.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// Writes is what an audit log says of who released jobs and bound pods, and how often (I3).
type Writes struct {
	Bindings, Dequeues, Resumptions int
	// Torn are lines that the end of the API server cut off.
	Torn       int
	Violations []Violation
}

// ReadWrites counts successful bindings of each pod, writes of Dequeued for each attempt of each unit, and resumptions
// of each job.
func ReadWrites(log io.Reader, by Writers) (w *Writes, err error) {
	w = &Writes{}
	counts := map[string]int{}
	w.Torn, err = auditlog.Read(log, func(e *auditlog.Event) {
		if e.Succeeded() {
			w.count(e, by, counts)
		}
	})
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if counts[what] > 1 {
			w.Violations = append(w.Violations,
				Violation{WrittenTwice, what, fmt.Sprintf("%d times, as the audit log says", counts[what])})
		}
	}
	return w, err
}

func (w *Writes) count(e *auditlog.Event, by Writers, counts map[string]int) {
	users := []string{by.Scheduler}
	switch phase, suspend := e.RequestObject.Status.Phase, e.RequestObject.Spec.Suspend; {
	case e.ObjectRef.Subresource == "binding":
		w.Bindings++
		counts["binding of "+e.Object()]++
	case phase != nil && *phase == "Dequeued":
		w.Dequeues++
		counts[fmt.Sprintf("dequeue of %s in attempt %d", e.Object(), e.RequestObject.Status.Attempts)]++
	case e.ObjectRef.Resource == "jobs" && suspend != nil:
		if !*suspend {
			w.Resumptions++
			counts["resumption of "+e.Object()]++
		}
		users = []string{by.Controller}
	case e.ObjectRef.Resource == "queueunits" && e.Verb != "patch":
		users = []string{by.Controller, garbageCollector}
	default:
		return
	}
	if !slices.Contains(users, e.User.Username) {
		w.Violations = append(w.Violations, Violation{ForeignWrite, e.Object(), fmt.Sprintf(
			"%s of %s by %s", e.Verb, e.Kind(), e.User.Username)})
	}
}
