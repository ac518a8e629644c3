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

// Package parts finds jobs that are queued by themselves although another job made them. Such a maker has no unit, and
// its controller does not resume the part. If a unit stands for the maker, it has the quota of all its parts.
package parts

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Makers finds the units of those that made jobs.
type Makers struct {
	Predicate *managedjobs.Predicate
	// Unit reads a unit, nil if there is none.
	Unit func(context.Context, types.NamespacedName) (*v1alpha1.QueueUnit, error)
}

// AsEntered is the job by whose owners it is decided whether it is managed. A job that has a unit had no owner that
// made it a part when it entered the queue. Anybody who may write the job can name one later, and the job would go.
func (m Makers) AsEntered(ctx context.Context, job *jobs.Job, own *v1alpha1.QueueUnit) (*jobs.Job, error) {
	owner := metav1.GetControllerOfNoCopy(job.Object)
	if owner == nil {
		return job, nil
	}
	if jobunit.Relate(job, own) != jobunit.Own {
		if !m.Predicate.LeavesParts(job.Kind.GVK.GroupKind(), owner) {
			return job, nil
		}
		if stands, err := m.stands(ctx, job, owner); stands || err != nil {
			return job, err
		}
	}
	return Alone(job), nil
}

// stands says whether a unit that is not over stands for the owner of a job.
func (m Makers) stands(ctx context.Context, job *jobs.Job, owner *metav1.OwnerReference) (bool, error) {
	for _, kind := range managedjobs.LeftBy(m.Predicate, job.Kind.GVK.GroupKind()) {
		if kind.GVK.GroupKind() != managedjobs.GroupKind(*owner) {
			continue
		}
		key := types.NamespacedName{Namespace: job.Object.GetNamespace(), Name: kind.UnitName(owner.Name)}
		u, err := m.Unit(ctx, key)
		if err != nil || u != nil && standsFor(u) == owner.UID {
			return err == nil, err
		}
	}
	return false, nil
}

// standsFor is the job that has a unit which is not over; empty if the unit is over or has no job.
func standsFor(u *v1alpha1.QueueUnit) types.UID {
	if u.Spec.ConsumerRef == nil || unit.Phase(u.Status.Phase).Terminal() {
		return ""
	}
	return u.Spec.ConsumerRef.UID
}

// Alone is the job without its owners.
func Alone(job *jobs.Job) *jobs.Job {
	object := job.Object.DeepCopy()
	object.SetOwnerReferences(nil)
	return jobs.Open(job.Kind, object)
}

// Asleep says why no queue resumes a suspended job, which asks for a queue or not. It is empty if its maker can have a
// queue, or resumes the job anyway.
func Asleep(p *managedjobs.Predicate, job *jobs.Job, asks bool) string {
	owner := metav1.GetControllerOfNoCopy(job.Object)
	switch {
	case owner == nil:
		return managedjobs.NamesNoQueue
	case !asks || p.ManagesOwner(*owner):
		return ""
	default:
		return fmt.Sprintf("%s %s made the job and has to resume it, because no queue manages jobs of that kind",
			owner.Kind, owner.Name)
	}
}
