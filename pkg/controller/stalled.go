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
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/podgroup"
)

// Pods and events of an admitted job that does not run are read from the API server, a page at a time. Nobody watches
// them: their number grows with the cluster, and few of them tell anything.

const (
	// stallsPerSecond is the pace of looks at all jobs together, and stallsAtOnce the burst.
	stallsPerSecond = 10
	stallsAtOnce    = 30
	// stallPage bounds what is in memory of the pods of a job, and stallPages how many pages one look reads.
	stallPage  = 50
	stallPages = 10
	// stallDelay is when a job is looked at for which there was no time.
	stallDelay = 5 * time.Second
)

// errStallPace: other jobs have used up the pace of looks.
var errStallPace = errors.New("looks at jobs that do not run have a pace")

// stalled finds out why an admitted job does not run.
func (o *observer) stalled(ctx context.Context, s *jobplan.Situation) (*stall.Finding, error) {
	if o.shared.Stalls != nil && !o.shared.Stalls.TryAccept() {
		return nil, errStallPace
	}
	admitted := s.Unit.Status.LastAllocateTime.Time
	tally := &stall.Tally{Admitted: admitted}
	if err := o.tally(ctx, s.Job, tally); err != nil {
		return nil, err
	}
	if want := admittedPods(s); !o.kind.OfPods() && int64(tally.Pods()) < want {
		tally.Refusal = o.refusal(ctx, s.Job, admitted.Truncate(time.Second))
	}
	found := tally.Finding()
	return &found, nil
}

func admittedPods(s *jobplan.Situation) (pods int64) {
	for i := range s.Unit.Status.Admissions {
		pods += s.Unit.Status.Admissions[i].Replicas
	}
	return pods
}

// tally the pods of a job.
func (o *observer) tally(ctx context.Context, job *jobs.Job, into *stall.Tally) error {
	namespace, selector := job.Object.GetNamespace(), job.PodSelector()
	if o.kind.OfPods() {
		selector = labels.SelectorFromSet(labels.Set{podgroup.LabelName: job.Object.GetName()})
	}
	if _, selects := selector.Requirements(); !selects {
		return nil
	}
	owners := ownership{o: o, namespace: namespace, controllers: map[types.UID]*metav1.OwnerReference{}}
	next := ""
	for range stallPages {
		page := &corev1.PodList{}
		err := o.live.List(ctx, page, client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: selector}, client.Limit(stallPage), client.Continue(next),
			client.MatchingFieldsSelector{
				Selector: fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			})
		if err != nil {
			return err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			belongs := o.kind.OfPods() && o.options.Predicate.QueuesPod(pod)
			if !o.kind.OfPods() {
				belongs, err = owners.leadTo(ctx, metav1.GetControllerOfNoCopy(pod), job.Object.GetUID())
			}
			if err != nil {
				return err
			}
			if belongs {
				into.Add(pod)
			}
		}
		if next = page.Continue; next == "" {
			return o.alone(ctx, job, into)
		}
	}
	into.Partial = true
	return nil
}

// alone adds the pod that is a group by itself: it has the name of its group, and no label.
func (o *observer) alone(ctx context.Context, job *jobs.Job, into *stall.Tally) error {
	if !o.kind.OfPods() || into.Pods() > 0 {
		return nil
	}
	pod := &corev1.Pod{}
	if err := o.live.Get(ctx, client.ObjectKeyFromObject(job.Object), pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	if podgroup.NameOf(pod) == pod.Name && o.options.Predicate.QueuesPod(pod) {
		into.Add(pod)
	}
	return nil
}
