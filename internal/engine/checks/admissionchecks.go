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

// Package checks knows the AdmissionChecks that exist, and whether somebody answers them.
package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Book are those that exist, by name. off: they are not known, and none is asked.
type Book struct {
	off    bool
	byName map[string]*objects.Check
	// timeout is for how long a reserved unit waits for a check, if its queue names no time. timeouts hold instead for the
	// checks of some controllers.
	timeout  time.Duration
	timeouts map[string]time.Duration
}

func NewBook(off bool, timeout time.Duration, timeouts map[string]time.Duration) *Book {
	return &Book{off: off, byName: map[string]*objects.Check{}, timeout: timeout, timeouts: timeouts}
}

func (a *Book) Set(name string, c *objects.Check) {
	if c == nil {
		delete(a.byName, name)
		return
	}
	a.byName[name] = c
}

// Listed are the keys that a check may write into pods; false if the check is not known.
func (a *Book) Listed(check string) (podupdate.Keys, bool) {
	if c := a.byName[check]; c != nil {
		return c.Keys, true
	}
	return nil, false
}

// FaultOf a queue is the first of its checks that nobody would answer; nil if there is none.
func (a *Book) FaultOf(q *objects.Queue) *queue.Fault {
	if a.off && (q.CheckFault != "" || len(q.Spec.AdmissionChecks) > 0) {
		return &queue.Fault{Reason: unit.ReasonCheckInactive,
			Message: "the queue names admission checks, and the feature gate AdmissionChecks of the scheduler is off"}
	}
	if q.CheckFault != "" {
		return &queue.Fault{Reason: unit.ReasonCheckInactive, Message: q.CheckFault}
	}
	for _, of := range q.Spec.AdmissionChecks {
		switch c := a.byName[of.Name]; {
		case c == nil:
			return &queue.Fault{Reason: unit.ReasonCheckNotFound,
				Message: fmt.Sprintf("AdmissionCheck %q does not exist", of.Name)}
		case strings.HasPrefix(c.Controller, v1beta1.GroupName+"/"):
			return &queue.Fault{Reason: unit.ReasonCheckInactive, Message: fmt.Sprintf(
				"AdmissionCheck %q is for controller %q, which answers Workloads of Kueue and no QueueUnits",
				of.Name, c.Controller)}
		case !c.Active:
			return &queue.Fault{Reason: unit.ReasonCheckInactive,
				Message: fmt.Sprintf("AdmissionCheck %q is not active: %s", of.Name, c.Why)}
		}
	}
	return nil
}

// Resolved are the checks that a queue names, with what depends on their controllers.
func (a *Book) Resolved(named []queue.AdmissionCheck) []queue.AdmissionCheck {
	named = slices.Clone(named)
	for i := range named {
		check, controller := &named[i], ""
		if c := a.byName[check.Name]; c != nil {
			controller = c.Controller
		}
		check.Foreseen = controller == v1alpha1.PlacementController
		if own, ok := a.timeouts[controller]; check.Timeout == objects.DefaultTimeout && ok {
			check.Timeout = own
		} else if check.Timeout == objects.DefaultTimeout {
			check.Timeout = a.timeout
		}
	}
	return named
}
