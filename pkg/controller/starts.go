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

package controller

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/inflight"
)

// start is the turn that a job has taken for one admission.
type start struct {
	taken   bool
	unit    types.UID
	attempt int64
	turn    inflight.Turn
}

// laterError says how long the turn of a job is away.
type laterError time.Duration

// Error is of error.
func (e laterError) Error() string {
	return fmt.Sprintf("the turn of the job is expected in %s", time.Duration(e))
}

// askAgain is when to ask for the turn once more. The pace may have changed by then, so it is asked before the turn is
// expected, and seldom for one that is far away.
func (e laterError) askAgain() time.Duration {
	const often, parts, seldom = 20 * time.Millisecond, 4, 2 * time.Second
	return min(max(time.Duration(e)/parts, often), seldom)
}

// turn is an error until a job that is to be resumed may start. Everything else that is written of jobs never waits.
func (w *writer) turn(a jobplan.PatchJob) error {
	if !a.Before.Suspended() || a.After.Suspended() {
		return nil
	}
	now := start{taken: true}
	if w.unit != nil {
		now.unit, now.attempt = w.unit.UID, w.unit.Status.Attempts
	}
	if known := w.known.start; known.taken && known.unit == now.unit && known.attempt == now.attempt {
		now = known
	} else {
		now.turn = w.shared.Starts.Take(podsOf(w.unit))
		w.known.start = now
	}
	if wait := w.shared.Starts.Wait(now.turn); wait > 0 {
		return laterError(wait)
	}
	return nil
}

// podsOf is how many pods the unit was admitted with.
func podsOf(u *v1alpha1.QueueUnit) (pods int64) {
	if u == nil {
		return 0
	}
	for i := range u.Status.Admissions {
		pods += int64(u.Status.Admissions[i].Replicas)
	}
	return pods
}
