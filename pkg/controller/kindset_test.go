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
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/sharedsource"
)

// cachedBy is a manager with a cache of informers that a test moves, and the objects of a world.
type cachedBy struct {
	manager.Manager
	shared  *informertest.FakeInformers
	objects client.Client
}

func (m cachedBy) GetCache() cache.Cache    { return m.shared }
func (m cachedBy) GetClient() client.Client { return m.objects }

// watching is a controller that keeps what it watches.
type watching struct {
	controller.Controller
	sources []source.Source
}

func (w *watching) Watch(of source.Source) error {
	w.sources = append(w.sources, of)
	return nil
}

// A job waits that is larger than its quota by a default of its namespace. It is looked at, and asks for less, once
// somebody has corrected that, though nothing happens to the job itself.
func TestAJobThatWaitsFollowsALimitRange(t *testing.T) {
	limits := func(memory string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "team"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"memory": resource.MustParse(memory)},
			}}},
		}
	}
	w := newWorld(t, newJob(), limits("50Gi"))
	w.settle()
	require.Equal(t, "100Gi", asks(w.unit())["memory"])

	shared := &informertest.FakeInformers{}
	set, c := KindSet{mgr: cachedBy{shared: shared, objects: w.base}}, &watching{}
	require.NoError(t, set.watch(c, &informertest.FakeInformers{}, w.r))
	queue := priorityqueue.New[reconcile.Request]("test")
	t.Cleanup(queue.ShutDown)
	for _, of := range c.sources {
		if s, ok := of.(*sharedsource.Source); ok {
			if _, ok := s.Object.(*corev1.LimitRange); ok {
				require.NoError(t, s.Start(t.Context(), queue))
			}
		}
	}
	informer, err := shared.FakeInformerFor(t.Context(), &corev1.LimitRange{})
	require.NoError(t, err)
	after := limits("1Gi")
	require.NoError(t, w.base.Delete(t.Context(), limits("50Gi")))
	w.create(after)
	informer.Update(limits("50Gi"), after)
	require.Equal(t, 1, queue.Len(), "jobs that are looked at")
	next, _ := queue.Get()
	require.Equal(t, request("team", "j"), next)
	w.reconcile()
	require.Equal(t, "2Gi", asks(w.unit())["memory"])
}
