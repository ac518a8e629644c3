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
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
)

// BenchmarkUnits asks the handler of the server for 500 of 100,000 units in 1,000 namespaces. The lead is that of the
// last ten namespaces.
func BenchmarkUnits(b *testing.B) {
	const namespaces, each = 1000, 100
	e := driveBy(b, clock.RealClock{})
	for i := range namespaces {
		for j := range each {
			u := madeUnit(fmt.Sprintf("n%04d", i), fmt.Sprintf("u%04d", j), "Enqueued", fmt.Sprint("q", i%30))
			u.SetLabels(map[string]string{
				"quota.scheduling.koordinator.sh/name": "quota", "koord-queue/created-by": "controller", "n": fmt.Sprint(j, i),
			})
			e.FeedUnit(u, false)
		}
	}
	require.NoError(b, e.Lead(b.Context()))
	e.Step()
	for name, c := range map[string]struct{ who, path string }{
		"operator": {"operator", "/visibleunits?limit=500"},
		"lead":     {"lead", "/visibleunits?limit=500"}, // of whom nothing is known
		// Questions of why about one job.
		"unit":               {"lead", "/namespaces/n0995/units/u0050"},
		"line":               {"lead", "/namespaces/n0995/localqueues/q5/waitingunits?limit=10"},
		"holders":            {"lead", "/namespaces/n0995/localquotas/quota/units?limit=10"},
		"forecast":           {"lead", "/namespaces/n0995/units/u0050/forecast"},
		"namespace":          {"lead", "/namespaces/n0995/units?limit=500"},
		"queue":              {"operator", "/visibleunits?limit=500&fieldSelector=queue%3Dq7,state%3DPending"},
		"labels, 5000 looks": {"operator", "/visibleunits?limit=500&labelSelector=n%3Dnone"},
	} {
		b.Run(name, func(b *testing.B) { benchmarkUnits(b, e, c.who, c.path) })
	}
}

func benchmarkUnits(b *testing.B, e *engine.Driver, who, path string) {
	allowed := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() == "visibleunits" || a.GetUser().GetName() == "operator" || a.GetNamespace() >= "n0990" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
	for range b.N {
		b.StopTimer()
		h := served(b, NewReader(stepped{e}, clock.RealClock{}), allowed) // its limits and answers are new
		req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, base+path, nil)
		req.Header.Set("X-User", who)
		recorder := httptest.NewRecorder()
		b.StartTimer()
		h.ServeHTTP(recorder, req)
		require.Equal(b, http.StatusOK, recorder.Code, recorder.Body)
	}
}
