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

package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	kubetesting "k8s.io/client-go/testing"
	kubemetrics "k8s.io/component-base/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// widget is a kind of jobs that nobody has heard of.
var widget = jobkind.Descriptor{
	APIVersion: "factory.example/v1", Kind: "Widget", Resource: "widgets",
	UnitSuffix: new(string),
	PodSets: []jobkind.PodSetRule{{Count: []jobkind.CountRule{{Field: ".spec.count"}},
		Template: jobkind.Paths{".spec.template"}}},
	Pods: jobkind.PodsRule{Label: "factory.example/widget"},
}

var (
	widgetKind     = schema.GroupVersionKind{Group: "factory.example", Version: "v1", Kind: "Widget"}
	widgetResource = schema.GroupVersionResource{Group: "factory.example", Version: "v1", Resource: "widgets"}
	batchKind      = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

func ofWidget(name, phase string) *unstructured.Unstructured {
	u := liveUnit(name, "1")
	_ = unstructured.SetNestedMap(u.Object, map[string]any{
		"apiVersion": "factory.example/v1", "kind": "Widget", "name": name, "namespace": testNamespace, "uid": "job-" + name,
	}, "spec", "consumerRef")
	u.Object["status"] = map[string]any{"phase": phase}
	return u
}

func liveJobOf(gvk schema.GroupVersionKind, name string) *metav1.PartialObjectMetadata {
	job := liveJob(name)
	job.SetGroupVersionKind(gvk)
	return job
}

func phaseOf(api *fakeAPI, name string) string {
	phase, _, _ := unstructured.NestedString(api.get(testNamespace+"/"+name).Object, "status", "phase")
	return phase
}

// A kind of jobs that cannot be listed holds nothing up, takes nothing back, and is followed once it can be.
func TestAKindThatIsNotThereIsPickedUpWhenItAppears(t *testing.T) {
	for why, refusal := range map[string]error{
		intake.KindNotInstalled: apierrors.NewNotFound(widgetResource.GroupResource(), ""),
		intake.KindForbidden:    apierrors.NewForbidden(widgetResource.GroupResource(), "", nil),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			predicate, err := managedjobs.NewPredicate(managedjobs.Jobs{
				Kinds: append(managedjobs.KindsNamed("Job.v1.batch"), managedjobs.KindEntry{Descriptor: &widget}),
			})
			require.NoError(t, err)

			scheme := metadatafake.NewTestScheme()
			require.NoError(t, metav1.AddMetaToScheme(scheme))
			client := metadatafake.NewSimpleMetadataClient(scheme)
			require.NoError(t, client.Tracker().Add(liveJobOf(batchKind, "plain")))
			require.NoError(t, client.Tracker().Create(widgetResource, liveJobOf(widgetKind, "known"), testNamespace))
			var there atomic.Bool
			refuse := func(kubetesting.Action) (bool, runtime.Object, error) { return !there.Load(), nil, refusal }
			client.PrependReactor("list", "widgets", refuse)
			client.PrependWatchReactor("widgets", func(kubetesting.Action) (bool, watch.Interface, error) {
				return !there.Load(), nil, refusal
			})

			api := newFakeAPI(t)
			liveQueue(t, api)
			api.create(liveUnit("plain", "1"))
			api.create(ofWidget("known", "Enqueued"))
			api.create(ofWidget("vanished", "Dequeued"))
			api.create(ofWidget("never", "Enqueued"))
			set, registry := metrics.New(metrics.Scheduler), kubemetrics.NewKubeRegistry()
			set.MustRegister(registry.MustRegister)
			l := liveOn(t, api, quotasOf(10, testQuota), nil, Options{
				Predicate: predicate, Metrics: set, Config: Config{ResyncInterval: 5 * time.Millisecond},
			}, client)
			l.engine.Lead()

			l.await("Dequeued", 2) // plain, and vanished as it was
			l.until("resyncs", func() bool { return gathered(t, registry, "resyncs_total")[""] > 3 })
			require.Equal(t, map[string]float64{jobkind.KindString(widgetKind) + "/" + why: 1}, gathered(t, registry,
				"job_kind_unavailable"))
			require.Equal(t, "Enqueued", phaseOf(api, "known"))
			requireReason := func(name string, want unit.Reason) {
				t.Helper()
				l.until(string(want), func() bool {
					var info questions.UnitInfo
					require.NoError(t, l.engine.Ask(t.Context(), func(v questions.View) {
						info, _ = v.Unit(testNamespace + "/" + name)
					}))
					return info.Explanation.Reason == want
				})
			}
			requireReason("known", unit.ReasonKindNotListed)
			requireReason("never", unit.ReasonKindNotListed)
			require.Equal(t, "Dequeued", phaseOf(api, "vanished"), "that its job is not seen says nothing")

			there.Store(true)
			l.until("known is admitted and vanished is taken back", func() bool {
				return phaseOf(api, "known") == "Dequeued" && phaseOf(api, "vanished") == "Enqueued"
			})
			requireReason("never", unit.ReasonConsumerNotFound)
			l.until("it is told", func() bool {
				return gathered(t, registry, "job_kind_unavailable")[jobkind.KindString(widgetKind)+"/"+why] == 0
			})
		})
	}
}

// Another configuration holds without a new process: jobs that were none of the queue's are, and are not any more.
func TestWhatIsManagedChanges(t *testing.T) {
	t.Parallel()
	plain, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	with, err := managedjobs.NewPredicate(managedjobs.Jobs{
		Kinds: append(managedjobs.KindsNamed("Job.v1.batch"), managedjobs.KindEntry{Descriptor: &widget}),
	})
	require.NoError(t, err)
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme)
	require.NoError(t, client.Tracker().Add(liveJobOf(batchKind, "plain")))
	require.NoError(t, client.Tracker().Create(widgetResource, liveJobOf(widgetKind, "known"), testNamespace))
	api := newFakeAPI(t)
	liveQueue(t, api)
	api.create(liveUnit("plain", "1"))
	api.create(ofWidget("known", "Enqueued"))
	api.create(ofWidget("vanished", "Enqueued"))
	l := liveOn(t, api, quotasOf(10, testQuota), nil, Options{
		Predicate: plain, Config: Config{ResyncInterval: 5 * time.Millisecond},
	}, client)
	l.engine.Lead()
	l.await("Dequeued", 3) // authors of units of an unmanaged kind answer for their jobs

	manage := func(p *managedjobs.Predicate) {
		factory := metadatainformer.NewSharedInformerFactory(client, 0)
		f, err := l.engine.Follow(factory, p)
		require.NoError(t, err)
		factory.Start(t.Context().Done())
		l.until("the new informers have listed", f.Settled)
		done := make(chan struct{})
		l.engine.Manage(f, func() { close(done) })
		<-done
	}
	manage(with)
	l.until("what is held for a job that is not there is taken back", func() bool {
		return phaseOf(api, "vanished") == "Enqueued"
	})
	require.Equal(t, "Dequeued", phaseOf(api, "known"))
	require.Equal(t, "Dequeued", phaseOf(api, "plain"))
	manage(plain)
	l.until("its maker answers for it again", func() bool { return phaseOf(api, "vanished") == "Dequeued" })
}

// A finalizer can keep a deleted job forever. Nothing is held for it.
func TestAJobThatIsBeingDeletedHoldsNothing(t *testing.T) {
	t.Parallel()
	predicate, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme)
	kept := liveJobOf(batchKind, "kept")
	kept.Finalizers = []string{"example.com/kept"}
	require.NoError(t, client.Tracker().Add(kept))
	require.NoError(t, client.Tracker().Add(liveJobOf(batchKind, "next")))
	api := newFakeAPI(t)
	liveQueue(t, api)
	api.create(liveUnit("kept", "1"))
	l := liveOn(t, api, quotasOf(1, testQuota), nil, Options{Predicate: predicate}, client)
	l.engine.Lead()
	l.await("Dequeued", 1)
	api.create(liveUnit("next", "1"))

	leaving := kept.DeepCopy()
	now := metav1.Now()
	leaving.DeletionTimestamp, leaving.ResourceVersion = &now, "2"
	require.NoError(t, client.Tracker().Update(schema.GroupVersionResource{Group: "batch", Version: "v1",
		Resource: "jobs"}, leaving, testNamespace))
	// The two writes leave at once, in no order.
	l.until("the next one has its quota, the first one gave it back", func() bool {
		return phaseOf(api, "next") == "Dequeued" && phaseOf(api, "kept") == "Enqueued"
	})
}
