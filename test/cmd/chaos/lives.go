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

package main

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// lives judges, state by state, how units and jobs live (I2, I3, I9). Nobody holds, resizes or relabels anything in a
// run, so no unit is ever replaced and no admission taken back.
type lives struct {
	units      map[string]unitLife // by UID
	jobs       map[string]bool     // by UID, those that exist: whether they are suspended
	unitOf     map[string]string   // UID of a job -> UID of the unit that it has or had
	violations []checker.Violation
}

// unitLife is what the life of a unit is judged by.
type unitLife struct {
	phase    admission.Phase
	attempts int64
	dequeued map[int64]int // attempts -> how often it became Dequeued
}

// The rules of the lives of units and jobs.
const (
	dequeuedTwice checker.Rule = "DequeuedTwice"
	illegalPhase  checker.Rule = "IllegalPhase"
	attemptsFell  checker.Rule = "AttemptsFell"
	// unitLost: the unit of a job was deleted, and with it its place and what it held.
	unitLost checker.Rule = "UnitLost"
	// secondUnit: a job got another unit than its first.
	secondUnit checker.Rule = "SecondUnit"
	// resumedUnadmitted: a job was resumed while its unit held nothing.
	resumedUnadmitted checker.Rule = "ResumedUnadmitted"
	// suspendedAdmitted: a job was suspended while its unit was admitted.
	suspendedAdmitted checker.Rule = "SuspendedAdmitted"
)

func newLives() *lives {
	return &lives{units: map[string]unitLife{}, jobs: map[string]bool{}, unitOf: map[string]string{}}
}

func (l *lives) report(rule checker.Rule, subject, format string, args ...any) {
	l.violations = append(l.violations,
		checker.Violation{Rule: rule, Subject: subject, Message: fmt.Sprintf(format, args...)})
}

// unit takes the next state of a unit, its last one if it was deleted.
func (l *lives) unit(u *v1alpha1.QueueUnit, deleted bool) {
	key, uid, job := u.Namespace+"/"+u.Name, string(u.UID), ""
	if u.Spec.ConsumerRef != nil {
		job = string(u.Spec.ConsumerRef.UID)
	}
	_, exists := l.jobs[job]
	if deleted {
		if exists {
			l.report(unitLost, key, "was deleted in phase %s while its job was there", u.Status.Phase)
		}
		return
	}
	// A unit may be made anew on old news of a job that is gone. That it goes, too, is checked at the end.
	if first := l.unitOf[job]; exists && first != "" && first != uid {
		l.report(secondUnit, key, "is not the first unit of its job")
	}
	l.unitOf[job] = uid
	was, known := l.units[uid]
	if !known {
		was.dequeued = map[int64]int{}
	}
	is := unitLife{phase: admission.Phase(u.Status.Phase), attempts: u.Status.Attempts, dequeued: was.dequeued}
	if is.phase != was.phase {
		if known && !was.phase.CanBecome(is.phase, admission.WriterScheduler) &&
			!was.phase.CanBecome(is.phase, admission.WriterController) {
			l.report(illegalPhase, key, "%q became %q", was.phase, is.phase)
		}
		if is.phase == admission.PhaseDequeued {
			if is.dequeued[is.attempts]++; is.dequeued[is.attempts] > 1 {
				l.report(dequeuedTwice, key, "became Dequeued %d times in attempt %d", is.dequeued[is.attempts], is.attempts)
			}
		}
	}
	if is.attempts < was.attempts {
		l.report(attemptsFell, key, "from %d to %d", was.attempts, is.attempts)
	}
	l.units[uid] = is
}

// job takes the next state of a job.
func (l *lives) job(j *batchv1.Job, deleted bool) {
	uid := string(j.UID)
	if deleted {
		delete(l.jobs, uid)
		return
	}
	was, known := l.jobs[uid]
	is := j.Spec.Suspend != nil && *j.Spec.Suspend
	phase := l.units[l.unitOf[uid]].phase
	switch {
	case known && was && !is && !phase.Holds():
		l.report(resumedUnadmitted, j.Namespace+"/"+j.Name, "was resumed while its unit was %q", phase)
	case known && !was && is && phase.Holds():
		l.report(suspendedAdmitted, j.Namespace+"/"+j.Name, "was suspended while its unit was %q", phase)
	}
	l.jobs[uid] = is
}
