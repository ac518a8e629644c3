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

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// api is a server that answers a request when the test says so, and notes how many it is at work on.
type api struct {
	answers chan struct{}

	mu   sync.Mutex
	now  map[string]int
	most map[string]int
	done int
}

func newAPI() *api {
	return &api{answers: make(chan struct{}), now: map[string]int{}, most: map[string]int{}}
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	a.mu.Lock()
	a.now[path]++
	a.most[path] = max(a.most[path], a.now[path])
	a.mu.Unlock()
	<-a.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now[path]--
	a.done++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// answer so many requests, one after the other.
func (a *api) answer(n int) {
	for range n {
		a.answers <- struct{}{}
		synctest.Wait()
	}
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

// Everybody asks at once.
func TestWritesWaitInLineAndNothingElseDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
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
		a.answer(40)
		require.Equal(t, 40, a.done, "all go in the end")
		require.Equal(t, 2, a.most[job])
		require.Equal(t, 1, a.most[event])
	})
}

// Events wait for decisions, and do not wait for the last of them.
func TestDecisionsGoBeforeReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
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
		synctest.Wait()
		require.Equal(t, 2, a.busy(job))
		for range 12 {
			a.answer(1)
			require.GreaterOrEqual(t, a.busy(event)+a.busy(job+"/status"), 1, "reports go on as well")
		}
		a.answer(33 - 12)
		require.Equal(t, 33, a.done)
	})
}

// A request that is given up gives its place back, whether it waited or had just been let go.
func TestAWriteThatIsGivenUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
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
		go func() { gone <- send(t.Context(), t, through, http.MethodPatch, job) }()
		synctest.Wait()
		a.answer(2)
		require.NoError(t, <-gone)
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
