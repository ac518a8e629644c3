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

package standin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
)

// AnswersParameter of a ProvisioningRequest has the answers of Autoscaler. Answers are separated by ";", one for each
// request of an owner in turn, and the last one repeats. An answer is a list of steps, separated by ",". A step is a
// condition that becomes True (several in one write are joined by "+"), a time to wait, or "used". "used" waits until a
// pod that uses the capacity runs.
const AnswersParameter = "answers"

// usedStep waits for a pod.
const usedStep = "used"

// autoscalerPace is how often is looked for what no event tells of.
const autoscalerPace = 100 * time.Millisecond

// Autoscaler plays cluster-autoscaler for ProvisioningRequests. Facts: cluster-autoscaler's provreq processors. As
// there a request is not accepted before all of its PodTemplates exist, and its conditions are only added to.
//
// Left out: nodes. There are as many as a test makes.
type Autoscaler struct {
	// Client reads from the API server, Clock dates conditions.
	Client client.Client
	Clock  clock.PassiveClock

	mu sync.Mutex
	// requests of each owner in the order in which they were seen, and how many steps of each were taken.
	requests map[types.UID][]types.UID
	taken    map[types.UID]int
	last     map[types.UID]time.Time
}

// SetupWithManager starts it with the manager, whose scheme has to know ProvisioningRequests.
func (a *Autoscaler) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("standin-autoscaler").
		For(&autoscalingv1.ProvisioningRequest{}).Complete(reconcile.Func(a.reconcile))
}

func (a *Autoscaler) reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	r := &autoscalingv1.ProvisioningRequest{}
	if err := a.Client.Get(ctx, request.NamespacedName, r); err != nil {
		return result, client.IgnoreNotFound(err)
	}
	step, more := a.next(r)
	if !more || r.DeletionTimestamp != nil {
		return result, nil
	}
	result.RequeueAfter = autoscalerPace
	if may, err := a.may(ctx, r, step); err != nil || !may {
		return result, err
	}
	if _, waits := waitOf(step); step != usedStep && !waits {
		before := r.DeepCopy()
		for kind := range strings.SplitSeq(step, "+") {
			meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: "the stand-in says " + kind,
				LastTransitionTime: metav1.NewTime(a.Clock.Now()),
			})
		}
		if err := a.Client.Status().Patch(ctx, r, client.MergeFrom(before)); err != nil {
			return result, client.IgnoreNotFound(err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken[r.UID]++
	a.last[r.UID] = a.Clock.Now()
	return result, nil
}

// next is the step to take.
func (a *Autoscaler) next(r *autoscalingv1.ProvisioningRequest) (step string, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken == nil {
		a.requests, a.taken, a.last = map[types.UID][]types.UID{}, map[types.UID]int{}, map[types.UID]time.Time{}
	}
	owner := r.UID
	if of := metav1.GetControllerOfNoCopy(r); of != nil {
		owner = of.UID
	}
	if _, seen := a.taken[r.UID]; !seen {
		a.taken[r.UID] = 0
		a.requests[owner] = append(a.requests[owner], r.UID)
	}
	answers := strings.Split(string(r.Spec.Parameters[AnswersParameter]), ";")
	nth := 0
	for i, uid := range a.requests[owner] {
		if uid == r.UID {
			nth = min(i, len(answers)-1)
		}
	}
	steps := strings.Split(answers[nth], ",")
	if a.taken[r.UID] >= len(steps) || steps[0] == "" {
		return "", false
	}
	return steps[a.taken[r.UID]], true
}

// waitOf a step, if it is one.
func waitOf(step string) (d time.Duration, waits bool) {
	d, err := time.ParseDuration(step)
	return d, err == nil
}

// may says whether the step can be taken yet.
func (a *Autoscaler) may(ctx context.Context, r *autoscalingv1.ProvisioningRequest, step string) (bool, error) {
	if d, waits := waitOf(step); waits {
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.Clock.Now().Before(a.last[r.UID].Add(d)), nil
	}
	if step == usedStep {
		return a.used(ctx, r)
	}
	for _, set := range r.Spec.PodSets {
		template := &corev1.PodTemplate{}
		err := a.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: set.PodTemplateRef.Name}, template)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if len(template.Template.Spec.Containers) == 0 {
			return false, fmt.Errorf("PodTemplate %s has no containers", template.Name)
		}
	}
	return true, nil
}

// used says whether a pod that uses the capacity runs.
func (a *Autoscaler) used(ctx context.Context, r *autoscalingv1.ProvisioningRequest) (bool, error) {
	pods := &corev1.PodList{}
	if err := a.Client.List(ctx, pods, client.InNamespace(r.Namespace)); err != nil {
		return false, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Annotations[autoscalingv1.AnnotationConsume] == r.Name && p.Status.Phase == corev1.PodRunning {
			return true, nil
		}
	}
	return false, nil
}
