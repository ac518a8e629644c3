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
	kubetesting "k8s.io/client-go/testing"
	kubemetrics "k8s.io/component-base/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// widget is a kind of jobs that nobody has heard of.
var widget = jobs.Kind{
	GVK: schema.GroupVersionKind{Group: "factory.example", Version: "v1", Kind: "Widget"},
	GVR: schema.GroupVersionResource{Group: "factory.example", Version: "v1", Resource: "widgets"},
}

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
		kindNotInstalled: apierrors.NewNotFound(widget.GVR.GroupResource(), ""),
		kindForbidden:    apierrors.NewForbidden(widget.GVR.GroupResource(), "", nil),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			batch := jobs.Builtin()[0]
			predicate, err := jobs.NewPredicateOf([]jobs.Kind{batch, widget},
				jobs.ManagedJobs{Kinds: []string{batch.String(), widget.String()}})
			require.NoError(t, err)

			scheme := metadatafake.NewTestScheme()
			require.NoError(t, metav1.AddMetaToScheme(scheme))
			client := metadatafake.NewSimpleMetadataClient(scheme)
			require.NoError(t, client.Tracker().Add(liveJobOf(batch.GVK, "plain")))
			require.NoError(t, client.Tracker().Create(widget.GVR, liveJobOf(widget.GVK, "known"), testNamespace))
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
			set, registry := metrics.New(), kubemetrics.NewKubeRegistry()
			set.MustRegister(registry.MustRegister)
			l := liveOn(t, api, quotasOf(10, testQuota), nil, Options{
				Predicate: predicate, Metrics: set, Config: Config{ResyncInterval: 5 * time.Millisecond},
			}, client)
			l.engine.Lead()

			l.await("Dequeued", 2) // plain, and vanished as it was
			l.until("resyncs", func() bool { return gathered(t, registry, "resyncs_total")[""] > 3 })
			require.Equal(t, map[string]float64{widget.String() + "/" + why: 1}, gathered(t, registry, "job_kind_unavailable"))
			require.Equal(t, "Enqueued", phaseOf(api, "known"))
			require.Equal(t, "Dequeued", phaseOf(api, "vanished"), "that its job is not seen says nothing")

			there.Store(true)
			l.until("known is admitted and vanished is taken back", func() bool {
				return phaseOf(api, "known") == "Dequeued" && phaseOf(api, "vanished") == "Enqueued"
			})
			l.until("it is told", func() bool {
				return gathered(t, registry, "job_kind_unavailable")[widget.String()+"/"+why] == 0
			})
		})
	}
}

// A finalizer may keep a job that is being deleted for ever. Nothing is held for it.
func TestAJobThatIsBeingDeletedHoldsNothing(t *testing.T) {
	t.Parallel()
	batch := jobs.Builtin()[0]
	predicate, err := jobs.NewPredicate(jobs.DefaultManagedJobs())
	require.NoError(t, err)
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme)
	kept := liveJobOf(batch.GVK, "kept")
	kept.Finalizers = []string{"example.com/kept"}
	require.NoError(t, client.Tracker().Add(kept))
	require.NoError(t, client.Tracker().Add(liveJobOf(batch.GVK, "next")))
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
	require.NoError(t, client.Tracker().Update(batch.GVR, leaving, testNamespace))
	// The two writes leave at once, in no order.
	l.until("the next one has its quota, the first one gave it back", func() bool {
		return phaseOf(api, "next") == "Dequeued" && phaseOf(api, "kept") == "Enqueued"
	})
}
