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
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

const base = "/apis/visibility.koord-queue.x-k8s.io/v1alpha1"

func anybody(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// call is a request as somebody; its answer is decoded, if there is anything to decode it into.
func call(t *testing.T, h http.Handler, method, path, as string, into any) *httptest.ResponseRecorder {
	t.Helper()
	body := ""
	if method == http.MethodPost {
		body = `{"apiVersion":"visibility.koord-queue.x-k8s.io/v1alpha1","kind":"Audit","metadata":{"name":"last"}}`
	}
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("X-User", as)
	req.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, req)
	if into != nil {
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), into), recorder.Body)
	}
	return recorder
}

func TestDiscovery(t *testing.T) {
	h := served(t, readerOf(t, 0), anybody)
	var list metav1.APIResourceList
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, base, "admin", &list).Code)
	type resource struct {
		kind       string
		namespaced bool
		verbs      string
	}
	got := map[string]resource{}
	for _, r := range list.APIResources {
		got[r.Name] = resource{r.Kind, r.Namespaced, strings.Join(r.Verbs, ",")}
	}
	require.Equal(t, map[string]resource{
		"queues":                   {"Queue", false, "get,list"},
		"queues/waitingunits":      {"WaitingUnitList", false, "get"},
		"quotas":                   {"Quota", false, "get,list"},
		"quotas/units":             {"UnitList", false, "get"},
		"audits":                   {"Audit", false, "create,get,list"},
		"units":                    {"Unit", true, "get,list"},
		"visibleunits":             {"Unit", false, "list"},
		"units/full":               {"Unit", true, "get"},
		"units/forecast":           {"Forecast", true, "get"},
		"localqueues":              {"LocalQueue", true, "get,list"},
		"localqueues/waitingunits": {"WaitingUnitList", true, "get"},
		"localquotas":              {"LocalQuota", true, "get,list"},
		"localquotas/units":        {"UnitList", true, "get"},
		"records":                  {"Record", true, "list"},
		"forecasts":                {"Forecast", true, "list"},
		"snapshots":                {"Snapshot", false, "get"},
	}, got)
	openAPI := call(t, h, http.MethodGet, "/openapi/v3"+base, "admin", nil)
	require.Equal(t, http.StatusOK, openAPI.Code)
	require.Contains(t, openAPI.Body.String(), "claimedAhead")
}

// The server asks whether somebody may read what the path says, and nobody else.
func TestWhoMayAsk(t *testing.T) {
	var asked []string
	h := served(t, readerOf(t, 3), func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked = append(asked, strings.Join([]string{
			a.GetUser().GetName(), a.GetVerb(), a.GetNamespace(), a.GetResource(), a.GetSubresource(), a.GetName(),
		}, " "))
		return authorizer.DecisionNoOpinion, "no", nil
	})
	for path, want := range map[string]string{
		"/queues":                                     "u list  queues  ",
		"/queues/shared/waitingunits":                 "u get  queues waitingunits shared",
		"/quotas/quota/units":                         "u get  quotas units quota",
		"/audits/last":                                "u get  audits  last",
		"/snapshots/now":                              "u get  snapshots  now",
		"/namespaces/a/units/u0001":                   "u get a units  u0001",
		"/namespaces/a/units/u0001/full":              "u get a units full u0001",
		"/namespaces/a/units/u0001/forecast":          "u get a units forecast u0001",
		"/namespaces/a/localqueues/q/waitingunits":    "u get a localqueues waitingunits q",
		"/namespaces/a/localquotas":                   "u list a localquotas  ",
		"/namespaces/a/localquotas/q/units":           "u get a localquotas units q",
		"/queues/shared/waitingunits?limit=1&offset=": "u get  queues waitingunits shared",
	} {
		asked = nil
		require.Equal(t, http.StatusForbidden, call(t, h, http.MethodGet, base+path, "u", nil).Code, path)
		require.Equal(t, []string{want}, asked)
		require.Equal(t, http.StatusUnauthorized, call(t, h, http.MethodGet, base+path, "", nil).Code, path)
	}
	asked = nil
	require.Equal(t, http.StatusForbidden, call(t, h, http.MethodPost, base+"/audits", "u", nil).Code)
	require.Equal(t, []string{"u create  audits  "}, asked)
}

func TestPagesOfALine(t *testing.T) {
	h := served(t, readerOf(t, 1200), anybody)
	path := base + "/queues/shared/waitingunits"
	for _, c := range []struct {
		query       string
		first, n    int
		resume      string
		stillToCome int64
	}{
		{"", 1, 100, "100", 1100},
		{"?limit=0", 1, 100, "100", 1100},
		{"?limit=3&offset=5", 6, 3, "8", 1192},
		{"?limit=3&offset=7&continue=8", 9, 3, "11", 1189},
		{"?limit=100000", 1, 500, "500", 700},
		{"?limit=9223372036854775807&offset=1000", 1001, 200, "", 0},
		{"?offset=1200", 0, 0, "", 0},
		{"?offset=9223372036854775807", 0, 0, "", 0},
	} {
		var page v1alpha1.WaitingUnitList
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path+c.query, "admin", &page).Code, c.query)
		require.Equal(t, "WaitingUnitList", page.Kind)
		require.Len(t, page.Items, c.n, c.query)
		for i, u := range page.Items {
			require.EqualValues(t, c.first+i, u.Position)
			require.NotEmpty(t, u.Name)
			require.NotEmpty(t, u.Reason)
		}
		require.Equal(t, c.resume, page.Continue, c.query)
		if c.stillToCome > 0 {
			require.Equal(t, c.stillToCome, *page.RemainingItemCount)
		}
		require.True(t, page.Leader)
		require.True(t, page.AsOf.Time.Equal(start))
	}
	for _, query := range []string{
		"?limit=x", "?limit=-1", "?offset=-1", "?offset=99999999999999999999", "?continue=x", "?continue=-1",
		"?continue=99999999999",
	} {
		require.Equal(t, http.StatusBadRequest, call(t, h, http.MethodGet, path+query, "admin", nil).Code, query)
	}
}

func TestUnitsPageByPage(t *testing.T) {
	h := served(t, readerOf(t, 8), anybody)
	var names []string
	for resume, pages := "", 0; pages == 0 || resume != ""; pages++ {
		require.Less(t, pages, 5)
		var page v1alpha1.UnitList
		path := base + "/namespaces/a/units?limit=2&continue=" + resume
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path, "u", &page).Code)
		for _, u := range page.Items {
			require.Equal(t, "a", u.Namespace)
			names = append(names, u.Name)
		}
		resume = page.Continue
	}
	require.Equal(t, []string{"running", "u0001", "u0003", "u0005", "u0007"}, names)
	for path, code := range map[string]int{
		"/localqueues":                                   http.StatusBadRequest, // of all namespaces
		"/queues?labelSelector=a%3Db":                    http.StatusBadRequest,
		"/namespaces/a/units?fieldSelector=phase%3DNone": http.StatusBadRequest,
		"/units?continue=b":                              http.StatusBadRequest,
		"/namespaces/a/units?limit=-1":                   http.StatusBadRequest,
		"/namespaces/a/units/none":                       http.StatusNotFound,
		"/queues/none":                                   http.StatusNotFound,
		"/queues/none/waitingunits":                      http.StatusNotFound,
		"/quotas/none/units":                             http.StatusNotFound,
		"/audits/last":                                   http.StatusNotFound,
		"/audits/first":                                  http.StatusNotFound,
		"/audits":                                        http.StatusOK,
		"/namespaces/none/units":                         http.StatusOK,
		"/namespaces/none/localqueues":                   http.StatusOK,
		"/namespaces/none/localqueues/shared":            http.StatusNotFound,
	} {
		require.Equal(t, code, call(t, h, http.MethodGet, base+path, "u", nil).Code, path)
	}
}

func TestAnAuditOnRequest(t *testing.T) {
	h := served(t, readerOf(t, 1), anybody)
	require.Equal(t, http.StatusCreated, call(t, h, http.MethodPost, base+"/audits", "admin", nil).Code)
	again := call(t, h, http.MethodPost, base+"/audits", "admin", nil)
	require.Equal(t, http.StatusTooManyRequests, again.Code)
	require.Equal(t, "60", again.Header().Get("Retry-After"))
}

func TestTables(t *testing.T) {
	h := served(t, readerOf(t, 2), anybody)
	for path, cells := range map[string][]any{
		"/queues/shared":              {"shared", "Block", 3.0, 2.0, 0.0, 1.0},
		"/namespaces/a/localqueues":   {"shared", "Block", 3.0, 2.0, 0.0, 1.0},
		"/quotas/quota":               {"quota", "department", 1.0, 3.0},
		"/namespaces/a/units/running": {"running", "Running", "shared", "quota", 0.0, ""},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		req.Header.Set("X-User", "u")
		req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, req)
		var table metav1.Table
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &table))
		require.Len(t, table.Rows, 1, recorder.Body)
		require.Equal(t, cells, table.Rows[0].Cells, path)
	}
}

// The example that docs/operators/visibility.md links to is an answer of the server.
func TestDocumentedExample(t *testing.T) {
	h := served(t, readerOf(t, 6), anybody)
	answer := call(t, h, http.MethodGet, base+"/namespaces/a/units/u0003", "u", nil)
	example, err := os.ReadFile("testdata/unit.json")
	require.NoError(t, err)
	if !assert.JSONEq(t, string(example), answer.Body.String()) {
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, answer.Body.Bytes(), "", "  "))
		t.Logf("the answer is now\n%s", &text)
	}
}
