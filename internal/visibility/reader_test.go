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

package visibility

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
)

// A reader of two namespaces learns who of the other one is ahead, and what its units wait for.
func TestALeadReadsWhoIsAhead(t *testing.T) {
	r := readerOf(t, 6)
	h := served(t, r, anybody)
	line := func() string {
		return call(t, h, http.MethodGet, base+"/namespaces/a/localqueues/shared/waitingunits", "u", nil).Body.String()
	}
	require.NotContains(t, line(), "u0000")
	r.MayRead = readers("b")
	require.Contains(t, line(), `"namespace":"b","name":"u0000"`)
}

// The answers to a namespace have only positions and sizes of others. Units of b are at the odd positions of the line.
func TestANamespaceReadsNothingOfOthers(t *testing.T) {
	h := served(t, readerOf(t, 6), anybody)
	for path, names := range map[string]struct{ has, hasNot []string }{
		"/namespaces/a/units":                           {[]string{"u0001", "u0003", "running"}, nil},
		"/namespaces/a/units/u0003":                     {[]string{"u0003", "claimedAhead"}, nil},
		"/namespaces/a/localqueues":                     {[]string{"shared"}, []string{"theirs"}},
		"/namespaces/a/localqueues/shared/waitingunits": {[]string{"u0001", "u0005", `"position":6`}, nil},
		"/namespaces/a/localquotas":                     {[]string{"quota"}, []string{"other"}},
		"/namespaces/a/localquotas/quota":               {[]string{"quota"}, nil},
		"/namespaces/a/localquotas/quota/units": {
			[]string{"running", `"held":{"cpu":"4"}`, "u0001", `"phase":"Enqueued"`}, nil},
		"/namespaces/b/localquotas/quota/units": {
			[]string{"u0000", "secret", `"held":{"cpu":"4"}`}, []string{"u0001", "running", `"a"`}},
		"/namespaces/b/localqueues/shared/waitingunits":  {[]string{"u0000"}, []string{"u0001", `"a"`}},
		"/queues/shared/waitingunits":                    {[]string{"u0000", "u0001", `"b"`}, nil},
		"/quotas/quota/units":                            {[]string{"u0000", "u0001", "secret", "running"}, nil},
		"/namespaces/a/units/u0003/full":                 {[]string{`"claimedBy":"b/u0000"`, `"first":"b/u0000"`}, nil},
		"/namespaces/b/localqueues/shared":               {[]string{`"first":"b/u0000"`}, nil},
		"/queues/shared":                                 {[]string{`"first":"b/u0000"`, `"quotas":["*"]`}, nil},
		"/namespaces/b/units/secret":                     {[]string{"secret"}, nil},
		"/namespaces/a/units/u0001?continue=b&limit=500": {[]string{"u0001"}, nil},
	} {
		answer := call(t, h, http.MethodGet, base+path, "u", nil)
		require.Equal(t, http.StatusOK, answer.Code, path)
		body := answer.Body.String()
		for _, name := range names.has {
			require.Contains(t, body, name, path)
		}
		hasNot := names.hasNot
		if len(path) > 13 && path[:13] == "/namespaces/a" && path != "/namespaces/a/units/u0003/full" {
			hasNot = append(hasNot, "u0000", "u0002", "u0004", "secret", `"b"`, "b/")
		}
		for _, name := range hasNot {
			require.NotContains(t, body, name, path)
		}
	}
	for _, path := range []string{
		"/namespaces/a/units/u0000", "/namespaces/a/units/secret", "/namespaces/a/localqueues/theirs",
		"/namespaces/a/localqueues/theirs/waitingunits", "/namespaces/a/localquotas/other",
		"/namespaces/a/units/u0000/full", "/namespaces/a/localquotas/other/units",
	} {
		require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, base+path, "u", nil).Code, path)
	}
}

// Units of one name in two namespaces have positions of their own.
func TestPositionsOfUnitsThatShareAName(t *testing.T) {
	e := drive(t)
	e.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shared"}, "spec": map[string]any{"queuePolicy": "Block"},
	}}, false)
	e.FeedUnit(madeUnit("a", "running", "Running", "shared"), false)
	for i, namespace := range []string{"a", "b", "c"} {
		u := madeUnit(namespace, "same", "Enqueued", "shared")
		u.Object["spec"].(map[string]any)["priority"] = int64(9 - i)
		e.FeedUnit(u, false)
	}
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	h := served(t, NewReader(stepped{e}, clocktesting.NewFakeClock(start)), anybody)
	for i, namespace := range []string{"a", "b", "c"} {
		position := fmt.Sprintf(`"position":%d`, i+1)
		for _, path := range []string{
			"/namespaces/" + namespace + "/units/same", "/namespaces/" + namespace + "/localqueues/shared/waitingunits",
		} {
			require.Contains(t, call(t, h, http.MethodGet, base+path, "u", nil).Body.String(), position, path)
		}
	}
}

// A dry run names no unit, as the status of a taker does not.
func TestADryRunNamesNoUnit(t *testing.T) {
	e := drive(t)
	e.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "dry"}, "spec": map[string]any{
			"preemption": map[string]any{"withinQueue": "LowerPriority", "dryRun": true, "minRunTimeSeconds": int64(0)},
		},
	}}, false)
	e.FeedNamespace(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "a", "annotations": map[string]any{"koord-queue/max-priority": "7"},
	}}}, false)
	feed := func(namespace, name, phase string, priority int64) {
		e.FeedJob("Job.v1.batch", namespace, name, types.UID("job-of-"+namespace), nil, false)
		u := madeUnit(namespace, name, phase, "dry")
		u.SetUID(types.UID("unit-of-" + namespace))
		spec := u.Object["spec"].(map[string]any)
		spec["priority"], spec["podSet"] = priority, []any{map[string]any{"name": "main", "count": int64(4)}}
		spec["consumerRef"] = map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": name, "uid": "job-of-" + namespace,
		}
		if phase == "Running" {
			u.Object["status"].(map[string]any)["admissions"] = []any{
				map[string]any{"name": "main", "replicas": int64(4), "resources": map[string]any{"cpu": "4"}},
			}
		}
		e.FeedUnit(u, false)
	}
	feed("b", "secret", "Running", 0)
	feed("a", "taker", "Enqueued", 7)
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	h := served(t, NewReader(stepped{e}, clocktesting.NewFakeClock(start)), anybody)
	for _, path := range []string{"/namespaces/a/units", "/namespaces/a/units/taker"} {
		body := call(t, h, http.MethodGet, base+path, "u", nil).Body.String()
		require.Contains(t, body, `"dryRun":{"units":1,"holds":["unit-of-b/1"]}`, path)
		require.NotContains(t, body, "secret", path)
	}
	body := call(t, h, http.MethodGet, base+"/namespaces/b/localquotas/quota/units", "u", nil).Body.String()
	require.Contains(t, body, "secret")
	require.NotContains(t, body, "dryRun")
}

// A line names the job of each unit that its reader may know of. A unit that holds quota says since when.
func TestJobsOfALineAndTimesOfAdmission(t *testing.T) {
	e := drive(t)
	e.FeedQueue(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "shared"}}}, false)
	admitted := start.Add(-time.Hour).UTC().Format(time.RFC3339)
	for _, of := range []struct{ namespace, name, phase string }{
		{"a", "mine", "Running"}, {"a", "next", "Enqueued"}, {"b", "secret", "Enqueued"},
	} {
		e.FeedJob("Job.v1.batch", of.namespace, of.name, types.UID(of.name), nil, false)
		u := madeUnit(of.namespace, of.name, of.phase, "shared")
		u.Object["spec"].(map[string]any)["podSet"] = []any{map[string]any{"name": "main", "count": int64(4)}}
		if of.phase == "Running" {
			u.Object["status"].(map[string]any)["admissions"] = []any{
				map[string]any{"name": "main", "replicas": int64(4), "resources": map[string]any{"cpu": "4"}},
			}
		}
		u.Object["spec"].(map[string]any)["consumerRef"] = map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "namespace": of.namespace, "name": of.name, "uid": of.name,
		}
		u.Object["status"].(map[string]any)["lastAllocateTime"] = admitted // also of an earlier admission
		e.FeedUnit(u, false)
	}
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	h := served(t, NewReader(stepped{e}, clocktesting.NewFakeClock(start)), anybody)
	line := call(t, h, http.MethodGet, base+"/namespaces/a/localqueues/shared/waitingunits", "u", nil).Body.String()
	require.Contains(t, line, `"name":"next","kind":"Job.v1.batch","job":"next"`)
	require.NotContains(t, line, "secret")
	line = call(t, h, http.MethodGet, base+"/queues/shared/waitingunits", "u", nil).Body.String()
	require.Contains(t, line, `"job":"secret"`)
	units := call(t, h, http.MethodGet, base+"/namespaces/a/units", "u", nil).Body.String()
	require.Equal(t, 1, strings.Count(units, `"admittedAt":"`+admitted+`"`), units)
}

func TestAStandbyAnswersFromItsCopy(t *testing.T) {
	r := NewReader(stepped{world(t, 4, false)}, clocktesting.NewFakeClock(start))
	line, err := r.Line(t.Context(), "shared", placesPage{limit: 10})
	require.NoError(t, err)
	require.False(t, line.Leader)
	require.True(t, line.AsOf.Time.Equal(start))
	require.Len(t, line.Items, 4)
	for _, u := range line.Items {
		require.Equal(t, "QuotaExceeded", u.Reason, "what waits is compared with its limits, though nothing was decided")
	}
	// The standby makes no audits, and does not claim that there are none.
	_, err = r.Audits(t.Context())
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	_, err = r.RequestAudit(t.Context())
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
}

func TestNothingIsAnsweredBeforeAllIsRead(t *testing.T) {
	e := drive(t)
	e.Step()
	_, err := NewReader(stepped{e}, clocktesting.NewFakeClock(start)).Queues(t.Context(), namesPage{limit: 1})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
}

// silent never answers.
type silent struct{ asked chan struct{} }

func (s silent) Ask(ctx context.Context, _ func(questions.View)) error {
	s.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestAFewQuestionsAtATime(t *testing.T) {
	source := silent{make(chan struct{}, limiter.MaxAtATime)}
	r := NewReader(source, clocktesting.NewFakeClock(start))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, limiter.MaxAtATime)
	as := func(ctx context.Context, name string) context.Context {
		return request.WithUser(ctx, &user.DefaultInfo{Name: name})
	}
	for i := range limiter.MaxAtATime {
		go func() {
			_, err := r.Queue(as(ctx, fmt.Sprint(i/limiter.MaxOfOne)), "q")
			ended <- err
		}()
		<-source.asked
		if i+1 == limiter.MaxOfOne {
			_, err := r.Queue(as(t.Context(), "0"), "q")
			require.True(t, apierrors.IsTooManyRequests(err), "one user leaves places to others: %v", err)
		}
	}
	_, err := r.Queue(as(t.Context(), "another"), "q")
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	seconds, given := apierrors.SuggestsClientDelay(err)
	require.True(t, given)
	require.Equal(t, limiter.ComeBack, seconds)

	cancel()
	for range limiter.MaxAtATime {
		require.True(t, apierrors.IsTimeout(<-ended))
	}
	_, err = r.Queue(ctx, "q")
	require.True(t, apierrors.IsTimeout(err), "places are free again: %v", err)
}

func TestAFewQuestionsInASecond(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	h := served(t, NewReader(stepped{world(t, 1, true)}, clock), anybody)
	ask := func(user string) int { return call(t, h, http.MethodGet, base+"/queues", user, nil).Code }
	for i := range limiter.Burst {
		require.Equal(t, http.StatusOK, ask(fmt.Sprint("u", i/limiter.BurstOfOne)))
		if i+1 == limiter.BurstOfOne {
			require.Equal(t, http.StatusTooManyRequests, ask("u0"), "one user leaves questions to others")
		}
	}
	refused := call(t, h, http.MethodGet, base+"/queues", "u", nil)
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	clock.Step(time.Second / limiter.PerSecond)
	require.Equal(t, http.StatusOK, ask("u"))
	require.Equal(t, http.StatusTooManyRequests, ask("u"))
}

func TestAQuestionThatNobodyWaitsForIsNotAsked(t *testing.T) {
	e := world(t, 1, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, e.Engine.Ask(ctx, func(questions.View) { require.Fail(t, "it was asked") }), context.Canceled)
	e.Step()
}

// The server must not begin where it cannot say who asks.
func TestNoServerWithoutCertificates(t *testing.T) {
	o := &Options{CertDir: t.TempDir(), Port: 1, Client: &rest.Config{Host: "localhost:1"}}
	_, err := newServer(t.Context(), o, NewReader(silent{}, clocktesting.NewFakeClock(start)))
	require.ErrorContains(t, err, "tls.crt")
}
