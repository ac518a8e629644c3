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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Where an admitted unit belongs, and why it loses what it holds if it does.
func TestAdmitted(t *testing.T) {
	answer := func(f *Facts) (string, string) { return placeOf(ClassifyAdmitted(f)), LossOf(f).Message }
	const loses = "holds 4, passed, writes its loss"
	check(t, admitted, answer, []row{
		{name: "runs", want: "holds 4, passed"},
		{"inactive", func(f *Facts) { f.Unit.Active = false }, loses, "spec.active is false"},
		{"nor may that be written yet", func(f *Facts) { f.Unit.Active, f.Refused.Until = false, at(time.Second) },
			"holds 4, passed, again 1s", "spec.active is false"},
		{"quarantined", func(f *Facts) { f.Unit.Quarantined, f.Unit.Active = true, false }, "holds 4, passed", ""},
		{"a rival stands for the job", func(f *Facts) { f.Rival = "ns/other" }, loses, `"ns/other"`},

		{"another job of the name", func(f *Facts) { f.Job = owner.Another }, "writes its loss", ""},
		{"the job is gone", func(f *Facts) { f.Job = owner.Gone }, "writes its loss", ""},
		{"which may not be written yet", func(f *Facts) { f.Job, f.Refused.Until = owner.Gone, at(time.Second) },
			"again 1s", ""},
		{"the job was not seen", func(f *Facts) { f.Job = owner.NotSeen }, "holds 4, passed", ""},
		{"a job of another namespace says nothing", func(f *Facts) {
			f.Job, f.Unit.Consumer.Namespace = owner.Gone, "other"
		}, loses, `"other"`},
		{"gone, and quarantined", func(f *Facts) { f.Job, f.Unit.Quarantined = owner.Gone, true }, "holds 4, passed", ""},

		{"the queue drains", func(f *Facts) { f.Queue.Drains = true }, loses, `queue "q"`},
		{"it cannot be suspended", func(f *Facts) { f.Queue.Drains, f.Unit.Unsuspendable = true, true },
			"holds 4, passed", ""},
		{"it has no job to suspend", func(f *Facts) { f.Queue.Drains, f.Unit.Consumer = true, unit.Consumer{} },
			"holds 4, passed", ""},
		{"it cannot, and no pod is on a node", func(f *Facts) {
			f.Queue.Drains, f.Unit.Unsuspendable = true, true
			f.havePods(4, 0)
		}, loses, `queue "q"`},

		{"moves once no pod is on a node", func(f *Facts) {
			f.Unit.MovesTo = "other"
			f.havePods(4, 0)
		}, loses, `names quota "other" now; it gives back`},
		{"stays until then, and says so", func(f *Facts) { f.Unit.MovesTo = "other" },
			"holds 4, passed, overdue QuotaChanged", ""},
		{"quarantined, it says nothing", func(f *Facts) { f.Unit.MovesTo, f.Unit.Quarantined = "other", true },
			"holds 4, passed", ""},
	})
}

// A unit that was let go and holds nothing cannot get as growth what checks have to answer for.
func TestIsAnsweredFor(t *testing.T) {
	nothing := func() *Facts {
		f := admitted()
		f.Queue.AdmissionChecks = []queue.AdmissionCheck{{Name: "a"}}
		f.Unit.SetHeld(resources.List{}, 0)
		f.havePods(0, 0)
		return f
	}
	answer := func(f *Facts) (string, string) {
		b := isAnsweredFor(f)
		return string(b.reason), b.message
	}
	check(t, nothing, answer, []row{
		{"waits", nil, "ChecksChanged", "asks for cpu"},
		{"holds something", func(f *Facts) { f.Unit.SetHeld(cpu(1), 1) }, "", ""},
		{"asks for nothing", func(f *Facts) { f.Unit.Request = resources.List{} }, "", ""},
		{"no check is asked", func(f *Facts) { f.Queue.AdmissionChecks = nil }, "", ""},
		{"is reserved", func(f *Facts) { f.Unit.Phase = unit.PhaseReserved }, "", ""},
		{"could not be admitted", func(f *Facts) { f.Unit.Request = cpu(-1) }, "", ""},
		{"has a pod on a node", func(f *Facts) { f.havePods(1, 1) }, "", ""},
	})
}

// An admitted unit reports pods that nothing releases after a minute.
func TestNotice(t *testing.T) {
	elsewhere := func(f *Facts) { f.Pods.Elsewhere = 1 }
	with := func(now time.Duration, but ...func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			f.Now = at(now)
			for _, b := range but {
				b(f)
			}
		}
	}
	answer := func(f *Facts) (string, string) {
		p := ClassifyAdmitted(f)
		return placeOf(p), p.Overdue.Message()
	}
	check(t, admitted, answer, []row{
		{"soon", with(59*time.Second, elsewhere), "holds 4, passed, again 1m0s", ""},
		{"charged elsewhere", with(time.Minute, elsewhere),
			"holds 4, passed, overdue PodsChargedElsewhere", "charged to another quota"},
		{"marked as suspended", with(time.Minute, func(f *Facts) { f.Pods.Suspended = 1 }),
			"holds 4, passed, overdue PodsHeldBySuspension", "marked as suspended"},
		{"it names another quota, at once", with(0, elsewhere, func(f *Facts) { f.Unit.MovesTo = "other" }),
			"holds 4, passed, overdue QuotaChanged", `quota "other"`},
		{"reserved, its pods ought to wait", with(time.Minute, elsewhere, func(f *Facts) {
			f.Unit.Phase = unit.PhaseSchedReady
		}), "holds 4", ""},
		{"nobody knows when it was admitted", with(time.Minute, elsewhere, func(f *Facts) {
			f.Unit.Admitted = time.Time{}
		}), "holds 4, passed", ""},
	})
}
