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

package pages

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

// nameless is a source whose caller has no namespace.
type nameless struct{ facts.Source }

func (nameless) Namespace() string { return "" }

func shared(t *testing.T, of string) *Site {
	t.Helper()
	s := siteOf(t, factstest.Firm(60), of)
	s.Shared = true
	s.Source = func(*http.Request) (facts.Source, error) {
		return nameless{&factstest.Person{World: factstest.Firm(60), Of: of}}, nil
	}
	return s
}

// A reader of one namespace names it in the URL. A server of one person takes that of the kubeconfig alone.
func TestMine(t *testing.T) {
	red, everything := shared(t, "red"), shared(t, "")
	local := shared(t, "red")
	local.Shared = false
	for _, c := range []struct {
		site   *Site
		path   string
		status int
		want   string
	}{
		{red, "/quotas", 403, "choose a namespace"},
		{red, "/quotas?mine=red", 200, "You may read namespace red."},
		{red, "/quotas?mine=blue", 403, "may not read quotas of namespace"},
		{red, "/quotas?mine=" + strings.Repeat("x", 64), 403, "choose a namespace"},
		{red, "/quotas?mine=%22%3E%3Cscript%3E", 403, `name="mine" placeholder="Your namespace" value=""`},
		{everything, "/quotas", 200, `name="mine"`},
		{local, "/quotas?mine=red", 403, "choose a namespace"},
	} {
		w := get(c.site, c.path)
		require.Equal(t, c.status, w.Code, c.path)
		require.Contains(t, w.Body.String(), c.want, c.path)
	}
	require.NotContains(t, get(local, "/quotas?mine=red").Body.String(), "Choose</button>")
}

// Every link, every button and every form of a page keeps the choice.
func TestMineIsKept(t *testing.T) {
	s := shared(t, "red")
	form := regexp.MustCompile(`(?s)<form [^>]*>.*?</form>`)
	link := regexp.MustCompile(` (?:href|hx-post)="([/?][^"]*)"`)
	for _, path := range []string{"/quotas?mine=red", "/queues?mine=red", "/queues/work?from=0&mine=red",
		"/jobs/red/job-000000?mine=red", "/history?mine=red", "/reclaim?mine=red", "/search?q=red&mine=red"} {
		w := get(s, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		text := w.Body.String()
		links := 0
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(found[1], "/static/") {
				links++
				require.Contains(t, found[1], "mine=red", path)
			}
		}
		require.Greater(t, links, 4, path)
		for _, found := range form.FindAllString(text, -1) {
			kept := strings.Count(found, `name="mine"`) + strings.Count(found, `hx-post="/jobs/red/job-000000?mine=red"`)
			require.Equal(t, 1, kept, "%s: %s", path, found)
		}
		require.Contains(t, text, `data-live="/live`+strings.ReplaceAll(path, "&", "&amp;")+`"`)
	}
}

// Text of users looks like no link, whatever it is.
func TestTextIsNoLink(t *testing.T) {
	w := get(shared(t, "red"), "/search?mine=red&q=%20href%3D%22%2Fx%20%3Cform%20%3E")
	require.NotContains(t, w.Body.String(), "/x?mine")
	require.NotContains(t, w.Body.String(), "/x &lt;form ><input")
}

// The entrance of a server of many people says how to log in, and has no content.
func TestEntrances(t *testing.T) {
	for want, site := range map[string]*Site{
		"Log in first": shared(t, "red"), "This page has an owner": siteOf(t, factstest.Firm(3), ""),
	} {
		w := httptest.NewRecorder()
		site.Entrance().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/quotas?mine=blue", nil))
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Contains(t, w.Body.String(), "<h1>"+want+"</h1>")
		require.NotContains(t, w.Body.String(), "blue")
	}
}
