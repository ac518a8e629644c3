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

package virtual

import (
	"cmp"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Facts are what a state knows, as values that nobody changes: enough to build another state anywhere that decides the
// same. Pods are left out: units hold what they hold, and quotas are used by the rest. Checks of extensions are left
// out too, since only the owner of the state may ask them.
type Facts struct {
	Config admission.Config
	// Quotas and Queues by name. Units in no order.
	Quotas []admission.Quota
	Queues []queue.Spec
	Units  []*unit.Unit
}

// FactsOf a state of that configuration. Its owner waits no longer than for a pointer to each unit, and for all quotas.
func FactsOf(s *admission.State, config admission.Config, now time.Time) *Facts {
	f := &Facts{Config: config, Queues: s.Queues(), Units: s.Units(now)}
	f.Config.Checks = nil
	f.Queues = slices.DeleteFunc(f.Queues, func(q queue.Spec) bool { return q.Policy == "" })
	s.Limits().Levels(func(l *capacity.Level, asked *resources.Sum) {
		f.Quotas = append(f.Quotas, withoutUnits(l.Spec(), asked, s.Holdings().Read(l.Name())))
	})
	slices.SortFunc(f.Quotas, func(a, b admission.Quota) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

// withoutUnits is a quota without the use of the pods of units. asked is what its units ask for beyond their pods, less
// the pods of those that wait.
func withoutUnits(q *admission.Quota, asked *resources.Sum, r ledger.Reading) admission.Quota {
	out := *q
	out.Used = q.Used.Sub(r.Assigned().List()).Floor0()
	out.NonPreemptibleUsed = q.NonPreemptibleUsed.Sub(r.AssignedNonPreemptible().List()).Floor0()
	out.Terms.OwnUsed = q.Terms.OwnUsed.Sub(r.AssignedHere().List()).Floor0()
	if asked != nil {
		out.Requested = q.Requested.Add(asked.List()) // state takes out of it the amounts that units hold
	}
	return out
}
