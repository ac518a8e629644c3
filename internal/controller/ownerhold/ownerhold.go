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

// Package ownerhold says whether the owner of a job keeps the job from running. It is pure: it has neither a client nor
// a clock.
//
// The owner of a job can put it on hold: the job keeps its position and holds no quota. A running job first gives back
// its quota and is then suspended, like every job that loses its admission. A job that cannot be suspended can be put
// on hold only while it waits.
//
// A job that its owner suspends while it runs is on hold as well. Such a job looks like a job that was created
// suspended, and like a suspended job in an outdated cache. To tell them apart, the write that resumes a job stamps it
// with its unit and attempt. If a suspended job has the stamp of the present attempt and no mark of the controller,
// somebody else suspended it.
package ownerhold

import (
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Problem of a job that its owner holds; nil if he does not. Own is the unit of the job, nil if it has none. Requeues
// says that the queue has a job wait again that its owner suspends, and does not hold it.
func Problem(job *jobs.Job, own *v1alpha1.QueueUnit, requeues bool) *jobunit.Problem {
	runs := own != nil && unit.Phase(own.Status.Phase).Releases()
	switch key := Key(job); {
	case key != "" && (!runs || jobs.CanBeSuspended(job) && job.Invalid() == ""):
		return &jobunit.Problem{
			Reason:  unitcondition.ReasonHeldByOwner,
			Message: "the annotation " + key + " holds the job; the job keeps its position",
		}
	case !requeues && Suspended(job, own):
		return &jobunit.Problem{
			Reason: unitcondition.ReasonSuspendedByOwner,
			Message: "the owner suspended the job; it keeps its position until its owner resumes it, " +
				"or is annotated with " + v1alpha1.AnnotationHold + "=false",
		}
	default:
		return nil
	}
}

// Key is the annotation by which the owner holds the job, "" if none does. The former one counts without the other.
func Key(job *jobs.Job) string {
	annotations := job.Object.GetAnnotations()
	switch hold, said := annotations[v1alpha1.AnnotationHold]; {
	case hold == "true":
		return v1alpha1.AnnotationHold
	case !said && annotations[v1alpha1.AnnotationActive] == "false":
		return v1alpha1.AnnotationActive
	default:
		return ""
	}
}

// Suspended says that somebody else than the controller has suspended the job since its own unit was admitted last. A
// job that was adopted has never been resumed by the controller.
func Suspended(job *jobs.Job, own *v1alpha1.QueueUnit) bool {
	switch {
	case own == nil || !Stopped(job, own):
		return false
	case Stamped(job):
		return Resumed(job, own)
	default:
		return own.Status.Attempts == 1 && unitstatus.LostToOthers(own) == nil // the job was adopted
	}
}

// Stopped says that the job was let go once, or was adopted, and is suspended without the mark of the controller.
func Stopped(job *jobs.Job, own *v1alpha1.QueueUnit) bool {
	return jobs.CanBeSuspended(job) && job.Suspended() && !job.SuspendedByUs() &&
		(Stamped(job) || own.Annotations[v1alpha1.AnnotationAdopted] != "")
}

// Stamp is what the write that resumes a job puts into it: the unit and its attempt.
func Stamp(u *v1alpha1.QueueUnit) string {
	return fmt.Sprintf("%s/%d", u.UID, u.Status.Attempts)
}

// Stamped says that the job has a stamp, of any attempt.
func Stamped(job *jobs.Job) bool {
	_, stamped := job.Object.GetAnnotations()[v1alpha1.AnnotationResumed]
	return stamped
}

// Resumed says that the job was resumed for the present attempt of its unit.
func Resumed(job *jobs.Job, own *v1alpha1.QueueUnit) bool {
	return job.Object.GetAnnotations()[v1alpha1.AnnotationResumed] == Stamp(own)
}
