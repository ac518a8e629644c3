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
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// byController indexes requests by the UID of the object that controls them.
const byController = "controllerUID"

func controllerOf(object client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// configKind is the kind of the parameters, in any version.
var configKind = schema.GroupKind{Group: v1beta1.GroupName, Kind: "ProvisioningRequestConfig"}

type checker struct {
	// client reads requests from a cache. live reads templates, of which there may be many that are somebody else's.
	client client.Client
	live   client.Reader
	// config is configKind in the version that is installed.
	config schema.GroupVersionKind
}

// check is an admissioncheck.Func.
func (c *checker) check(
	ctx context.Context, unit *v1alpha1.QueueUnit, check *v1beta1.AdmissionCheck,
) (admissioncheck.Answer, error) {
	o := &observed{unit: unit, check: check.Name}
	if err := c.observe(ctx, o, check); err != nil {
		return admissioncheck.Answer{}, err
	}
	p := planFor(o)
	made, err := c.carryOut(ctx, &p)
	if err != nil {
		return answerTo(err)
	}
	if made == nil {
		return p.answer, nil
	}
	// The autoscaler reads the templates as soon as it sees the request.
	o.requests = append(o.requests, *made)
	if err := c.findTemplates(ctx, o); err != nil {
		return admissioncheck.Answer{}, err
	}
	p = planFor(o)
	if _, err := c.carryOut(ctx, &plan{createTemplates: p.createTemplates}); err != nil {
		return answerTo(err)
	}
	return p.answer, nil
}

func (c *checker) observe(ctx context.Context, o *observed, check *v1beta1.AdmissionCheck) error {
	config, err := c.configOf(ctx, check)
	if err != nil && !errors.Is(err, errParameters) {
		return err
	}
	o.config = config
	list := &autoscalingv1.ProvisioningRequestList{}
	err = c.client.List(ctx, list, client.InNamespace(o.unit.Namespace),
		client.MatchingFields{byController: string(o.unit.UID)})
	if err != nil {
		return err
	}
	o.requests = list.Items
	name := requestName(o.unit, o.check)
	if o.request(name) == nil {
		r := &autoscalingv1.ProvisioningRequest{}
		err := c.client.Get(ctx, types.NamespacedName{Namespace: o.unit.Namespace, Name: name}, r)
		if err == nil {
			o.requests = append(o.requests, *r)
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.findTemplates(ctx, o)
}

// findTemplates reads those of the present request.
func (c *checker) findTemplates(ctx context.Context, o *observed) error {
	o.templates = map[string]*corev1.PodTemplate{}
	r := o.request(requestName(o.unit, o.check))
	if r == nil || o.unit.Status.Phase != v1alpha1.PhaseReserved {
		return nil
	}
	for _, set := range r.Spec.PodSets[:min(len(r.Spec.PodSets), len(o.unit.Spec.PodSets))] {
		template := &corev1.PodTemplate{}
		err := c.live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: set.PodTemplateRef.Name}, template)
		if err == nil {
			o.templates[template.Name] = template
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// carryOut carries out a plan, and returns the request that it created. An object that exists or is gone already is no
// error, because caches are behind.
func (c *checker) carryOut(ctx context.Context, p *plan) (made *autoscalingv1.ProvisioningRequest, err error) {
	for _, r := range p.deleteRequests {
		if err := c.remove(ctx, r); err != nil {
			return nil, err
		}
	}
	if p.createRequest != nil {
		err := c.client.Create(ctx, p.createRequest)
		if err == nil {
			made = p.createRequest
		} else if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	for _, t := range p.createTemplates {
		if err := c.client.Create(ctx, t); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return made, nil
}

func (c *checker) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		return nil // another object has the name now
	}
	return client.IgnoreNotFound(err)
}

// answerTo an error of the API server: a final refusal rejects the check, and any other is reported.
func answerTo(err error) (admissioncheck.Answer, error) {
	switch {
	case apierrors.IsInvalid(err):
		return rejected("capacity cannot be asked for: " + err.Error()), nil
	case apierrors.IsForbidden(err):
		a := pending("capacity cannot be asked for: " + err.Error())
		a.RequeueAfter = lookAgain
		return a, nil
	default:
		return admissioncheck.Answer{}, err
	}
}

// idle deletes the requests of a unit that holds no quota: what they booked is for others.
func (c *checker) idle(ctx context.Context, unit *v1alpha1.QueueUnit) error {
	list := &autoscalingv1.ProvisioningRequestList{}
	err := c.client.List(ctx, list, client.InNamespace(unit.Namespace),
		client.MatchingFields{byController: string(unit.UID)})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			err = errors.Join(err, c.remove(ctx, &list.Items[i]))
		}
	}
	return err
}

// errParameters: the parameters of a check are invalid.
var errParameters = errors.New("spec.parameters")

// validate is Controller.Validate.
func (c *checker) validate(ctx context.Context, check *v1beta1.AdmissionCheck) error {
	_, err := c.configOf(ctx, check)
	return err
}

func (c *checker) configOf(
	ctx context.Context, check *v1beta1.AdmissionCheck,
) (*v1beta1.ProvisioningRequestConfigSpec, error) {
	p := check.Spec.Parameters
	if p == nil || p.APIGroup != configKind.Group || p.Kind != configKind.Kind || p.Name == "" {
		return nil, fmt.Errorf("%w has to name a %s of %s", errParameters, configKind.Kind, configKind.Group)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(c.config)
	if err := c.client.Get(ctx, types.NamespacedName{Name: p.Name}, u); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: %s %q does not exist", errParameters, configKind.Kind, p.Name)
		}
		return nil, err
	}
	return decodeConfig(u)
}

func decodeConfig(u *unstructured.Unstructured) (*v1beta1.ProvisioningRequestConfigSpec, error) {
	config := &v1beta1.ProvisioningRequestConfig{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, config); err != nil {
		return nil, fmt.Errorf("%w: %s %q cannot be read: %w", errParameters, configKind.Kind, u.GetName(), err)
	}
	if config.Spec.ProvisioningClassName == "" {
		return nil, fmt.Errorf("%w: %s %q has no provisioningClassName", errParameters, configKind.Kind, u.GetName())
	}
	return &config.Spec, nil
}
