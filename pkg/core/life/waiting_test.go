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
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Each rule keeps a unit out of its line, the first that it breaks gives the reason. All but those with a time wait for
// an event.
func TestWaiting(t *testing.T) {
	answer := func(f *Facts) (string, string) {
		p := ClassifyWaiting(f)
		return placeOf(p), WhyParked(f, p.Parked)
	}
	check(t, waiting, answer, []row{
		{name: "in line"},
		{"not decoded, before all", func(f *Facts) {
			f.Unit.Invalid, f.Unit.InvalidMessage, f.Unit.Pods = unit.ReasonInvalidRequest, "broken", -1
		}, "parked InvalidRequest", "broken"},
		{"neither request nor pods", func(f *Facts) { f.Unit.Request, f.Unit.Pods = resources.List{}, 0 },
			"parked NoPods", "asks for nothing"},
		{"inactive, before that it asks for nothing", func(f *Facts) {
			f.Unit.Request, f.Unit.Pods, f.Unit.Active = resources.List{}, 0, false
		}, "parked Inactive", "spec.active is false"},
		{"a request without pods", func(f *Facts) { f.Unit.Pods = 0 }, "", ""},
		{"pods without a request", func(f *Facts) { f.Unit.Request = resources.List{} }, "", ""},
		{"fewer pods than none", func(f *Facts) { f.Unit.Pods = -1 }, "parked InvalidRequest", "negative: -1"},
		{"less than nothing", func(f *Facts) { f.Unit.Request = cpu(-1) }, "parked InvalidRequest", "negative amount"},
		{"nothing of a resource", func(f *Facts) { f.Unit.Request = cpu(0) }, "", ""},
		{"the greatest amount", func(f *Facts) { f.Unit.Request = cpu(resources.Greatest) }, "", ""},
		{"more than that", func(f *Facts) { f.Unit.Request = cpu(resources.Greatest + 1) },
			"parked InvalidRequest", "absurd amount"},
		{"a phase of another version", func(f *Facts) { f.Unit.Phase = "Odd" }, "parked UnknownPhase", `"Odd"`},
		{"inactive, before what passes by itself", func(f *Facts) {
			f.Unit.Active, f.Unit.RequeueAt = false, at(time.Minute)
		}, "parked Inactive", "spec.active is false"},
		{"to be made inactive", func(f *Facts) {
			f.Unit.Deactivate = &unit.Deactivation{Reason: unit.ReasonCheckRejected, Message: "no"}
		}, "parked CheckRejected", "no"},
		{"adopting", func(f *Facts) { f.Unit.Adopting = true }, "parked Adopting", "runs already"},
		{"a job of another namespace", func(f *Facts) { f.Unit.Consumer.Namespace = "other" },
			"parked ConsumerOtherNamespace", `"other"`},
		{"a job without a namespace is near", func(f *Facts) { f.Unit.Consumer.Namespace = "" }, "", ""},
		{"another job of the name", func(f *Facts) { f.Job = owner.Another }, "parked ConsumerUIDMismatch", ""},
		{"the job is gone", func(f *Facts) { f.Job = owner.Gone }, "parked ConsumerNotFound", ""},
		{"the job was not seen", func(f *Facts) { f.Job = owner.NotSeen }, "parked ConsumerNotFound", ""},
		{"nor could jobs be listed", func(f *Facts) { f.Job, f.Unit.KindUnlisted = owner.NotSeen, true },
			"parked KindNotListed", "Job.v1.batch"},
		{"gone is gone, listed or not", func(f *Facts) { f.Job, f.Unit.KindUnlisted = owner.Gone, true },
			"parked ConsumerNotFound", ""},
		{"nobody watches its job", func(f *Facts) { f.Job, f.Unit.ConsumerManaged = owner.Gone, false }, "", ""},
		{"misnamed", func(f *Facts) { f.Unit.Misnamed = true }, "parked DuplicateUnit", "another name"},
		{"a rival stands for the job", func(f *Facts) { f.Rival = "ns/other" }, "parked DuplicateUnit", `"ns/other"`},
		{"templates of the last reservation", func(f *Facts) { f.Unit.TemplatesWritten = true },
			"parked RestoringTemplates", "taken out"},
		{"backs off", func(f *Facts) { f.Unit.RequeueAt = at(time.Minute) },
			"parked Backoff, again 1m0s", "2026-01-01T12:01:00Z"},
		{"the back-off is over", func(f *Facts) { f.Unit.RequeueAt = start }, "", ""},
		{"refused", func(f *Facts) { f.Refused = Refusal{at(time.Second), unit.ReasonWriteRefused, "conflict"} },
			"parked WriteRefused, again 1s", "conflict"},
		{"refused before", func(f *Facts) { f.Refused = Refusal{start, unit.ReasonWriteRefused, "conflict"} }, "", ""},
	})
}
