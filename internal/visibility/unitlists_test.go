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

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// unitsOf are all pages of a list, as namespace/name.
func unitsOf(t *testing.T, h http.Handler, as, path, query string) (units []string, pages int) {
	t.Helper()
	for resume := ""; pages == 0 || resume != ""; pages++ {
		require.Less(t, pages, 100)
		var page v1alpha1.UnitList
		answer := call(t, h, http.MethodGet, base+path+"?"+query+"&continue="+resume, as, &page)
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		for i := range page.Items {
			units = append(units, page.Items[i].Namespace+"/"+page.Items[i].Name)
		}
		resume = page.Continue
	}
	return units, pages
}

// Three persons read one list: a tenant sees its namespace, the lead of a department two, and the operator all.
func TestEachSeesTheNamespacesWhereItMayListUnits(t *testing.T) {
	sees := map[string]string{"tenant": " a ", "lead": " a b ", "nobody": " "}
	e := drive(t)
	var all []string
	for _, namespace := range []string{"a", "b", "c"} {
		for i := range 3 {
			u := madeUnit(namespace, fmt.Sprint("u", i), []string{"Running", "Enqueued", "Succeed"}[i], "q"+namespace)
			u.SetLabels(map[string]string{"n": fmt.Sprint(i)})
			e.FeedUnit(u, false)
			all = append(all, namespace+"/"+u.GetName())
		}
	}
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	h := served(t, NewReader(stepped{e}, clocktesting.NewFakeClock(start)),
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			who := a.GetUser().GetName()
			if a.GetResource() == "visibleunits" || who == "operator" ||
				a.GetNamespace() != "" && strings.Contains(sees[who], " "+a.GetNamespace()+" ") {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
	for who, want := range map[string][]string{
		"nobody": nil, "tenant": all[:3], "lead": all[:6], "operator": all,
	} {
		for limit := 1; limit <= 10; limit++ {
			got, pages := unitsOf(t, h, who, "/visibleunits", fmt.Sprint("limit=", limit))
			require.Equal(t, want, got, "%s, %d at a time", who, limit)
			require.LessOrEqual(t, pages, 1+len(want)/limit, who)
		}
		code := http.StatusForbidden
		if who == "operator" {
			code = http.StatusOK
		}
		require.Equal(t, code, call(t, h, http.MethodGet, base+"/units", who, nil).Code)
	}
	for query, want := range map[string][]string{
		"labelSelector=n%3D1":                                   {"a/u1", "b/u1"},
		"fieldSelector=state%3DRunning":                         {"a/u0", "b/u0"},
		"fieldSelector=queue%3Dqb,state!%3DSucceeded":           {"b/u0", "b/u1"},
		"fieldSelector=queue%3Dqc,state!%3DSucceeded":           nil,
		"fieldSelector=state!%3DSucceeded&labelSelector=n!%3D0": {"a/u1", "b/u1"},
	} {
		got, _ := unitsOf(t, h, "lead", "/visibleunits", query)
		require.Equal(t, want, got, query)
	}
	got, _ := unitsOf(t, h, "tenant", "/namespaces/a/units", "labelSelector=n%3D2&limit=1")
	require.Equal(t, []string{"a/u2"}, got)
}

// Many namespaces that a user may not see take several requests, none of which asks without end.
func TestALeadOfOneNamespaceAmongMany(t *testing.T) {
	e := drive(t)
	for i := range mostReviewed + 10 {
		e.FeedUnit(madeUnit(fmt.Sprintf("n%05d", i), "u", "Enqueued", "q"), false)
	}
	e.FeedUnit(madeUnit("z", "last", "Enqueued", "q"), false)
	require.NoError(t, e.Lead(t.Context()))
	e.Step()
	h := served(t, NewReader(stepped{e}, clocktesting.NewFakeClock(start)),
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetResource() == "visibleunits" || a.GetNamespace() == "z" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
	got, pages := unitsOf(t, h, "lead", "/visibleunits", "limit=500")
	require.Equal(t, []string{"z/last"}, got)
	require.Equal(t, 2, pages)
	got, pages = unitsOf(t, h, "lead", "/visibleunits", "fieldSelector=queue%3Dnone,state%3DPending")
	require.Empty(t, got)
	require.Equal(t, 1, pages, "no unit of that queue: no review is asked for")
}
