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
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/testing/transport"
)

// oneQuota has room for 4 cpu.
type oneQuota struct{}

func (oneQuota) Resolve(string, map[string]string) string { return "quota" }
func (oneQuota) SetDemand(string, resources.List) bool    { return false }
func (oneQuota) TotalMoved() bool                         { return false }
func (oneQuota) All() []string                            { return []string{"quota"} }
func (oneQuota) Observe([]string) ([]admission.Quota, []string) {
	room := resources.FromMap(map[string]int64{"cpu": 4000})
	return []admission.Quota{
		{Name: "quota", Parent: "root", Limit: room, Max: room},
		{Name: "root", Limit: room, Max: room},
	}, nil
}

// stepped makes the steps of an engine while somebody asks it.
type stepped struct{ e *engine.Driver }

func (s stepped) Ask(ctx context.Context, f func(engine.View)) error {
	answer := make(chan error, 1)
	go func() { answer <- s.e.Ask(ctx, f) }()
	for {
		select {
		case err := <-answer:
			return err
		default:
			s.e.Step()
		}
	}
}

func unit(name, status string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{
			"name": name, "namespace": "team", "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
		},
		"spec":   map[string]any{"request": map[string]any{"cpu": "4"}, "queue": "q"},
		"status": map[string]any{"phase": status, "attempts": int64(1)},
	}}
}

func drive(t *testing.T, o engine.Options) *engine.Driver {
	t.Helper()
	e, err := engine.New(o)
	require.NoError(t, err)
	return engine.Drive(e)
}

// noObjects is the client of an API server that has none.
func noObjects(t *testing.T) rest.Interface {
	t.Helper()
	client, err := engine.NewClient(transport.Config(dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{
			v1alpha1.QueueUnitResource: "QueueUnitList", v1alpha1.QueueResource: "QueueList",
		})))
	require.NoError(t, err)
	return client
}

func served(t *testing.T) http.Handler { return servedBy(t, oneQuota{}) }

func servedBy(t *testing.T, quotas engine.Quotas) http.Handler {
	t.Helper()
	client := noObjects(t)
	e := drive(t, engine.Options{
		Client: client, Quotas: quotas, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Submit: func(*engine.Write) {},
	})
	e.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "q"}, "spec": map[string]any{"queuePolicy": "FIFO", "priority": int64(3)},
	}}, false)
	e.FeedUnit(unit("running", "Running"), false)
	for i := range 5 {
		e.FeedUnit(unit(fmt.Sprintf("u%d", i), "Enqueued"), false)
	}
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	return NewHandler(stepped{e})
}

func get(t *testing.T, h http.Handler, path string, into any) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	require.Equal(t, "application/json", recorder.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), into))
	return recorder.Code
}

func TestQueues(t *testing.T) {
	var answer Overview
	require.Equal(t, http.StatusOK, get(t, served(t), "/queues", &answer))
	require.True(t, answer.Leading)
	require.Len(t, answer.Queues, 1)
	q := answer.Queues[0]
	require.Equal(t, "q", q.Name)
	require.Equal(t, "FIFO", q.Policy)
	require.Equal(t, int32(3), q.Priority)
	require.Equal(t, 5, q.Pending)
	require.Equal(t, 1, q.Admitted)
	require.Len(t, q.Units, overviewItems)
}

func TestOneQueueIsPaged(t *testing.T) {
	h := served(t)
	names := func(query string) (list []string) {
		var q Queue
		require.Equal(t, http.StatusOK, get(t, h, "/queues/q"+query, &q))
		for _, u := range q.Units {
			list = append(list, fmt.Sprintf("%d:%s", u.Position, u.Name))
		}
		return list
	}
	require.Equal(t, []string{"1:u0", "2:u1", "3:u2", "4:u3", "5:u4"}, names(""))
	require.Equal(t, []string{"2:u1", "3:u2"}, names("?offset=1&limit=2"))
	require.Empty(t, names("?offset=7"))
	require.Empty(t, names("?limit=0"))

	var q Queue
	get(t, h, "/queues/q?limit=1", &q)
	require.Equal(t, Waiting{
		Position: 1, Namespace: "team", Name: "u0", Quota: "quota", Reason: "QuotaExceeded",
		Message: q.Units[0].Message, Requested: map[string]string{"cpu": "4"},
	}, q.Units[0])
	require.NotEmpty(t, q.Units[0].Message)
}

func TestOneUnit(t *testing.T) {
	h := served(t)
	var u Unit
	require.Equal(t, http.StatusOK, get(t, h, "/units/team/running", &u))
	require.Equal(t, "Running", u.Phase)
	require.Equal(t, map[string]string{"cpu": "4"}, u.Held)
	require.Equal(t, map[string]string{"cpu": "4"}, u.Outstanding)
	require.Zero(t, u.Position)

	var w Unit
	require.Equal(t, http.StatusOK, get(t, h, "/units/team/u3", &w))
	require.Equal(t, 4, w.Position)
	require.NotEmpty(t, w.Reason)
	require.Empty(t, w.Held)
}

// department is above the quota, and pods that no queue knows fill it.
type department struct{ oneQuota }

func (department) Observe([]string) ([]admission.Quota, []string) {
	list := func(cpu, memory int64) resources.List {
		return resources.FromMap(map[string]int64{"cpu": 1000 * cpu, "memory": memory << 30})
	}
	return []admission.Quota{
		{Name: "quota", Parent: "department", Limit: list(8, 20), Max: list(10, 20), Used: list(4, 0)},
		{Name: "department", Parent: "root", Limit: list(20, 20), Max: list(20, 20), Used: list(18, 0)},
		{Name: "root", Limit: list(100, 100), Max: list(100, 100), Used: list(18, 0)},
	}, nil
}

// The answer is the example in docs/api.md.
func TestExplanation(t *testing.T) {
	h := servedBy(t, department{})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/units/team/u1", nil))
	require.Equal(t, http.StatusOK, recorder.Code)
	docs, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(docs), "/units/team/u1`\n\n```json\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	if !assert.JSONEq(t, example, recorder.Body.String()) {
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, recorder.Body.Bytes(), "", "  "))
		t.Logf("the answer is now\n%s", &text)
	}
}

// auditing makes an audit before it answers.
type auditing struct {
	stepped
	t *testing.T
}

func (a auditing) Ask(ctx context.Context, f func(engine.View)) error {
	_, err := a.e.Audit(ctx, func() {})
	require.NoError(a.t, err)
	return a.stepped.Ask(ctx, f)
}

func TestAudit(t *testing.T) {
	var problem map[string]string
	require.Equal(t, http.StatusNotFound, get(t, served(t), "/audit", &problem), "asking starts none")
	require.Equal(t, "audit: not found: none was made yet", problem["error"])

	client := noObjects(t)
	e := drive(t, engine.Options{
		Client: client, Quotas: oneQuota{}, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Submit: func(*engine.Write) {},
	})
	e.FeedUnit(unit("nowhere", "Running"), false)
	e.Step()
	var answer Audit
	require.Equal(t, http.StatusOK, get(t, NewHandler(auditing{stepped{e}, t}), "/audit", &answer))
	require.Equal(t, Audit{
		At: "1970-01-01T00:00:00Z", Took: "0s", Levels: 2, Found: 1, Rebuilt: true,
		Differences: []Difference{
			{Kind: "unit", Object: "team/nowhere", Field: "unit", Engine: "uid nowhere", Source: "does not exist"},
		},
	}, answer)
}

// Anybody may ask for an audit, so what that costs is bounded.
func TestAuditOnRequest(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	client := noObjects(t)
	e := drive(t, engine.Options{Client: client, Quotas: oneQuota{}, Clock: clock, Submit: func(*engine.Write) {}})
	h := NewHandler(stepped{e})
	post := func() int {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/audit", nil))
		return recorder.Code
	}
	require.Equal(t, http.StatusAccepted, post())
	clock.Step(59 * time.Second)
	require.Equal(t, http.StatusTooManyRequests, post())
	clock.Step(time.Second)
	require.Equal(t, http.StatusAccepted, post())
}

func TestWrongQuestions(t *testing.T) {
	h := served(t)
	for path, status := range map[string]int{
		"/queues/none":       http.StatusNotFound,
		"/units/team/none":   http.StatusNotFound,
		"/queues/q?limit=x":  http.StatusBadRequest,
		"/queues/q?offset=-": http.StatusBadRequest,
		"/queues/q?limit=-1": http.StatusBadRequest,
	} {
		var problem map[string]string
		require.Equal(t, status, get(t, h, path, &problem), path)
		require.NotEmpty(t, problem["error"], path)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/queues", nil))
	require.Equal(t, http.StatusMethodNotAllowed, recorder.Code, "read-only")
}

// silent never answers.
type silent struct{}

func (silent) Ask(ctx context.Context, _ func(engine.View)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestNoAnswerInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	recorder := httptest.NewRecorder()
	NewHandler(silent{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/queues", nil).WithContext(ctx))
	require.Equal(t, http.StatusServiceUnavailable, recorder.Code)
}
