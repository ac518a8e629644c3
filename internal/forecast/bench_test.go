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

package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// BenchmarkAsk asks when a unit is admitted that waits behind half of the others, and about the first 100 units, where
// 300 units hold quota.
// Units that differ are decided one by one: a world has to know all of them.
func BenchmarkAsk(b *testing.B) {
	for _, c := range []struct {
		waiting int
		differ  bool
	}{{1_000, false}, {10_000, false}, {100_000, false}, {10_000, true}, {100_000, true}} {
		waiting := c.waiting
		s := admission.New(admission.Config{})
		s.SetQuota(epoch, admission.Quota{Name: "root", Limit: cpu(300), Max: cpu(300)})
		for i := range 10 {
			name := fmt.Sprintf("q%d", i)
			s.SetQuota(epoch, admission.Quota{Name: name, Parent: "root", Limit: cpu(300), Max: cpu(300)})
			s.UpsertQueue(epoch, queue.Spec{Name: name, Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
		}
		for i := range 300 + waiting {
			u := job(fmt.Sprintf("ns/%06d", i), 1, time.Duration(1+i%60)*time.Minute, 0)
			if i < 300 {
				u = job(fmt.Sprintf("ns/%06d", i), 1, time.Hour, time.Duration(1+i%59)*time.Minute)
			}
			if c.differ {
				u.Priority = -int32(i)
			}
			u.Queue = fmt.Sprintf("q%d", i%10)
			u.Quota, u.Created = u.Queue, epoch.Add(time.Duration(i)*time.Millisecond)
			s.UpsertUnit(epoch, u)
		}
		s.Decide(epoch)
		b.Run(fmt.Sprintf("waiting=%d/differ=%t", waiting, c.differ), func(b *testing.B) {
			var a *Answer
			for b.Loop() {
				begun := time.Now()
				facts := virtual.FactsOf(s, admission.Config{}, epoch)
				b.ReportMetric(float64(time.Since(begun).Microseconds()), "facts-us")
				a = Ask(hurried(facts, begun), unitIn(facts, fmt.Sprintf("ns/%06d", 300+waiting/2)))
			}
			b.ReportMetric(float64(a.Draws), "draws")
			if !a.NotBefore.IsZero() {
				b.ReportMetric(a.NotBefore.Sub(epoch).Minutes(), "not-before-minutes")
			}
		})
		b.Run(fmt.Sprintf("waiting=%d/differ=%t/first", waiting, c.differ), func(b *testing.B) {
			var all []Answer
			for b.Loop() {
				all = First(hurried(virtual.FactsOf(s, admission.Config{}, epoch), time.Now()), 100,
					func(u *unit.Unit) bool { return u.Phase.Waits() })
			}
			b.ReportMetric(float64(len(all)), "units")
			if len(all) > 0 {
				b.ReportMetric(float64(all[len(all)-1].Draws), "draws-of-last")
			}
		})
	}
}

// hurried is a question as the aggregated API asks it.
func hurried(facts *virtual.Facts, begun time.Time) *Question {
	return &Question{Facts: facts, Now: epoch, Runs: NewRuns(nil), Stop: func(worlds int) bool {
		return time.Since(begun) > 150*time.Millisecond*time.Duration(min(worlds+1, 2))
	}}
}
