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
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	kubemetrics "k8s.io/component-base/metrics"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/transport"
)

// unlistable are errors of an API server that can serve everything but one kind.
var unlistable = map[string]error{
	"its conversion webhook is dead": apierrors.NewInternalError(errors.New("conversion webhook failed")),
	"its cache does not start":       apierrors.NewTooManyRequests("storage is (re)initializing", 0),
}

// watching are sources on a fake clock that were started, of a configuration that manages Widgets as well.
func watching(t *testing.T, api *fakeAPI, client rest.Interface, widgets *metadatafake.FakeMetadataClient,
) (*Engine, *clocktesting.FakeClock, kubemetrics.KubeRegistry) {
	t.Helper()
	predicate, err := managedjobs.NewPredicate(managedjobs.Jobs{
		Kinds: append(managedjobs.KindsNamed("Job.v1.batch"), managedjobs.KindEntry{Descriptor: &widget}),
	})
	require.NoError(t, err)
	set, registry := metrics.New(metrics.Scheduler), kubemetrics.NewKubeRegistry()
	set.MustRegister(registry.MustRegister)
	clock := clocktesting.NewFakeClock(testStart)
	factory := metadatainformer.NewSharedInformerFactory(widgets, 0)
	e, err := New(Options{Client: client, Metadata: metadataOf{api.client}, Jobs: factory, Predicate: predicate,
		Metrics: set, Clock: clock, Quotas: quotasOf(10, testQuota)})
	require.NoError(t, err)
	var background sync.WaitGroup
	t.Cleanup(background.Wait)
	factory.Start(t.Context().Done())
	e.sources.Start(t.Context(), &background, func() {}, func() {})
	return e, clock, registry
}

// stepsUntil moves the clock a second at a time until f holds.
func stepsUntil(t *testing.T, clock *clocktesting.FakeClock, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		clock.Step(time.Second)
		return f()
	}, deadline, time.Millisecond, what)
}

// A kind that cannot be listed, for whatever reason, holds the queue up for seconds and is told.
func TestAKindThatCannotBeListedHoldsNothingUp(t *testing.T) {
	for why, refusal := range unlistable {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			scheme := metadatafake.NewTestScheme()
			require.NoError(t, metav1.AddMetaToScheme(scheme))
			client := metadatafake.NewSimpleMetadataClient(scheme)
			var there atomic.Bool
			var asked atomic.Int64
			client.PrependReactor("list", "widgets", func(kubetesting.Action) (bool, runtime.Object, error) {
				asked.Add(1)
				return !there.Load(), nil, refusal
			})
			client.PrependWatchReactor("widgets", func(kubetesting.Action) (bool, watch.Interface, error) {
				asked.Add(1)
				return !there.Load(), nil, refusal
			})
			api := newFakeAPI(t)
			e, clock, registry := watching(t, api, api.rest, client)
			require.Eventually(t, func() bool { return asked.Load() > 0 }, deadline, time.Millisecond)
			require.False(t, e.sources.HasSynced(), "it may only be slow")

			told := func() float64 {
				return gathered(t, registry, "job_kind_unavailable")[jobkind.KindString(widgetKind)+"/NotListed"]
			}
			stepsUntil(t, clock, "the rest starts", e.sources.HasSynced)
			stepsUntil(t, clock, "it is told", func() bool { return told() == 1 })
			require.True(t, e.sources.Unlisted(jobkind.KindString(widgetKind)))
			there.Store(true)
			stepsUntil(t, clock, "it is followed", func() bool {
				return !e.sources.Unlisted(jobkind.KindString(widgetKind)) && told() == 0
			})
		})
	}
}

// refusing answers requests for AdmissionChecks of this version with an error, those of the other from objects.
type refusing struct {
	http.RoundTripper
	version string
	status  *atomic.Int64
}

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if code := int(r.status.Load()); code != 0 && strings.HasSuffix(request.URL.Path, "/admissionchecks") &&
		strings.Contains(request.URL.Path, r.version) {
		return &http.Response{StatusCode: code, Body: http.NoBody, Request: request,
			Header: http.Header{"Content-Type": {"application/json"}}}, nil
	}
	return r.RoundTripper.RoundTrip(request)
}

// AdmissionChecks are listed in a version that can be served, and hold nothing up where there is none.
func TestAdmissionChecksThatCannotBeListedHoldNothingUp(t *testing.T) {
	for name, version := range map[string]string{
		"the newest version": v1beta1.AdmissionCheckResources[0].Version,
		"all versions":       "kueue",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := metadatafake.NewTestScheme()
			require.NoError(t, metav1.AddMetaToScheme(scheme))
			api := newFakeAPI(t)
			for _, served := range v1beta1.AdmissionCheckResources {
				require.NoError(t, api.client.Tracker().Create(served, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": served.GroupVersion().String(), "kind": "AdmissionCheck", "metadata": map[string]any{"name": "slow"},
				}}, ""))
			}
			var status atomic.Int64
			status.Store(http.StatusInternalServerError)
			config := transport.Config(api.client)
			config.Transport = refusing{config.Transport, version, &status}
			client, err := objects.NewClient(config)
			require.NoError(t, err)
			e, clock, _ := watching(t, api, client, metadatafake.NewSimpleMetadataClient(scheme))
			read := func() bool {
				b := e.box.Drain()
				return len(b.Checks.Items) > 0
			}
			if version != "kueue" {
				require.Eventually(t, read, deadline, time.Millisecond, "the other version has it")
				return
			}
			stepsUntil(t, clock, "the rest starts", e.sources.HasSynced)
			status.Store(0)
			require.Eventually(t, read, deadline, time.Millisecond, "it is read once it can be")
		})
	}
}
