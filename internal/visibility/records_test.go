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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// recorded has a unit of each of two namespaces that was admitted after a minute, 20 times.
func recorded(t *testing.T) *Reader {
	t.Helper()
	r := readerOf(t, 2)
	r.History = history.New(history.Options{Records: 1000})
	r.History.Begin(start)
	r.NamespaceCreated = func(name string) (time.Time, bool) {
		return start.Add(-time.Hour), name == "a" || name == "b"
	}
	for i := range 20 {
		for _, namespace := range []string{"a", "b"} {
			pending := history.State{
				Key: fmt.Sprintf("%s/u%02d", namespace, i), UID: fmt.Sprint(namespace, i), Kind: "Job.v1.batch",
				Job: fmt.Sprintf("job%02d", i), Queue: "shared", Quota: "quota-" + namespace, Priority: 3, Created: start,
				Requested: resources.FromMap(map[string]int64{"cpu": 1500}), Phase: unit.PhaseEnqueued,
			}
			admitted := pending
			admitted.Phase, admitted.Attempts, admitted.Held = unit.PhaseDequeued, 1, pending.Requested
			r.History.Changed(start, history.State{}, pending)
			r.History.Changed(start.Add(time.Minute), pending, admitted)
		}
	}
	return r
}

func TestRecords(t *testing.T) {
	h := served(t, recorded(t), anybody)
	list := func(path string) *v1alpha1.RecordList {
		t.Helper()
		page := &v1alpha1.RecordList{}
		answer := call(t, h, http.MethodGet, base+path, "u", page)
		require.Equal(t, http.StatusOK, answer.Code, "%s: %s", path, answer.Body)
		return page
	}
	of := list("/namespaces/a/records")
	require.Len(t, of.Items, 40)
	require.Empty(t, of.Continue)
	require.True(t, of.Leader)
	require.True(t, of.CompleteSince.Time.Equal(start))
	for _, record := range of.Items {
		require.Equal(t, "a", record.Namespace)
	}
	last := of.Items[0]
	require.Equal(t, v1alpha1.RecordAdmitted, last.Event)
	require.Equal(t, "u19", last.Unit)
	require.Equal(t, time.Minute, last.Waited.Duration)
	require.Equal(t, int64(1500), last.Held.Cpu().MilliValue())
	require.Nil(t, last.Ran)

	require.Len(t, list("/records").Items, 80, "all namespaces")
	require.Empty(t, list("/namespaces/none/records").Items)
	for selector, n := range map[string]int{
		"job=job03": 2, "unit=u03": 2, "uid=a3": 2, "queue=shared": 40, "quota=quota-b": 0, "event=Admitted": 20,
		"event=Admitted,job=job07": 1, "queue%3D%3Dshared": 40,
	} {
		require.Len(t, list("/namespaces/a/records?fieldSelector="+selector).Items, n, selector)
	}

	seen := map[string]bool{}
	for resume, pages := "", 0; pages == 0 || resume != ""; pages++ {
		page := list("/namespaces/a/records?limit=15&continue=" + resume)
		require.Less(t, pages, 3)
		for _, record := range page.Items {
			require.False(t, seen[record.Name])
			seen[record.Name] = true
		}
		resume = page.Continue
	}
	require.Len(t, seen, 40)

	for path, code := range map[string]int{
		"/namespaces/a/records?fieldSelector=phase%3DRunning":        http.StatusBadRequest,
		"/namespaces/a/records?fieldSelector=queue!%3Dshared":        http.StatusBadRequest,
		"/namespaces/a/records?labelSelector=a%3Db":                  http.StatusBadRequest,
		"/namespaces/a/records?limit=-1":                             http.StatusBadRequest,
		"/namespaces/a/records?continue=x":                           http.StatusBadRequest,
		"/namespaces/a/records?continue=0":                           http.StatusBadRequest,
		"/namespaces/a/records?watch=true":                           http.StatusMethodNotAllowed,
		"/namespaces/a/records/" + last.Name:                         http.StatusNotFound,
		"/namespaces/a/records?continue=99999999999999999999":        http.StatusBadRequest,
		"/namespaces/a/records?continue=18446744073709551615":        http.StatusOK,
		"/namespaces/a/records?fieldSelector=queue%3Dx,queue%3D%3Dx": http.StatusOK,
	} {
		require.Equal(t, code, call(t, h, http.MethodGet, base+path, "u", nil).Code, path)
	}
}

// A right in a namespace lets nobody read the records of others.
func TestWhoMayReadRecords(t *testing.T) {
	h := served(t, recorded(t), func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "list" && a.GetResource() == "records" && a.GetNamespace() == "a" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "no", nil
	})
	for path, code := range map[string]int{
		"/namespaces/a/records": http.StatusOK,
		"/namespaces/b/records": http.StatusForbidden,
		"/records":              http.StatusForbidden,
		"/records?fieldSelector=metadata.namespace%3Da": http.StatusForbidden,
	} {
		answer := call(t, h, http.MethodGet, base+path, "u", nil)
		require.Equal(t, code, answer.Code, path)
		require.NotContains(t, answer.Body.String(), "quota-b", path)
	}
}

// A namespace that was deleted and created again, maybe by somebody else, begins without a record.
func TestANewNamespaceHasNoOldRecords(t *testing.T) {
	r := recorded(t)
	h := served(t, r, anybody)
	count := func(path string) int {
		var list v1alpha1.RecordList
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, base+path, "u", &list).Code)
		return len(list.Items)
	}
	created := map[string]time.Time{"a": start.Add(time.Second)}
	r.NamespaceCreated = func(name string) (time.Time, bool) { at, exists := created[name]; return at, exists }
	require.Zero(t, count("/namespaces/a/records"), "created after these units")
	require.Zero(t, count("/namespaces/b/records"), "deleted")
	require.Equal(t, 80, count("/records"))
	created["a"] = start
	require.Equal(t, 40, count("/namespaces/a/records"))
}

func TestNoHistory(t *testing.T) {
	list, err := (records{readerOf(t, 1)}).page(t.Context(), &history.Query{Limit: 1})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}
