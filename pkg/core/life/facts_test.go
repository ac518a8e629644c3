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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// start is when the unit of each row was admitted, and the present time unless the row says another.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(after time.Duration) time.Time { return start.Add(after) }

// cpu is an amount of processors; for other than whole ones the rules are the same.
func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// row is one situation. The facts are those of waiting, admitted or reserved, changed by but.
type row struct {
	name string
	but  func(*Facts)
	want string
	// says is a part of the sentence.
	says string
}

// check compares the answer about each row: what becomes of the unit, and the sentence of its reason.
func check(t *testing.T, facts func() *Facts, answer func(*Facts) (is, sentence string), rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := facts()
			if r.but != nil {
				r.but(f)
			}
			is, sentence := answer(f)
			require.Equal(t, r.want, is)
			require.Contains(t, sentence, r.says)
		})
	}
}

// waiting is a unit of four pods that no rule keeps out of its line.
func waiting() *Facts {
	return &Facts{
		Now: start, GangsPassed: true, Job: owner.Live, QueueKnown: true, Queue: &queue.Spec{Name: "q"},
		Unit: &unit.Unit{
			Key: "ns/u", UID: "u", Queue: "q", Quota: "team", Active: true, Request: cpu(4), Pods: 4,
			Consumer: unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: "j", UID: "1"}, ConsumerManaged: true,
		},
		Config: &Config{Timeouts: queue.Timeouts{Idle: 5 * time.Minute, Unbound: 10 * time.Minute}},
	}
}

// admitted is a unit that was let go at start and holds all that it asks for; all its pods are on nodes.
func admitted() *Facts {
	f := waiting()
	u := f.Unit
	u.Phase, u.Admitted = unit.PhaseDequeued, start
	u.SetHeld(u.Request, u.Pods)
	f.Holds, f.Held = true, u.Held
	f.havePods(4, 4)
	return f
}

// reserved is a unit for which quota was reserved at start. Check a, which has to answer within a minute, and check b
// were asked, and have not answered.
func reserved() *Facts {
	f := admitted()
	f.Unit.Phase = unit.PhaseReserved
	f.Queue.AdmissionChecks = []queue.AdmissionCheck{{Name: "a", Timeout: time.Minute}, {Name: "b"}}
	f.Unit.Checks = unit.Asked([]string{"a", "b"})
	f.havePods(0, 0)
	return f
}

// havePods gives the unit pods of one cpu each.
func (f *Facts) havePods(all, assigned int64) {
	f.Pods.All, f.Pods.Assigned = int(all), int(assigned)
	f.Pods.Charges = ledger.Charges{All: cpu(all), Assigned: cpu(assigned), Idle: cpu(all - assigned), Pods: all}
}

// answers has the checks say this.
func (f *Facts) answers(states ...unit.CheckState) {
	for i, state := range states {
		f.Unit.Checks.Answers[i].State = state
	}
}

// placeOf is a place in words. Absent words have their zero value.
func placeOf(p Class) string {
	var out []string
	say := func(some bool, format string, values ...any) {
		if some {
			out = append(out, fmt.Sprintf(format, values...))
		}
	}
	say(p.Parked != "", "parked %s", p.Parked)
	say(p.Holds, "holds %s", cores(p.Held))
	say(p.Passed, "passed")
	say(p.Checked, "checked")
	say(p.Write == WriteLoss, "writes its loss")
	say(p.Write == WriteRelease, "writes its release")
	say(p.Write == WriteSize, "writes %s for %d pods", cores(p.Next), p.NextPods)
	say(p.Asking != 0, "asks since %s", after(p.Asking.Time()))
	say(p.InLine, "in line for %s to hold %s for %d pods", cores(p.Grows.Need), cores(p.Grows.Total), p.Grows.Pods)
	say(p.Grows.Unchecked, "unchecked")
	say(p.Overdue != Expiry{}, "overdue %s", p.Overdue.Reason)
	say(!p.Again.IsZero(), "again %s", after(p.Again))
	return strings.Join(out, ", ")
}

// cores is how many cpus a vector has.
func cores(l resources.List) string {
	n, _ := l.Get("cpu")
	return fmt.Sprint(n)
}

// after is a time as its distance from start.
func after(t time.Time) string { return t.Sub(start).String() }

func momentOf(d time.Duration) ordered.Moment { return ordered.MomentOf(at(d)) }
