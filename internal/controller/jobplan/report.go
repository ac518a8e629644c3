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

package jobplan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/podreport"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
)

// The status of a unit has the state of its pods: the number of ready pods, whether all are ready, and the pods that
// succeeded. A unit is written for that at most once every ReportInterval. Quota that others can use is given back
// sooner.

const (
	// ReportInterval is for reports.
	ReportInterval  = 30 * time.Second
	reclaimInterval = 5 * time.Second
)

// ready are the pods of the job that are so.
func (s *Situation) ready() podreport.Ready {
	return podreport.Count(s.Job, s.Unit, s.ask().Demand.UnitSets)
}

// report follows the pods of a job that runs.
func report(s *Situation) Decision {
	if s.Unit.Status.Phase != v1alpha1.PhaseRunning || s.Job.SuspensionSeen() {
		return Decision{}
	}
	after := s.Unit.DeepCopy()
	s.ready().SayIn(after, s.Now)
	reclaims := podreport.SetReclaimable(after, s.Job, s.ask().Demand.UnitSets)
	if equality.Semantic.DeepEqual(after.Status, s.Unit.Status) {
		return Decision{}
	}
	interval := ReportInterval
	if reclaims {
		interval = reclaimInterval
	}
	if last := s.Unit.Status.LastUpdateTime; last != nil {
		if wait := last.Add(interval).Sub(s.Now.Time); wait > 0 {
			return Decision{After: min(wait, interval)}
		}
	}
	now := s.Now
	after.Status.LastUpdateTime = &now
	if reclaims || podreport.AllReady(after) != podreport.AllReady(s.Unit) {
		return do(PatchUnitStatus{Before: s.Unit, After: after}) // quota and time-outs go by it
	}
	return do(Report{Before: s.Unit, After: after})
}

// reclaim is for a job that does not run: what its unit asks for is written at once.
func reclaim(s *Situation) (Decision, bool) {
	after := unitstatus.Updated(s.Unit, s.Now)
	if !podreport.SetReclaimable(after, s.Job, s.ask().Demand.UnitSets) {
		return Decision{}, false
	}
	return do(PatchUnitStatus{Before: s.Unit, After: after}), true
}
