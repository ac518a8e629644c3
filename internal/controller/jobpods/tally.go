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

package jobpods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

const (
	// stallPage bounds what is in memory of the pods of a job, and stallPages how many pages one look reads.
	stallPage  = 50
	stallPages = 10
)

// Tally counts the pods of a job that does not run. queues says of a pod without an owner whether it is queued.
func Tally(
	ctx context.Context, live client.Reader, kind *jobkind.Kind, queues func(metav1.Object) bool, job *jobs.Job,
	into *stall.Tally,
) error {
	namespace, selector := job.Object.GetNamespace(), job.PodSelector()
	if kind.OfPods() {
		selector = labels.SelectorFromSet(labels.Set{podgroup.LabelName: job.Object.GetName()})
	}
	if _, selects := selector.Requirements(); !selects {
		return nil
	}
	owners := ownership{
		live: live, kind: kind, namespace: namespace, controllers: map[types.UID]*metav1.OwnerReference{},
	}
	next := ""
	for range stallPages {
		page := &corev1.PodList{}
		err := live.List(ctx, page, client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: selector}, client.Limit(stallPage), client.Continue(next),
			client.MatchingFieldsSelector{
				Selector: fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			})
		if err != nil {
			return err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			belongs := kind.OfPods() && queues(pod)
			if !kind.OfPods() {
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
			return alone(ctx, live, kind, queues, job, into)
		}
	}
	into.Partial = true
	return nil
}

// alone adds the pod that is a group by itself: it has the name of its group, and no label.
func alone(
	ctx context.Context, live client.Reader, kind *jobkind.Kind, queues func(metav1.Object) bool, job *jobs.Job,
	into *stall.Tally,
) error {
	if !kind.OfPods() || into.Pods() > 0 {
		return nil
	}
	pod := &corev1.Pod{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(job.Object), pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	if podgroup.NameOf(pod) == pod.Name && queues(pod) {
		into.Add(pod)
	}
	return nil
}
