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

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// api answers as an API server would, as far as the tenant can tell: it keeps names, and refuses what is called
// "refused".
type api struct {
	mu      sync.Mutex
	objects map[string]bool // paths
	users   map[string]bool
	names   int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users[r.Header.Get("Impersonate-User")] = true
	switch r.Method {
	case http.MethodPost:
		a.names++
		name := fmt.Sprintf("made-%d", a.names)
		if strings.HasSuffix(r.URL.Path, "refused") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		a.objects[r.URL.Path+"/"+name] = true
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"metadata":{"name":%q,"uid":"uid-%d"}}`, name, a.names)
	case http.MethodGet:
		var items []string
		for path := range a.objects {
			if name, ok := strings.CutPrefix(path, r.URL.Path+"/"); ok {
				items = append(items, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
			}
		}
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
	case http.MethodDelete:
		delete(a.objects, r.URL.Path)
	default:
		if !a.objects[r.URL.Path] {
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

func (a *api) left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.objects)
}

func tenantOf(t *testing.T) (*api, *tenant) {
	t.Helper()
	a := &api{objects: map[string]bool{}, users: map[string]bool{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	tenant, err := newTenant(&rest.Config{Host: server.URL}, true, func() string { return "theirs" })
	require.NoError(t, err)
	return a, tenant
}

// Objects of the tenant are deleted when their time is over, and all of them in the end. Refused ones are counted.
func TestATenantActsAndLeaves(t *testing.T) {
	a, tenant := tenantOf(t)
	jobs := collection(jobKind, hostileNamespace)
	tenant.run(t.Context(), time.Now().Add(-time.Hour), []action{
		{kind: jobKind, method: http.MethodPost, path: jobs, name: "h-00001", lives: time.Second},
		{kind: jobKind, method: http.MethodPost, path: jobs, name: "h-00002", lives: time.Hour},
		{kind: podKind, method: http.MethodPost, path: "/refused", name: "h-00003", lives: time.Hour},
	})
	require.Equal(t, 2, a.left())
	tenant.run(t.Context(), time.Now().Add(-time.Hour), []action{
		{at: time.Minute, kind: jobKind, method: http.MethodPatch, path: jobs + "/none"},
	})
	require.Eventually(t, func() bool { return a.left() == 1 }, 10*time.Second, time.Millisecond,
		"the one whose time is over")
	require.Equal(t, map[string]count{jobKind: {Made: 2, Refused: 1}, podKind: {Refused: 1}}, tenant.counts())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, tenant.clear(ctx))
	require.Zero(t, a.left())
	require.Equal(t, map[string]bool{hostileUser: true}, a.users)
}

func TestMarksAreFilled(t *testing.T) {
	tenant := &tenant{managed: true, victim: func() string { return "theirs" }, uids: map[string]string{"h-00001": "mine"}}
	body := []byte(`["` + victimUID + `","` + uidOf("h-00001") + `","` + uidOf("h-00002") + `"]`)
	require.JSONEq(t, `["theirs","mine","`+nobodysUID+`"]`, string(tenant.fill(body)))
}

func TestAPodOfAJobIsNamed(t *testing.T) {
	a, tenant := tenantOf(t)
	pods := collection(podKind, hostileNamespace)
	require.Equal(t, pods+"/none", tenant.named(t.Context(), pods+"/"+podOfJob("h-00001")))
	a.objects[pods+"/h-00001-x"] = true
	require.Equal(t, pods+"/h-00001-x", tenant.named(t.Context(), pods+"/"+podOfJob("h-00001")))
}

// Without management units go to the twin of their kind, jobs to where they are.
func TestUnmanagedUnitsAreTwins(t *testing.T) {
	tenant := &tenant{victim: func() string { return "" }}
	for _, kind := range []string{unitKind, jobKind} {
		path := tenant.pathOf(collection(kind, hostileNamespace))
		require.Equal(t, kind == unitKind, strings.Contains(path, twinGroup), path)
	}
	require.Contains(t, string(tenant.fill(encode(unit("u")))), `"`+twinGroup+`/v1alpha1"`)
}

func TestWhatTheTenantMadeIsCounted(t *testing.T) {
	tenant := &tenant{uids: map[string]string{}, live: map[string]*made{}, managed: true}
	a := &action{kind: jobKind, method: http.MethodPost, path: "/p", name: "h-00001", at: time.Second, lives: time.Second}
	tenant.note(a, []byte(`{"metadata":{"name":"odd","uid":"u"}}`))
	require.Equal(t, "u", tenant.uids["h-00001"])
	require.Equal(t, &made{path: "/p/odd", ends: 2 * time.Second}, tenant.live["h-00001"])
	require.Equal(t, 3, objects(map[string]count{jobKind: {Made: 1}, podKind: {Made: 2, Refused: 5}}))
}
