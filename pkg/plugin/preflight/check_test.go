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

package preflight

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// apiServer answers lists, namespaces and access reviews. Entries of missing are absent, and entries of denied are
// forbidden, both as "verb resource" or by name.
type apiServer struct {
	mu              sync.Mutex
	missing, denied map[string]bool
	asked           []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := parts[len(parts)-1]
	switch {
	case name == "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		a := review.Spec.ResourceAttributes
		what := a.Verb + " " + a.Resource
		if a.Subresource != "" {
			what += "/" + a.Subresource
		}
		s.asked = append(s.asked, what)
		review.Status.Allowed = !s.denied[what]
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	case s.denied["list "+name]:
		failure(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case s.missing[name]:
		failure(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case parts[len(parts)-2] == "namespaces":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		})
	default:
		s.asked = append(s.asked, "list "+name+" limit="+r.URL.Query().Get("limit"))
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "x/v1", "kind": "List", "items": []any{}})
	}
}

func failure(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "no",
	})
}

func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func everything() Setup {
	return Setup{
		Profile: "koord-scheduler", QuotaNamespace: "koordinator-system", NetworkTopology: true,
		Plugins: map[string]bool{"ElasticQuota": true, "Coscheduling": true, "DeviceShare": true, "LoadAwareScheduling": true,
			"NodeNUMAResource": true, JobQueue: true},
	}
}

func newTestChecker(t *testing.T, setup Setup) (*Checker, *apiServer, *lines, *clocktesting.FakeClock) {
	t.Helper()
	server := &apiServer{missing: map[string]bool{}, denied: map[string]bool{}}
	http := httptest.NewServer(server)
	t.Cleanup(http.Close)
	out, clock := &lines{}, clocktesting.NewFakeClock(time.Unix(0, 0))
	checker, err := NewChecker(setup, &rest.Config{Host: http.URL}, out)
	require.NoError(t, err)
	checker.Clock = clock
	return checker, server, out, clock
}

func TestNothingIsSaidWhenNothingIsMissing(t *testing.T) {
	checker, server, out, _ := newTestChecker(t, everything())
	require.NoError(t, checker.Wait(t.Context()))
	require.Empty(t, out.String())
	for _, resource := range []string{
		"elasticquotas", "podgroups", "reservations", "devices", "nodemetrics", "noderesourcetopologies",
		"clusternetworktopologies", "queues", "queueunits",
	} {
		require.Contains(t, server.asked, "list "+resource+" limit=1")
		require.Contains(t, server.asked, "watch "+resource)
	}
	require.Contains(t, server.asked, "patch queueunits/status")
	require.Contains(t, server.asked, "patch queues/status")
	require.NotContains(t, server.asked, "list jobs limit=1", "no kind of jobs is needed to schedule")
}

func TestOnlyWhatTheConfigurationNeedsIsLookedFor(t *testing.T) {
	checker, server, _, _ := newTestChecker(t, Setup{Plugins: map[string]bool{"Coscheduling": true}})
	server.set(func() {
		for _, name := range []string{"elasticquotas", "devices", "nodemetrics", "noderesourcetopologies",
			"clusternetworktopologies", "queues", "queueunits", "koordinator-system"} {
			server.missing[name] = true
		}
	})
	require.NoError(t, checker.Wait(t.Context()))
	require.Contains(t, server.asked, "list podgroups limit=1")
	require.Contains(t, server.asked, "list reservations limit=1")
}

func TestWhatIsMissingIsNamedWithHowToGetIt(t *testing.T) {
	for _, tt := range []struct {
		name            string
		missing, denied string
		want            string
	}{
		{"our CRD", "queueunits", "", "waiting for: CRD queueunits.scheduling.x-k8s.io " +
			"(kubectl apply -k manifests/base/crd)\n"},
		{"a CRD of Koordinator", "podgroups", "",
			"waiting for: CRD podgroups.scheduling.sigs.k8s.io (install Koordinator v1.8, its config/crd/bases has it)\n"},
		{"the namespace of the quotas", "koordinator-system", "",
			"waiting for: namespace koordinator-system (kubectl create namespace koordinator-system)\n"},
		{"the right to list", "", "list elasticquotas",
			"waiting for: the right to list elasticquotas.scheduling.sigs.k8s.io (kubectl apply -k manifests/base/rbac)\n"},
		{"the right to watch", "", "watch queues",
			"waiting for: the right to watch queues.scheduling.x-k8s.io (kubectl apply -k manifests/base/rbac)\n"},
		{"the right to write", "", "patch queueunits/status",
			"waiting for: the right to patch queueunits/status.scheduling.x-k8s.io (kubectl apply -k manifests/base/rbac)\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checker, server, out, clock := newTestChecker(t, everything())
			server.set(func() { server.missing[tt.missing], server.denied[tt.denied] = true, true })
			done := make(chan error, 1)
			go func() { done <- checker.Wait(t.Context()) }()
			require.Eventually(t, clock.HasWaiters, 10*time.Second, time.Millisecond)
			require.Equal(t, tt.want, out.String())

			clock.Step(time.Second)
			require.Eventually(t, clock.HasWaiters, 10*time.Second, time.Millisecond)
			require.Equal(t, tt.want, out.String(), "nothing new, nothing said")

			server.set(func() { clear(server.missing); clear(server.denied) })
			clock.Step(2 * time.Second)
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-t.Context().Done():
				t.Fatal("does not end")
			}
			require.Equal(t, tt.want+"no longer "+tt.want, out.String())
		})
	}
}

func TestASilentAPIServerIsNamed(t *testing.T) {
	_, _, out, clock := newTestChecker(t, everything())
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	checker, err := NewChecker(everything(), &rest.Config{Host: gone.URL}, out)
	require.NoError(t, err)
	checker.Clock = clock
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- checker.Wait(ctx) }()
	require.Eventually(t, clock.HasWaiters, 10*time.Second, time.Millisecond)
	require.Contains(t, out.String(), "waiting for: the API server at "+gone.URL)
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestASignalEndsTheWaitingAtOnce(t *testing.T) {
	checker, server, _, clock := newTestChecker(t, everything())
	server.set(func() { server.missing["queues"] = true })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- checker.Wait(ctx) }()
	require.Eventually(t, clock.HasWaiters, 10*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
