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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// believed are the rules about the unit alone. A pending unit that breaks one can never be admitted as it is. An
// admitted one keeps exactly what it holds.
var believed = []func(*unit.Unit) breach{decoded, requestIsSane, consumerIsNear}

// alone makes a rule of one that looks at the unit alone.
func alone(r func(*unit.Unit) breach) rule {
	return func(f *Facts) breach { return r(f.Unit) }
}

// waits are the rules that keep a unit out of its line. The first broken rule gives the reason, so rules that need a
// person come before rules that end with time. isActive comes before asksForSomething: a unit that its controller
// deactivated can have an empty request, because the request of its job could not be read.
var waits = []rule{
	alone(decoded), alone(requestIsSane), phaseIsKnown, isActive, alone(asksForSomething), isNotDeactivated,
	isNotAdopting, alone(consumerIsNear), jobLives, standsForItsJob, templatesAreRestored, backoffIsOver, isNotRefused,
}

// Unfit says that a unit can never be admitted as it is.
func Unfit(u *unit.Unit) bool { return disbelieved(u) || asksForSomething(u).reason != "" }

// disbelieved says that the request of a unit does not count. An empty request does: an admitted unit whose job has no
// pods any more gives its quota back.
func disbelieved(u *unit.Unit) bool {
	return slices.ContainsFunc(believed, func(r func(*unit.Unit) breach) bool {
		return r(u).reason != ""
	})
}

// WhyParked is the sentence of the reason for which a unit is parked at that time.
func WhyParked(f *Facts, parked unit.Reason) string {
	for _, r := range waits {
		if b := r(f); b.reason == parked {
			return b.message
		}
	}
	return ""
}

func decoded(u *unit.Unit) breach { return breach{reason: u.Invalid, message: u.InvalidMessage} }

func asksForSomething(u *unit.Unit) breach {
	if u.Pods == 0 && u.Request.IsZero() {
		return broken(unit.ReasonNoPods, "the unit asks for nothing: no request and no pods")
	}
	return breach{}
}

func requestIsSane(u *unit.Unit) breach {
	if u.Pods < 0 {
		return broken(unit.ReasonInvalidRequest, "the number of pods is negative: %d", u.Pods)
	}
	for _, it := range u.Request.Items() {
		if it.Amount < 0 {
			return broken(unit.ReasonInvalidRequest, "resource %q: negative amount %s", it.Name,
				resources.Format(it.Name, it.Amount))
		}
		if it.Amount > resources.Greatest {
			return broken(unit.ReasonInvalidRequest, "resource %q: absurd amount %s", it.Name,
				resources.Format(it.Name, it.Amount))
		}
	}
	return breach{}
}

func phaseIsKnown(f *Facts) breach {
	if p := f.Unit.Phase; !p.Waits() && !p.Holds() && !p.Terminal() {
		return broken(unit.ReasonUnknownPhase, "phase %q is not known to this version", p)
	}
	return breach{}
}

func isActive(f *Facts) breach {
	if !f.Unit.Active {
		return broken(unit.ReasonInactive, "the unit is held: spec.active is false")
	}
	return breach{}
}

// isNotDeactivated keeps out a unit that must be made inactive, until somebody has made it inactive.
func isNotDeactivated(f *Facts) breach {
	if d := f.Unit.Deactivate; d != nil {
		return breach{reason: d.Reason, message: d.Message}
	}
	return breach{}
}

func isNotAdopting(f *Facts) breach {
	if f.Unit.Adopting {
		return broken(unit.ReasonAdopting, "the job runs already; its unit waits to be marked as running")
	}
	return breach{}
}

func consumerIsNear(u *unit.Unit) breach {
	if of := u.Consumer.Namespace; of != "" && of != u.Namespace() {
		return broken(unit.ReasonConsumerOtherNamespace,
			"consumerRef names namespace %q; the unit is in %q", of, u.Namespace())
	}
	return breach{}
}

func jobLives(f *Facts) breach {
	if !f.Unit.ConsumerManaged {
		return breach{}
	}
	switch f.Job {
	case owner.Another:
		return breach{reason: unit.ReasonConsumerUIDMismatch, message: f.JobSaid}
	case owner.NotSeen, owner.Gone:
		if f.Job == owner.NotSeen && f.Unit.KindUnlisted {
			return broken(unit.ReasonKindNotListed, "jobs of kind %s could not be listed yet", f.Unit.Consumer.Kind)
		}
		return breach{reason: unit.ReasonConsumerNotFound, message: f.JobSaid}
	case owner.Live:
	}
	return breach{}
}

func standsForItsJob(f *Facts) breach {
	switch {
	case f.Unit.Misnamed:
		return broken(unit.ReasonDuplicateUnit, "the unit of %s has another name", f.Unit.Consumer)
	case f.Rival != "":
		return broken(unit.ReasonDuplicateUnit, "unit %q stands for the same %s", f.Rival, f.Unit.Consumer)
	default:
		return breach{}
	}
}

// templatesAreRestored keeps a unit from a reservation while pod templates of its job may have the updates of former
// admission checks. New updates would replace them, and nobody would know which ones to remove.
func templatesAreRestored(f *Facts) breach {
	if f.Unit.TemplatesWritten {
		return broken(unit.ReasonRestoring,
			"what admission checks asked to write into the pods of the job is being taken out again")
	}
	return breach{}
}

func backoffIsOver(f *Facts) breach {
	at := f.Unit.RequeueAt
	if !f.Now.Before(at) {
		return breach{}
	}
	return brokenUntil(at, unit.ReasonBackoff, "waits until %s before it is tried again", at.UTC().Format(time.RFC3339))
}

func isNotRefused(f *Facts) breach {
	if f.refused() {
		return breach{reason: f.Refused.Reason, message: f.Refused.Message, until: f.Refused.Until}
	}
	return breach{}
}
