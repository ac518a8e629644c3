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

package estimate

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
)

// informers keep the handler of each type, and say so. They have profiles from the time on when absent is nil.
type informers struct {
	handlers map[reflect.Type]toolscache.ResourceEventHandler
	added    chan struct{}
	absent   error
}

type informer struct {
	controllertest.FakeInformer
	add func(toolscache.ResourceEventHandler)
}

func (i *informers) GetInformer(
	_ context.Context, o client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	if _, ok := o.(*v1alpha1.ClusterColocationProfile); ok && i.absent != nil {
		return nil, i.absent
	}
	return &informer{add: func(h toolscache.ResourceEventHandler) {
		i.handlers[reflect.TypeOf(o)] = h
		i.added <- struct{}{}
	}}, nil
}

func (i *informer) AddEventHandler(
	h toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.add(h)
	return nil, nil
}

// world has a waiting job in each of two namespaces.
type world struct {
	*informers
	t        *testing.T
	profiles *Profiles
	queue    priorityqueue.PriorityQueue[reconcile.Request]
}

func newWorld(t *testing.T, absent error) *world {
	i := &informers{
		handlers: map[reflect.Type]toolscache.ResourceEventHandler{}, added: make(chan struct{}, 10), absent: absent,
	}
	w := &world{
		informers: i, t: t, profiles: NewProfiles(i, &clocktesting.FakePassiveClock{}, nil),
		queue: priorityqueue.New[reconcile.Request]("test"),
	}
	t.Cleanup(w.queue.ShutDown)
	return w
}

func (w *world) waiting(_ context.Context, namespace string) (requests []reconcile.Request, err error) {
	for _, of := range []string{"one", "two"} {
		if namespace == "" || namespace == of {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: of, Name: "j"}})
		}
	}
	return requests, nil
}

// woken are the namespaces of the jobs that were put into the queue.
func (w *world) woken() (namespaces []string) {
	for w.queue.Len() > 0 {
		next, priority, _ := w.queue.GetWithPriority()
		require.Equal(w.t, handler.LowPriority, priority)
		w.queue.Done(next)
		namespaces = append(namespaces, next.Namespace)
	}
	return namespaces
}

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(amount)}
}

func hook(key string, bundle string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: ""}},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{CABundle: []byte(bundle)},
		}},
	}
}

func class(usual bool) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{GlobalDefault: usual}
}

func profile(qos string) *v1alpha1.ClusterColocationProfile {
	return &v1alpha1.ClusterColocationProfile{Spec: v1alpha1.ClusterColocationProfileSpec{QoSClass: qos}}
}

// A job whose request may have changed is looked at again when that changes, and not before something else happens.
func TestWaitingJobsAreWokenByAllThatTheyAreEstimatedWith(t *testing.T) {
	limits := func(amount string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "one"}, Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{DefaultRequest: cpu(amount)}},
		}}
	}
	runtime := func(amount string) *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{Overhead: &nodev1.Overhead{PodFixed: cpu(amount)}}
	}
	both := []string{"one", "two"}
	for name, tt := range map[string]struct {
		before, after, same client.Object
		woken               []string
	}{
		"LimitRange":    {limits("1"), limits("2"), limits("1000m"), []string{"one"}},
		"RuntimeClass":  {runtime("1"), runtime("2"), runtime("1"), both},
		"PriorityClass": {class(false), class(true), class(false), both},
		"webhook":       {hook("a", "x"), hook("b", "x"), hook("a", "renewed"), both},
		"profile":       {profile("BE"), profile("LS"), profile("BE"), both},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			require.NoError(t, w.profiles.Look(t.Context()))
			for _, s := range Sources(w, w.profiles, w.waiting) {
				require.NoError(t, s.Start(t.Context(), w.queue))
			}
			h := w.handlers[reflect.TypeOf(tt.before)]
			require.NotNil(t, h)
			h.OnAdd(tt.before, true)
			require.Empty(t, w.woken(), "it was there before the jobs")
			h.OnUpdate(tt.before, tt.same)
			require.Empty(t, w.woken(), "nothing has changed")
			h.OnAdd(tt.before, false)
			require.ElementsMatch(t, tt.woken, w.woken())
			h.OnUpdate(tt.before, tt.after)
			require.ElementsMatch(t, tt.woken, w.woken())
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: tt.after})
			require.ElementsMatch(t, tt.woken, w.woken())
		})
	}
}

// Jobs that were read while there was no CRD of profiles are read again when it has come.
func TestWaitingJobsAreWokenByTheFirstProfiles(t *testing.T) {
	w := newWorld(t, errors.New("no such kind"))
	require.Error(t, w.profiles.Look(t.Context()))
	require.NoError(t, profileSource{w.profiles, w.waiting}.Start(t.Context(), w.queue))
	w.absent = nil
	require.NoError(t, w.profiles.Look(t.Context()))
	<-w.added
	w.handlers[reflect.TypeOf(profile(""))].OnAdd(profile("BE"), true)
	require.ElementsMatch(t, []string{"one", "two"}, w.woken())
}
