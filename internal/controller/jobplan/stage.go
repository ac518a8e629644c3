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
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// stage is what a phase means for the job.
type stage int

const (
	// waiting: the job must not run.
	waiting stage = iota
	// released: the job is to run.
	released
	// over: the job has ended.
	over
)

// stageOf reads a phase. An unknown phase counts as waiting, so that an error never releases a job. A phase that holds
// quota without releasing the job counts as waiting as well.
func stageOf(phase v1alpha1.QueueUnitPhase) stage {
	switch p := unit.Phase(phase); {
	case p.Releases():
		return released
	case p.Terminal():
		return over
	default:
		return waiting
	}
}

// holdsQuota says whether a unit that waits has quota reserved all the same; its pod sets are immutable then.
func holdsQuota(phase v1alpha1.QueueUnitPhase) bool {
	p := unit.Phase(phase)
	return p.Holds() && !p.Releases()
}
