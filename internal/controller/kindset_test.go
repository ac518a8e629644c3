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
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/sharedsource"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
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

// clientsOf is a manager whose clients are never asked.
type clientsOf struct{ manager.Manager }

func (clientsOf) GetConfig() *rest.Config                      { return &rest.Config{} }
func (clientsOf) GetScheme() *runtime.Scheme                   { return clientgoscheme.Scheme }
func (clientsOf) GetHTTPClient() *http.Client                  { return http.DefaultClient }
func (clientsOf) GetClient() client.Client                     { return nil }
func (clientsOf) GetAPIReader() client.Reader                  { return nil }
func (clientsOf) GetEventRecorder(string) events.EventRecorder { return nil }
func (clientsOf) GetRESTMapper() meta.RESTMapper               { return mapperOfKinds() }

// Pods that nobody owns are read as groups, and jobs of all other kinds as objects, whatever else is managed.
func TestKindsAreReadAsTheyAre(t *testing.T) {
	names := ""
	for _, kind := range jobkind.Builtin() {
		names += "- " + kind.String() + "\n"
	}
	m, err := managedjobs.Parse("kinds:\n" + names)
	require.NoError(t, err)
	p, err := managedjobs.NewPredicate(m)
	require.NoError(t, err)
	set := KindSet{mgr: clientsOf{}, options: Options{Clock: clocktesting.NewFakePassiveClock(time.Now())}}
	for _, kind := range p.Kinds() {
		_, r, err := set.reconciler(t.Context(), p, kind)
		require.NoError(t, err)
		_, groups := r.Jobs.(podGroups)
		_, live := r.LiveJobs.(podGroups)
		require.Equal(t, kind.OfPods(), groups, "%s: groups from the cache", kind.String())
		require.Equal(t, kind.OfPods(), live, "%s: groups from the API server", kind.String())
	}
}

// mapperOfKinds knows all kinds that are described.
func mapperOfKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range jobkind.Builtin() {
		mapper.Add(kind.GVK, meta.RESTScopeNamespace)
	}
	return mapper
}
