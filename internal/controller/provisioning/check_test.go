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
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// checkerOf answers checks on objects in memory, and the ProvisioningRequestConfig "config".
func checkerOf(t *testing.T, funcs interceptor.Funcs) *checker {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, autoscalingv1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).
		WithIndex(&autoscalingv1.ProvisioningRequest{}, byController, controllerOf).
		WithObjects(&v1beta1.ProvisioningRequestConfig{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Spec: *theConfig()},
			&v1beta1.ProvisioningRequestConfig{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}).Build()
	return &checker{client: objects, live: objects, config: v1beta1.SchemeGroupVersion.WithKind(configKind.Kind)}
}

func checkWith(group, kind, name string) *v1beta1.AdmissionCheck {
	return &v1beta1.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: theCheck},
		Spec: v1beta1.AdmissionCheckSpec{Parameters: &v1beta1.AdmissionCheckParametersReference{
			APIGroup: group, Kind: kind, Name: name}},
	}
}

func (c *checker) made(t *testing.T) (requests, templates []string) {
	t.Helper()
	list, pods := &autoscalingv1.ProvisioningRequestList{}, &corev1.PodTemplateList{}
	require.NoError(t, c.client.List(t.Context(), list))
	require.NoError(t, c.client.List(t.Context(), pods))
	for i := range list.Items {
		requests = append(requests, list.Items[i].Name)
	}
	for i := range pods.Items {
		templates = append(templates, pods.Items[i].Name)
	}
	return requests, templates
}

// One request for each reservation, with its templates, however often the check is asked; none once nothing is held.
func TestOneRequestForEachReservation(t *testing.T) {
	c := checkerOf(t, interceptor.Funcs{})
	unit, check := reserved(), checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "config")
	for attempt := range int64(3) {
		unit.Status.Attempts = attempt + 1
		name := requestName(unit, theCheck)
		for range 3 {
			a, err := c.check(t.Context(), unit, check)
			require.NoError(t, err)
			require.Equal(t, admissioncheck.Pending, a.State)
			requests, templates := c.made(t)
			require.Equal(t, []string{name}, requests)
			require.Contains(t, templates, name+"-0", "they are there as soon as the autoscaler can know of the request")
			require.Contains(t, templates, name+"-1")
		}
	}
	other := reserved()
	other.Name, other.UID = "other", "u-2"
	_, err := c.check(t.Context(), other, check)
	require.NoError(t, err)
	require.NoError(t, c.idle(t.Context(), unit))
	requests, _ := c.made(t)
	require.Equal(t, []string{requestName(other, theCheck)}, requests, "that of another unit stays")
	require.NoError(t, c.idle(t.Context(), unit))
}

// A cache that is behind does not know the request that was just made.
func TestACacheThatIsBehind(t *testing.T) {
	behind := false
	c := checkerOf(t, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*autoscalingv1.ProvisioningRequestList); ok && behind {
				return nil
			}
			return w.List(ctx, list, opts...)
		},
		Get: func(
			ctx context.Context, w client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption,
		) error {
			if _, ok := object.(*autoscalingv1.ProvisioningRequest); ok && behind {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return w.Get(ctx, key, object, opts...)
		},
	})
	unit, check := reserved(), checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "config")
	_, err := c.check(t.Context(), unit, check)
	require.NoError(t, err)
	behind = true
	a, err := c.check(t.Context(), unit, check)
	require.NoError(t, err)
	require.Equal(t, admissioncheck.Pending, a.State)
	behind = false
	requests, templates := c.made(t)
	require.Len(t, requests, 1)
	require.Len(t, templates, 2)
}

// A refusal of the API server rejects the check if it is final, and otherwise is reported for now.
func TestTheAPIServerRefuses(t *testing.T) {
	var refusal error
	c := checkerOf(t, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if _, ok := object.(*corev1.PodTemplate); ok && refusal != nil {
				return refusal
			}
			return w.Create(ctx, object, opts...)
		},
	})
	unit, check := reserved(), checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "config")
	refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "podtemplates"}, "x", nil)
	a, err := c.check(t.Context(), unit, check)
	require.NoError(t, err)
	require.Equal(t, admissioncheck.Pending, a.State)
	require.Contains(t, a.Message, "podtemplates")
	require.Equal(t, lookAgain, a.RequeueAfter)
	refusal = apierrors.NewInternalError(context.Canceled)
	_, err = c.check(t.Context(), unit, check)
	require.Error(t, err)
	refusal = apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "x", nil)
	a, err = c.check(t.Context(), unit, check)
	require.NoError(t, err)
	require.Equal(t, admissioncheck.Rejected, a.State)
	require.Contains(t, a.Message, "PodTemplate")
	refusal = nil
	_, err = c.check(t.Context(), unit, check)
	require.NoError(t, err)
	_, templates := c.made(t)
	require.Len(t, templates, 2, "what was missing is made later")
}

func TestParametersAreValidated(t *testing.T) {
	c := checkerOf(t, interceptor.Funcs{})
	config := checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "config")
	require.NoError(t, c.validate(t.Context(), config))
	for why, check := range map[string]*v1beta1.AdmissionCheck{
		"has to name a ProvisioningRequestConfig": {},
		"of kueue.x-k8s.io":                       checkWith("example.com", "ProvisioningRequestConfig", "config"),
		"to name a":                               checkWith(v1beta1.GroupName, "Budget", "config"),
		`"none" does not exist`:                   checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "none"),
		"has no provisioningClassName":            checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "empty"),
	} {
		require.ErrorContains(t, c.validate(t.Context(), check), why)
		a, err := c.check(t.Context(), reserved(), check)
		require.NoError(t, err, "a unit waits for it")
		require.Equal(t, admissioncheck.Pending, a.State)
	}
	odd := &unstructured.Unstructured{}
	odd.SetGroupVersionKind(c.config)
	odd.SetName("odd")
	odd.Object["spec"] = map[string]any{"provisioningClassName": "x", "managedResources": "all"}
	_, err := decodeConfig(odd)
	require.ErrorContains(t, err, "cannot be read")
}

// Every write fails once before it is applied and once after it, as if the process died or the answer was lost. The
// next attempt comes to the same result (I8).
func TestEveryWriteFails(t *testing.T) {
	without, writes := lifeOf(t, 0, false)
	require.Contains(t, without, "Retry")
	require.Contains(t, without, "Ready")
	require.Equal(t, "[] left", without[len(without)-1])
	require.GreaterOrEqual(t, writes, 8, "two requests with two templates each are made and deleted")
	for n := 1; n <= writes; n++ {
		for _, made := range []bool{false, true} {
			story, _ := lifeOf(t, n, made)
			require.Equal(t, without, story, "write %d, made: %t", n, made)
		}
	}
}

// lifeOf is what becomes of a unit whose first request fails and whose second one is provisioned, and how many writes
// that takes. The n-th of them returns an error, whether it is made or not.
func lifeOf(t *testing.T, n int, made bool) (story []string, writes int) {
	t.Helper()
	write := func(do func() error) error {
		if writes++; writes != n {
			return do()
		}
		if made {
			require.NoError(t, do())
		}
		return errors.New("connection reset by peer")
	}
	c := checkerOf(t, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			return write(func() error { return w.Create(ctx, object, opts...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return w.Delete(ctx, object, opts...) })
		},
	})
	again := func(do func() error) {
		t.Helper()
		if do() != nil {
			require.NoError(t, do(), "one write fails")
		}
	}
	unit, check := reserved(), checkWith(v1beta1.GroupName, "ProvisioningRequestConfig", "config")
	ask := func() {
		t.Helper()
		again(func() error {
			a, err := c.check(t.Context(), unit, check)
			if err == nil {
				story = append(story, string(a.State))
			}
			return err
		})
	}
	for i, outcome := range []string{autoscalingv1.Failed, autoscalingv1.Provisioned} {
		unit.Status.Attempts = int64(i + 1)
		ask()
		requests, templates := c.made(t)
		story = append(story, fmt.Sprint(requests, templates))
		request := &autoscalingv1.ProvisioningRequest{}
		key := client.ObjectKey{Namespace: unit.Namespace, Name: requestName(unit, theCheck)}
		require.NoError(t, c.client.Get(t.Context(), key, request))
		meta.SetStatusCondition(&request.Status.Conditions,
			metav1.Condition{Type: outcome, Status: metav1.ConditionTrue, Reason: outcome})
		require.NoError(t, c.client.Update(t.Context(), request))
		ask()
		again(func() error { return c.idle(t.Context(), unit) })
	}
	requests, _ := c.made(t)
	return append(story, fmt.Sprint(requests, " left")), writes
}
