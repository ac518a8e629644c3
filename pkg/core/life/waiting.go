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

package life

import (
	"fmt"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// ofObject are the rules about what the unit says alone. One that breaks one of them can never be admitted as it is.
var ofObject = []func(*unit.Unit) (unit.Reason, string){decoded, asksForSomething, requestIsSane, consumerIsNear}

// alone makes a rule of one that looks at the unit alone.
func alone(r func(*unit.Unit) (unit.Reason, string)) rule {
	return func(f *Facts) (unit.Reason, string) { return r(f.Unit) }
}

// waits are the rules that keep a unit out of its line, in order: the first that it breaks gives the reason. The last
// ones pass by themselves.
var waits = []rule{
	alone(decoded), alone(asksForSomething), alone(requestIsSane), phaseIsKnown, isActive, isNotDeactivated,
	isNotAdopting, alone(consumerIsNear), jobLives, standsForItsJob, templatesAreRestored, backoffIsOver, isNotRefused,
}

// Unfit says that a unit can never be admitted as it is.
func Unfit(u *unit.Unit) bool {
	return slices.ContainsFunc(ofObject, func(r func(*unit.Unit) (unit.Reason, string)) bool {
		reason, _ := r(u)
		return reason != ""
	})
}

// WhyParked is the sentence of the reason for which a unit is parked.
func WhyParked(f *Facts, parked unit.Reason) string {
	for _, r := range waits {
		if reason, message := r(f); reason == parked {
			return message
		}
	}
	return ""
}

// parkedUntil is when a parked unit is to be looked at though nothing happens; zero for never.
func parkedUntil(f *Facts, parked unit.Reason) time.Time {
	switch parked {
	case unit.ReasonBackoff:
		return f.Unit.RequeueAt
	case f.Refused.Reason:
		return f.Refused.Until
	default:
		return time.Time{}
	}
}

func decoded(u *unit.Unit) (unit.Reason, string) { return u.Invalid, u.InvalidMessage }

func asksForSomething(u *unit.Unit) (unit.Reason, string) {
	if u.Pods == 0 && u.Request.IsZero() {
		return unit.ReasonNoPods, "the unit asks for nothing: no request and no pods"
	}
	return "", ""
}

func requestIsSane(u *unit.Unit) (unit.Reason, string) {
	if u.Pods < 0 {
		return unit.ReasonInvalidRequest, fmt.Sprintf("the number of pods is negative: %d", u.Pods)
	}
	for _, it := range u.Request.Items() {
		if it.Amount < 0 {
			return unit.ReasonInvalidRequest, fmt.Sprintf("resource %q: negative amount %s", it.Name,
				resources.Format(it.Name, it.Amount))
		}
		if it.Amount > resources.Greatest {
			return unit.ReasonInvalidRequest, fmt.Sprintf("resource %q: absurd amount %s", it.Name,
				resources.Format(it.Name, it.Amount))
		}
	}
	return "", ""
}

func phaseIsKnown(f *Facts) (unit.Reason, string) {
	if p := f.Unit.Phase; !p.Waits() && !p.Holds() && !p.Terminal() {
		return unit.ReasonUnknownPhase, fmt.Sprintf("phase %q is not known to this version", p)
	}
	return "", ""
}

func isActive(f *Facts) (unit.Reason, string) {
	if !f.Unit.Active {
		return unit.ReasonInactive, "the unit is held: spec.active is false"
	}
	return "", ""
}

// isNotDeactivated keeps a unit out that is to be made inactive, until somebody has done so.
func isNotDeactivated(f *Facts) (unit.Reason, string) {
	if d := f.Unit.Deactivate; d != nil {
		return d.Reason, d.Message
	}
	return "", ""
}

func isNotAdopting(f *Facts) (unit.Reason, string) {
	if f.Unit.Adopting {
		return unit.ReasonAdopting, "the job runs already; its unit waits to be marked as running"
	}
	return "", ""
}

func consumerIsNear(u *unit.Unit) (unit.Reason, string) {
	if of := u.Consumer.Namespace; of != "" && of != u.Namespace() {
		return unit.ReasonConsumerOtherNamespace,
			fmt.Sprintf("consumerRef names namespace %q; the unit is in %q", of, u.Namespace())
	}
	return "", ""
}

func jobLives(f *Facts) (unit.Reason, string) {
	if !f.Unit.ConsumerManaged {
		return "", ""
	}
	switch f.Job {
	case owner.Another:
		return unit.ReasonConsumerUIDMismatch, f.JobSaid
	case owner.NotSeen, owner.Gone:
		if f.Job == owner.NotSeen && f.Unit.KindUnlisted {
			return unit.ReasonKindNotListed, fmt.Sprintf("jobs of kind %s could not be listed yet", f.Unit.Consumer.Kind)
		}
		return unit.ReasonConsumerNotFound, f.JobSaid
	case owner.Live:
	}
	return "", ""
}

func standsForItsJob(f *Facts) (unit.Reason, string) {
	switch {
	case f.Unit.Misnamed:
		return unit.ReasonDuplicateUnit, fmt.Sprintf("the unit of %s has another name", f.Unit.Consumer)
	case f.Rival != "":
		return unit.ReasonDuplicateUnit, fmt.Sprintf("unit %q stands for the same %s", f.Rival, f.Unit.Consumer)
	default:
		return "", ""
	}
}

// templatesAreRestored keeps a unit from a reservation while pod templates of its job may have what checks asked for
// about the last one: what they are asked next takes its place, and nobody would know any more what is to go.
func templatesAreRestored(f *Facts) (unit.Reason, string) {
	if f.Unit.TemplatesWritten {
		return unit.ReasonRestoring, "what admission checks asked to write into the pods of the job is being taken out again"
	}
	return "", ""
}

func backoffIsOver(f *Facts) (unit.Reason, string) {
	if f.Now.Before(f.Unit.RequeueAt) {
		return unit.ReasonBackoff,
			"waits until " + f.Unit.RequeueAt.UTC().Format(time.RFC3339) + " before it is tried again"
	}
	return "", ""
}

func isNotRefused(f *Facts) (unit.Reason, string) {
	if f.refused() {
		return f.Refused.Reason, f.Refused.Message
	}
	return "", ""
}
