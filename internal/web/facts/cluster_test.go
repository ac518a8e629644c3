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

package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

// cluster has objects. The caller may patch the allowed resources.
func cluster(t *testing.T, allowed []string, objects ...client.Object) *Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, batchv1.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	review := func(ctx context.Context, to client.WithWatch, object client.Object, o ...client.CreateOption) error {
		asked, ok := object.(*unstructured.Unstructured)
		if !ok {
			return to.Create(ctx, object, o...)
		}
		for _, resource := range allowed {
			if got, _, _ := unstructured.NestedString(asked.Object, "spec", "resourceAttributes", "resource"); got == resource {
				return unstructured.SetNestedField(asked.Object, true, "status", "allowed")
			}
		}
		return nil
	}
	return &Cluster{Reader: &answers.Reader{Objects: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Create: review}).Build()}}
}

func unitOf(job string) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "unit-" + job},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: &corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job),
		}},
	}
}

func pod(namespace, name, unit, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if unit != "" {
		p.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: unit}
	}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: owner, UID: types.UID(owner)}}
	}
	return p
}

// Pods of a job name its unit or are owned by the job, and are of its namespace.
func TestPods(t *testing.T) {
	c := cluster(t, nil, pod("a", "named", "a/unit-x", ""), pod("a", "owned", "", "x"), pod("a", "other", "a/unit-y", "y"),
		pod("b", "elsewhere", "a/unit-x", "x"), pod("a", "alone", "", ""))
	pods, more, err := c.Pods(t.Context(), unitOf("x"))
	require.NoError(t, err)
	require.False(t, more)
	names := []string{}
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	require.ElementsMatch(t, []string{"named", "owned"}, names)
}

func TestYAML(t *testing.T) {
	c := cluster(t, nil, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}})
	text, err := c.YAML(t.Context(), unitOf("x"))
	require.NoError(t, err)
	require.Contains(t, text, "kind: QueueUnit")
	require.Contains(t, text, "kind: Job\nmetadata:")
	text, err = c.YAML(t.Context(), unitOf("gone"))
	require.NoError(t, err)
	require.Contains(t, text, "# The job does not exist.")
}

func TestRights(t *testing.T) {
	for want, allowed := range map[Rights][]string{
		{}:                            nil,
		{Owner: true}:                 {"jobs"},
		{Operator: true}:              {"queueunits"},
		{Owner: true, Operator: true}: {"jobs", "queueunits"},
	} {
		got, err := cluster(t, allowed).Rights(t.Context(), unitOf("x"))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// counted counts the questions that Cached passes on.
type counted struct {
	Source
	asked, failures int
}

func (c *counted) Records(context.Context, *answers.RecordQuery) (*answers.Records, error) {
	if c.asked++; c.failures > 0 {
		c.failures--
		return nil, errors.New("no answer")
	}
	return &answers.Records{}, nil
}

// A long answer is kept for some seconds, and an error is not.
func TestCached(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	source := &counted{failures: 1}
	cached := &Cached{Source: source, Clock: clock}
	for _, step := range []struct {
		query answers.RecordQuery
		later time.Duration
		fails bool
		asked int
	}{
		{asked: 1, fails: true}, {asked: 2}, {asked: 2}, {query: answers.RecordQuery{Namespace: "a"}, asked: 3}, {asked: 3},
		{later: fresh - 1, asked: 3}, {later: 1, asked: 4},
		{query: answers.RecordQuery{Job: "x"}, asked: 5}, {query: answers.RecordQuery{Job: "x"}, asked: 6},
	} {
		clock.Step(step.later)
		_, err := cached.Records(t.Context(), &step.query)
		require.Equal(t, step.fails, err != nil)
		require.Equal(t, step.asked, source.asked)
	}
	require.Len(t, cached.kept, 1, "an answer that is no longer shown is not kept")
}

// asked is an API server that keeps what it was asked. It forbids what is of all namespaces but for units.
type asked struct {
	requests []string
	// everywhere: the caller may read all.
	everywhere bool
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/apis/visibility.koord-queue.x-k8s.io/v1alpha1")
	a.requests = append(a.requests, path+"?"+r.URL.RawQuery)
	w.Header().Set("Content-Type", "application/json")
	var answer any = &visibility.ForecastList{
		TypeMeta: metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "ForecastList"},
		Items:    []visibility.Forecast{{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "u"}}},
	}
	switch {
	case strings.HasSuffix(path, "units"):
		list := &visibility.UnitList{
			TypeMeta: metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "UnitList"},
		}
		n := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &n)
		for i := range n {
			list.Items = append(list.Items, visibility.Unit{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
		}
		list.Continue = "red/next"
		answer = list
	case !a.everywhere && !strings.HasPrefix(path, "/namespaces/"):
		w.WriteHeader(http.StatusForbidden)
		answer = &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// One page of jobs is one request, and so are the forecasts of a queue, however many units are in line.
func TestOneRequest(t *testing.T) {
	a := &asked{}
	server := httptest.NewServer(a)
	defer server.Close()
	reader, err := answers.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	c := &Cluster{Reader: reader, Of: "red"}
	query := &unitlist.Query{Queue: "work", Labels: labels.Everything(), States: unitstate.All()}
	rows, more, err := c.Jobs(t.Context(), query, 50)
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, rows, 50)
	require.Equal(t, []string{"/visibleunits?fieldSelector=queue%3Dwork&limit=50"}, a.requests)

	a.requests, a.everywhere = nil, true
	require.Contains(t, c.Forecasts(t.Context(), "work"), "red/u")
	require.Equal(t, []string{"/forecasts?fieldSelector=queue%3Dwork"}, a.requests)

	a.requests, a.everywhere = nil, false
	require.Contains(t, c.Forecasts(t.Context(), "work"), "red/u")
	require.Equal(t, "/namespaces/red/forecasts?fieldSelector=queue%3Dwork", a.requests[1])

	a.requests = nil
	rows, more, err = c.Jobs(t.Context(), &unitlist.Query{Labels: labels.Everything(), States: unitstate.All()}, 1200)
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, rows, 1200)
	require.Len(t, a.requests, 3)
}
