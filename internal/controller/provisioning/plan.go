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

package provisioning

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Where a configuration does not say how often capacity is asked for again; as in Kueue.
const (
	defaultRetries     = 3
	defaultBackoff     = time.Minute
	defaultMostBackoff = 30 * time.Minute
)

// lookAgain is when to look again at what no event tells of.
const lookAgain = 30 * time.Second

// observed is what a plan is made of. Nothing of it is changed.
type observed struct {
	unit   *v1alpha1.QueueUnit
	check  string
	config *v1beta1.ProvisioningRequestConfigSpec // nil: there is none
	// requests are those that the unit controls, and that of the present reservation, no matter what it belongs to.
	requests []autoscalingv1.ProvisioningRequest
	// templates that exist, by name, of those that the request of the present reservation names.
	templates map[string]*corev1.PodTemplate
}

// plan has the steps, in this order, and the answer.
type plan struct {
	deleteRequests  []*autoscalingv1.ProvisioningRequest
	createRequest   *autoscalingv1.ProvisioningRequest
	createTemplates []*corev1.PodTemplate
	answer          admissioncheck.Answer
}

// planFor decides about one check of a unit that holds quota.
func planFor(o *observed) (p plan) {
	p.deleteRequests = former(o)
	if unit.Phase(o.unit.Status.Phase).Releases() {
		p.answer = o.withdrawal()
		return p
	}
	name := requestName(o.unit, o.check)
	switch {
	case o.config == nil:
		p.answer = pending("its ProvisioningRequestConfig does not exist")
		return p
	case len(o.unit.Spec.PodSets) == 0:
		p.answer = rejected("the unit has no pod sets that capacity could be asked for")
		return p
	}
	sets, err := podSetsOf(o.unit, o.config, name)
	switch {
	case err != nil:
		p.answer = rejected(err.Error())
	case len(sets) == 0:
		p.answer = admissioncheck.Answer{
			State: admissioncheck.Ready, Message: "no pod set asks for what the autoscaler manages",
		}
	default:
		p.provide(o, name, sets)
	}
	return p
}

// provide has capacity asked for, and answers as the autoscaler does.
func (p *plan) provide(o *observed, name string, sets []podSet) {
	want, have := newRequest(o.unit, name, o.config, sets), o.request(name)
	switch {
	case have == nil:
		p.createRequest = want
		p.answer = pending(fmt.Sprintf("capacity is asked for with ProvisioningRequest %q", name))
	case have.DeletionTimestamp != nil:
		p.answer = pending(fmt.Sprintf("ProvisioningRequest %q is being deleted; it is created again", name))
	case !metav1.IsControlledBy(have, o.unit):
		p.answer = pending(fmt.Sprintf("ProvisioningRequest %q is somebody else's", name))
		p.answer.RequeueAfter = lookAgain
	case !asksFor(&have.Spec, &want.Spec):
		p.deleteRequests = append(p.deleteRequests, have)
		p.answer = pending(fmt.Sprintf("ProvisioningRequest %q asks for something else; it is created again", name))
	default:
		p.answer = o.answer(have, sets)
		if other := o.otherContent(have, sets, p.answer.State); other != nil {
			p.answer = o.again(other)
			return
		}
		p.describe(o, have, sets)
	}
}

// describe creates the templates that a request names. A template of an earlier request of the name is deleted with
// that request.
func (p *plan) describe(o *observed, request *autoscalingv1.ProvisioningRequest, sets []podSet) {
	if p.answer.State != admissioncheck.Pending {
		return // the autoscaler has read them
	}
	for i := range sets {
		switch have := o.templates[sets[i].template.Name]; {
		case have == nil:
			p.createTemplates = append(p.createTemplates, newTemplate(request, &sets[i]))
		case metav1.IsControlledBy(have, request):
		case have.Labels[v1alpha1.LabelCreatedBy] != v1alpha1.CreatedByController:
			p.answer = pending(fmt.Sprintf("PodTemplate %q is somebody else's", have.Name))
			p.answer.RequeueAfter = lookAgain
			return
		default:
			p.answer.RequeueAfter = time.Second // no event tells when it is gone
		}
	}
}

// otherContent finds a template that differs from the pods of its set. A foreign template is waited out before the
// autoscaler answers, and does not count for the pods afterwards.
func (o *observed) otherContent(
	request *autoscalingv1.ProvisioningRequest, sets []podSet, state v1alpha1.CheckState,
) *metav1.Condition {
	if state != admissioncheck.Pending && state != admissioncheck.Ready {
		return nil // capacity is asked for again anyway
	}
	for i := range sets {
		have := o.templates[sets[i].template.Name]
		if have == nil || state == admissioncheck.Pending && !metav1.IsControlledBy(have, request) {
			continue
		}
		if !sameForScheduling(&have.Template, &sets[i].pods) {
			return &metav1.Condition{Type: "TemplateDiffers", Message: fmt.Sprintf(
				"PodTemplate %q does not ask for what the pods of set %q ask for", have.Name, sets[i].name)}
		}
	}
	return nil
}

// former are requests of the unit that are about no check of the present reservation.
func former(o *observed) (out []*autoscalingv1.ProvisioningRequest) {
	present := map[string]bool{}
	for i := range o.unit.Status.AdmissionChecks {
		present[requestName(o.unit, o.unit.Status.AdmissionChecks[i].Name)] = true
	}
	for i := range o.requests {
		r := &o.requests[i]
		if metav1.IsControlledBy(r, o.unit) && r.DeletionTimestamp == nil && !present[r.Name] {
			out = append(out, r)
		}
	}
	return out
}

func (o *observed) request(name string) *autoscalingv1.ProvisioningRequest {
	for i := range o.requests {
		if o.requests[i].Name == name {
			return &o.requests[i]
		}
	}
	return nil
}

// answer reads the autoscaler's answer about the request of a reserved unit. Failures win over successes, because they
// come later.
func (o *observed) answer(r *autoscalingv1.ProvisioningRequest, sets []podSet) admissioncheck.Answer {
	for _, bad := range []string{autoscalingv1.Failed, autoscalingv1.CapacityRevoked, autoscalingv1.BookingExpired} {
		if c := isTrue(r, bad); c != nil {
			return o.again(c)
		}
	}
	if c := isTrue(r, autoscalingv1.Provisioned); c != nil {
		return o.ready(r, c, sets)
	}
	for _, kind := range []string{autoscalingv1.Provisioned, autoscalingv1.Accepted} {
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil && c.Message != "" {
			return pending(c.Message)
		}
	}
	return pending(fmt.Sprintf("capacity is asked for with ProvisioningRequest %q", r.Name))
}

// withdrawal reads the autoscaler's answer about the request of a released unit. Revoked capacity does not come back
// for its pods. An expired booking does not matter to a job that runs, because its pods use the capacity. If the job
// does not run, others may have taken it. All other conditions come too late.
func (o *observed) withdrawal() (a admissioncheck.Answer) {
	r := o.request(requestName(o.unit, o.check))
	if r == nil || !metav1.IsControlledBy(r, o.unit) {
		return a
	}
	if c := isTrue(r, autoscalingv1.CapacityRevoked); c != nil {
		return o.again(c)
	}
	if c := isTrue(r, autoscalingv1.BookingExpired); c != nil && !started(o.unit) {
		return o.again(c)
	}
	return a
}

// started says that pods of the job use nodes.
func started(qu *v1alpha1.QueueUnit) bool {
	if qu.Status.Phase == v1alpha1.PhaseRunning ||
		meta.IsStatusConditionTrue(qu.Status.Conditions, v1alpha1.ConditionPodsReady) {
		return true
	}
	for i := range qu.Status.Admissions {
		if qu.Status.Admissions[i].Running > 0 {
			return true
		}
	}
	return false
}

// again has capacity asked for again later, as often as the configuration says.
func (o *observed) again(why *metav1.Condition) admissioncheck.Answer {
	s := &v1beta1.ProvisioningRequestRetryStrategy{}
	if o.config != nil && o.config.RetryStrategy != nil {
		s = o.config.RetryStrategy
	}
	message := why.Type
	if why.Message != "" {
		message += ": " + why.Message
	}
	retries, limit := o.retries(), ptr.Deref(s.BackoffLimitCount, defaultRetries)
	if retries >= limit {
		return rejected(fmt.Sprintf("%s; capacity was asked for %d times, which is as often as may be", message, retries+1))
	}
	wait, most := seconds(s.BackoffBaseSeconds, defaultBackoff), seconds(s.BackoffMaxSeconds, defaultMostBackoff)
	for n := int32(0); n < retries && 0 < wait && wait < most; n++ {
		wait *= 2
	}
	wait = max(min(wait, most), time.Second)
	return admissioncheck.Answer{State: admissioncheck.Retry, Message: message, RequeueAfter: wait}
}

// retries are those since all pods of the job were ready.
func (o *observed) retries() int32 {
	if unit.Phase(o.unit.Status.Phase).Releases() &&
		meta.IsStatusConditionTrue(o.unit.Status.Conditions, v1alpha1.ConditionPodsReady) {
		return 0
	}
	for i := range o.unit.Status.AdmissionChecks {
		if of := &o.unit.Status.AdmissionChecks[i]; of.Name == o.check {
			return max(ptr.Deref(of.RetryCount, 0), 0)
		}
	}
	return 0
}

// ready releases the job, with the pod updates for the provisioned capacity.
func (o *observed) ready(
	r *autoscalingv1.ProvisioningRequest, c *metav1.Condition, sets []podSet,
) admissioncheck.Answer {
	a := admissioncheck.Answer{State: admissioncheck.Ready, Message: c.Message}
	var selector map[string]string
	if u := o.config.PodSetUpdates; u != nil && len(u.NodeSelector) > 0 {
		selector = map[string]string{}
		for _, of := range u.NodeSelector {
			detail, said := r.Status.ProvisioningClassDetails[of.ValueFromProvisioningClassDetail]
			if !said {
				return pending(fmt.Sprintf("provisioned, without the detail %q that its pods need",
					of.ValueFromProvisioningClassDetail))
			}
			selector[of.Key] = string(detail)
		}
	}
	for i := range sets {
		a.PodSetUpdates = append(a.PodSetUpdates, v1alpha1.PodSetUpdate{
			Name: sets[i].name, NodeSelector: selector, Annotations: map[string]string{
				autoscalingv1.AnnotationConsume: r.Name,
				autoscalingv1.AnnotationClass:   r.Spec.ProvisioningClassName,
			},
		})
	}
	return a
}

func isTrue(r *autoscalingv1.ProvisioningRequest, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(r.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

func seconds(n *int32, byDefault time.Duration) time.Duration {
	if n == nil {
		return byDefault
	}
	return time.Duration(max(*n, 0)) * time.Second
}

func pending(message string) admissioncheck.Answer {
	return admissioncheck.Answer{State: admissioncheck.Pending, Message: message}
}

func rejected(message string) admissioncheck.Answer {
	return admissioncheck.Answer{State: admissioncheck.Rejected, Message: message}
}
