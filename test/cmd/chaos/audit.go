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

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// audited is what the audit log says.
type audited struct {
	Bindings, Dequeues, Resumptions int
	// Torn are lines that the end of the API server cut off.
	Torn       int
	violations []checker.Violation
}

// The rules of the audit log.
const (
	boundTwice   checker.Rule = "BoundTwice" // or released or resumed twice
	foreignWrite checker.Rule = "ForeignWrite"
)

// garbageCollector deletes units after their jobs, if the controller does not come first.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// readAudit counts successful bindings of each pod, writes of Dequeued for each attempt of each unit, and resumptions
// of each job.
func readAudit(log io.Reader) (a *audited, err error) {
	a = &audited{}
	counts := map[string]int{}
	a.Torn, err = auditlog.Read(log, func(e *auditlog.Event) {
		if e.Succeeded() {
			a.count(e, counts)
		}
	})
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if counts[what] > 1 {
			a.violations = append(a.violations, checker.Violation{
				Rule: boundTwice, Subject: what, Message: fmt.Sprintf("%d times, as the audit log says", counts[what]),
			})
		}
	}
	return a, err
}

func (a *audited) count(e *auditlog.Event, counts map[string]int) {
	var by []string
	switch phase, suspend := e.RequestObject.Status.Phase, e.RequestObject.Spec.Suspend; {
	case e.ObjectRef.Subresource == "binding":
		a.Bindings++
		counts["binding of "+e.Object()]++
		by = []string{controlplane.SchedulerUser}
	case phase != nil && *phase == "Dequeued":
		a.Dequeues++
		counts[fmt.Sprintf("dequeue of %s in attempt %d", e.Object(), e.RequestObject.Status.Attempts)]++
		by = []string{controlplane.SchedulerUser}
	case e.ObjectRef.Resource == "jobs" && suspend != nil:
		if !*suspend {
			a.Resumptions++
			counts["resumption of "+e.Object()]++
		}
		by = []string{controlplane.ControllerUser}
	case e.ObjectRef.Resource == "queueunits" && e.Verb != "patch":
		by = []string{controlplane.ControllerUser, garbageCollector}
	default:
		return
	}
	if !slices.Contains(by, e.User.Username) {
		a.violations = append(a.violations, checker.Violation{Rule: foreignWrite, Subject: e.Object(), Message: fmt.Sprintf(
			"%s of %s by %s", e.Verb, e.Kind(), e.User.Username)})
	}
}
