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

package inflight

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// api is a server that takes some time for each request, and notes how many it is at work on.
type api struct {
	took time.Duration
	mu   sync.Mutex
	now  map[string]int
	most map[string]int
	done []string
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	a.mu.Lock()
	a.now[path]++
	a.most[path] = max(a.most[path], a.now[path])
	a.mu.Unlock()
	time.Sleep(a.took)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now[path]--
	a.done = append(a.done, path)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// busy is how many requests of a path it is at work on.
func (a *api) busy(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now[path]
}

const (
	job   = "/apis/batch/v1/namespaces/n/jobs/j"
	event = "/apis/events.k8s.io/v1/namespaces/n/events"
	lease = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"
)

func send(ctx context.Context, t *testing.T, through http.RoundTripper, method, path string) error {
	t.Helper()
	response, err := through.RoundTrip(httptest.NewRequestWithContext(ctx, method, path, http.NoBody))
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

// Everybody asks at once of a server that is slow. Time is that of the bubble.
func TestWritesWaitInLineAndNothingElseDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{took: time.Second, now: map[string]int{}, most: map[string]int{}}
		through := NewLine(clock.RealClock{}, 2, 2).Wrap(a)
		for range 10 {
			go func() { _ = send(t.Context(), t, through, http.MethodPatch, job) }()
			go func() { _ = send(t.Context(), t, through, http.MethodPost, event) }()
			go func() { _ = send(t.Context(), t, through, http.MethodPut, lease) }()
			go func() { _ = send(t.Context(), t, through, http.MethodGet, job+"/status") }()
		}
		synctest.Wait()
		require.Equal(t, 10, a.busy(lease), "leases never wait")
		require.Equal(t, 10, a.busy(job+"/status"), "and reads do not")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, a.done, 40, "all go in the end")
		require.Equal(t, 2, a.most[job])
		require.Equal(t, 1, a.most[event])
	})
}

// Events wait for decisions, and do not wait for the last of them.
func TestDecisionsGoBeforeReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{took: time.Second, now: map[string]int{}, most: map[string]int{}}
		through := NewLine(clock.RealClock{}, 3, 3).Wrap(a)
		for range 9 {
			go func() { _ = send(t.Context(), t, through, http.MethodPost, event) }()
		}
		synctest.Wait()
		require.Equal(t, 1, a.busy(event), "half of three at most")
		for range 12 {
			go func() { _ = send(t.Context(), t, through, http.MethodPatch, job) }()
			go func() { _ = send(Report(t.Context()), t, through, http.MethodPatch, job+"/status") }()
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.GreaterOrEqual(t, a.busy(job), 2)
		require.Equal(t, 1, a.busy(event)+a.busy(job+"/status"), "one report, so that reports go on as well")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, a.done, 33)
	})
}

// A request that is given up gives its place back, whether it waited or had just been let go.
func TestAWriteThatIsGivenUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{took: time.Second, now: map[string]int{}, most: map[string]int{}}
		line := NewLine(clock.RealClock{}, 1, 1)
		through := line.Wrap(a)
		go func() { _ = send(t.Context(), t, through, http.MethodPatch, job) }()
		synctest.Wait()
		cause := errors.New("given up")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- send(ctx, t, through, http.MethodPatch, job) }()
		synctest.Wait()
		cancel(cause)
		require.ErrorIs(t, <-gone, cause)
		require.NoError(t, send(t.Context(), t, through, http.MethodPatch, job))
		require.Equal(t, 1, a.most[job])
		require.Zero(t, line.decisions.busy)
		require.Zero(t, line.decisions.waiting.Len())
	})
}

func TestTheResourceOfAPath(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/n/events":      "events",
		"/api/v1/namespaces/n":             "namespaces",
		"/api/v1/namespaces/n/pods/p/evic": "pods",
		"/api/v1/nodes/n/status":           "nodes",
		job:                                "jobs",
		"/apis/authorization.k8s.io/v1/subjectaccessreviews": "subjectaccessreviews",
		"/healthz": "", "/": "", "": "",
	} {
		require.Equal(t, want, resourceOf(path), path)
	}
}
