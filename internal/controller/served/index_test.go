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

package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// apiServer serves an index of OpenAPI documents, and counts requests by path.
type apiServer struct {
	mu sync.Mutex
	// index and documents by "apis/group/version": the hash that the index names, and that of the document.
	index, hash map[string]string
	// kinds by "apis/group/version": plural name of the resource to the fields of its kind.
	kinds    map[string]map[string][]string
	down     bool
	requests map[string]int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/openapi/v3"), "/")
	s.requests[path]++
	if s.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if path == "" {
		paths := map[string]any{}
		for name, hash := range s.index {
			paths[name] = map[string]any{"serverRelativeURL": "/openapi/v3/" + name + "?hash=" + hash}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"paths": paths})
		return
	}
	if hash := r.URL.Query().Get("hash"); hash != "" && hash != s.hash[path] {
		http.Redirect(w, r, "/openapi/v3/"+path+"?hash="+s.hash[path], http.StatusMovedPermanently)
		return
	}
	_ = json.NewEncoder(w).Encode(document(path, s.kinds[path]))
}

func document(path string, kinds map[string][]string) map[string]any {
	paths, schemas := map[string]any{}, map[string]any{}
	for resource, fields := range kinds {
		paths["/"+path+"/namespaces/{namespace}/"+resource] = map[string]any{}
		kind := kindOf(resource)
		spec := map[string]any{}
		for _, field := range fields {
			spec[field] = map[string]any{"type": "boolean"}
		}
		gv := strings.Split(path, "/")
		schemas[kind] = map[string]any{
			"properties":                      map[string]any{"spec": map[string]any{"properties": spec}},
			"x-kubernetes-group-version-kind": []any{map[string]any{"group": gv[1], "version": gv[2], "kind": kind}},
		}
	}
	return map[string]any{"openapi": "3.0.0", "paths": paths, "components": map[string]any{"schemas": schemas}}
}

// kindOf "jobs" is "Job".
func kindOf(resource string) string {
	return strings.ToUpper(resource[:1]) + strings.TrimSuffix(resource[1:], "s")
}

// serve kinds at this path, from now on, with this hash.
func (s *apiServer) serve(path, hash string, kinds map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index[path], s.hash[path], s.kinds[path] = hash, hash, kinds
}

func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// read is how often this path was asked for since the last time.
func (s *apiServer) read(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer delete(s.requests, path)
	return s.requests[path]
}

func newIndex(t *testing.T) (*Index, *apiServer, *testclock.FakeClock) {
	t.Helper()
	s := &apiServer{index: map[string]string{}, hash: map[string]string{}, kinds: map[string]map[string][]string{},
		requests: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	x, err := New(&rest.Config{Host: server.URL}, clk)
	require.NoError(t, err)
	return x, s, clk
}

func kinds(t *testing.T, names ...string) []jobkind.Kind {
	t.Helper()
	out := make([]jobkind.Kind, len(names))
	for i, name := range names {
		kind, ok := jobkind.Find(name)
		require.True(t, ok, name)
		out[i] = *kind
	}
	return out
}

func availability(answers []Kind) string {
	texts := make([]string, len(answers))
	for i, a := range answers {
		texts[i] = string(a.Availability)
		if a.Err != nil {
			texts[i] = "Error"
		}
	}
	return strings.Join(texts, " ")
}

const (
	batch, kubeflow = "apis/batch/v1", "apis/kubeflow.org/v1"
	job             = "Job.v1.batch"
	pytorch, tf     = "PyTorchJob.v1.kubeflow.org", "TFJob.v1.kubeflow.org"
)

// A document is read once, for all kinds in it, until its hash changes: schemas of operators have megabytes.
func TestADocumentIsReadOncePerChange(t *testing.T) {
	x, s, _ := newIndex(t)
	suspendable := []string{"suspend"}
	s.serve(batch, "1", map[string][]string{"jobs": suspendable})
	s.serve("apis/a.example.com/v1", "1", map[string][]string{"others": nil})
	look := func() string {
		require.NoError(t, x.Look())
		return availability(x.Kinds(kinds(t, job, "Deployment.v1.apps", "JobSet.v1alpha2.jobset.x-k8s.io")))
	}
	for range 10 {
		require.Equal(t, "Available NotInstalled NotInstalled", look())
	}
	require.Equal(t, 10, s.read(""))
	require.Equal(t, 1, s.read(batch))
	require.Zero(t, s.read("apis/a.example.com/v1"), "nobody asks for it")

	s.serve("apis/apps/v1", "1", map[string][]string{"deployments": nil})
	s.serve("apis/jobset.x-k8s.io/v1alpha2", "1", map[string][]string{"others": suspendable})
	for range 10 {
		require.Equal(t, "Available Available NotInstalled", look())
	}
	require.Zero(t, s.read(batch), "another document changed")
	require.Equal(t, 1, s.read("apis/jobset.x-k8s.io/v1alpha2"))

	s.serve(batch, "2", map[string][]string{"jobs": {"other"}})
	for range 10 {
		require.Equal(t, "Unsupported Available NotInstalled", look())
	}
	require.Equal(t, 1, s.read(batch))
}

// Many kinds in one document are answered by reading it once.
func TestADocumentIsReadOnceForAllItsKinds(t *testing.T) {
	x, s, _ := newIndex(t)
	s.serve(kubeflow, "1", map[string][]string{"pytorchjobs": nil, "tfjobs": nil})
	require.NoError(t, x.Look())
	require.Equal(t, "Unsupported Unsupported", availability(x.Kinds(kinds(t, pytorch, tf))))
	require.Equal(t, 1, s.read(kubeflow))
}

// A silent API server changes nothing. If it never answered, there is no answer.
func TestAnAPIServerThatDoesNotAnswer(t *testing.T) {
	x, s, _ := newIndex(t)
	look := func() string { return availability(x.Kinds(kinds(t, job))) }
	s.serve(batch, "1", map[string][]string{"jobs": {"suspend"}})
	s.set(func() { s.down = true })
	require.Equal(t, "Error", look())
	require.Error(t, x.Look())
	require.Equal(t, "Error", look())
	_, err := x.Missing(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"})
	require.ErrorIs(t, err, errNotRead)

	s.set(func() { s.down = false })
	require.NoError(t, x.Look())
	require.Equal(t, "Available", look())
	s.set(func() { s.down = true })
	require.Error(t, x.Look())
	require.Equal(t, "Available", look())
}

// Behind one address a server that does not know of a change yet may send its document. It is not taken for the new
// one: it would not be read again.
func TestADocumentOfAnotherHashIsNotTaken(t *testing.T) {
	x, s, _ := newIndex(t)
	s.serve(batch, "1", map[string][]string{"jobs": nil})
	s.set(func() { s.index[batch] = "2" })
	require.NoError(t, x.Look())
	require.Equal(t, "Error", availability(x.Kinds(kinds(t, job))))
	s.serve(batch, "2", map[string][]string{"jobs": {"suspend"}})
	require.Equal(t, "Available", availability(x.Kinds(kinds(t, job))))
}

func TestMissing(t *testing.T) {
	x, s, _ := newIndex(t)
	s.serve(batch, "1", map[string][]string{"jobs": nil})
	require.NoError(t, x.Look())
	gvr := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	missing, err := x.Missing(gvr("batch", "jobs"), gvr("batch", "cronjobs"), gvr("apps", "jobs"))
	require.NoError(t, err)
	require.Equal(t, []schema.GroupVersionResource{gvr("batch", "cronjobs"), gvr("apps", "jobs")}, missing)
}

// Wait asks nothing while a group is not served, and tries again at each look once it is: rights may be missing.
func TestWait(t *testing.T) {
	x, s, clk := newIndex(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { x.Start(ctx) })

	tried, ended := make(chan error), make(chan error, 1)
	ready := func(context.Context) error { return <-tried }
	running.Go(func() {
		ended <- x.Wait(ctx, ready, schema.GroupVersion{Group: "batch", Version: "v1"}, schema.GroupVersion{Group: "any"})
	})
	step := func() {
		next := x.Next()
		require.Eventually(t, clk.HasWaiters, 10*time.Second, time.Millisecond)
		clk.Step(lookEvery)
		<-next
	}
	step()
	s.serve(batch, "1", nil)
	step()
	s.serve("apis/any/v7", "1", nil)
	step()
	tried <- errors.New("forbidden")
	step()
	tried <- errors.New("forbidden")
	step()
	tried <- nil
	require.NoError(t, <-ended)

	gone, stop := context.WithCancel(ctx)
	stop()
	require.ErrorIs(t, x.Wait(gone, func(context.Context) error { return fmt.Errorf("never") }), context.Canceled)
}
