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
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

var update = flag.Bool("golden", false, "write the golden files")

func siteOf(t *testing.T, world *factstest.World, of string) *Site {
	t.Helper()
	source := func(*http.Request) (facts.Source, error) { return &factstest.Person{World: world, Of: of}, nil }
	s, err := NewSite(testclock.NewFakeClock(factstest.Now), source, nil)
	require.NoError(t, err)
	return s
}

func get(s http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// siteOfLead is the page of somebody who may read two namespaces.
func siteOfLead(t *testing.T, world *factstest.World) *Site {
	t.Helper()
	s := siteOf(t, world, "red")
	s.Source = func(*http.Request) (facts.Source, error) {
		return &factstest.Person{World: world, Of: "red", Also: []string{"blue"}}, nil
	}
	return s
}

// inline is what the Content-Security-Policy would not let pass.
var inline = regexp.MustCompile(
	`(?i)<script(\s+src="/static/[a-z.]+"\s+defer)?>[^<]|\sstyle=|\son[a-z]+=|javascript:|<style|https?://`)

func TestPages(t *testing.T) {
	down := factstest.Firm(3)
	down.Stop(errors.New("dial tcp 192.0.2.1:6443: connect: connection refused"))
	firm, one, empty := factstest.Firm(3), factstest.Firm(1), factstest.Empty()
	for name, c := range map[string]struct {
		world  *factstest.World
		of     string
		path   string
		status int
	}{
		"quotas":           {firm, "", "/quotas", 200},
		"quotas-resource":  {firm, "", "/quotas?resource=cpu", 200},
		"quotas-tenant":    {firm, "red", "/quotas", 200},
		"quotas-nobody":    {firm, factstest.Nobody, "/quotas", 403},
		"quotas-none":      {empty, "", "/quotas", 200},
		"quotas-down":      {down, "", "/quotas", 502},
		"quota":            {firm, "", "/quotas/firm", 200},
		"quota-gone":       {firm, "", "/quotas/green", 404},
		"queues":           {firm, "", "/queues", 200},
		"queues-none":      {empty, "", "/queues", 200},
		"queue":            {firm, "", "/queues/work", 200},
		"queue-one":        {one, "", "/queues/work", 200},
		"queue-none":       {firm, "", "/queues/night", 200},
		"queue-tenant":     {firm, "red", "/queues/work", 200},
		"queue-filter":     {firm, "", "/queues/work?namespace=blue", 200},
		"queue-gone":       {firm, "", "/queues/day", 404},
		"job":              {firm, "", "/jobs/red/job-000000", 200},
		"job-tenant":       {firm, "red", "/jobs/red/job-000000", 200},
		"job-of-others":    {firm, "red", "/jobs/blue/job-000001", 403},
		"job-script":       {firm, "", "/jobs/red/job-script", 200},
		"job-running":      {firm, "", "/jobs/red/eval", 200},
		"job-pods":         {firm, "", "/jobs/red/eval?show=pods", 200},
		"job-pods-none":    {firm, "", "/jobs/red/job-000000?show=pods", 200},
		"job-events":       {firm, "", "/jobs/red/eval?show=events", 200},
		"job-yaml":         {firm, "", "/jobs/red/eval?show=yaml", 200},
		"job-gone":         {firm, "", "/jobs/red/none", 404},
		"reclaim":          {firm, "", "/reclaim", 200},
		"reclaim-none":     {empty, "", "/reclaim", 200},
		"history":          {firm, "", "/history?since=6h", 200},
		"history-none":     {empty, "", "/history", 200},
		"health":           {firm, "", "/health", 200},
		"health-none":      {empty, "", "/health", 200},
		"search":           {firm, "", "/search?q=RED", 200},
		"search-none":      {firm, "", "/search?q=%3Cscript%3E9", 200},
		"search-empty":     {firm, "", "/search", 200},
		"nothing-has-this": {firm, "", "/nothing", 404},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(siteOf(t, c.world, c.of), c.path)
			require.Equal(t, c.status, w.Code, w.Body)
			text := w.Body.String()
			require.NotRegexp(t, inline, text)
			require.NotContains(t, text, factstest.Script)
			if name != "quotas" { // which has all that stands around
				_, text, _ = strings.Cut(text, "<main")
				text, _, _ = strings.Cut(text, "</main>")
			}
			file := filepath.Join("testdata", name+".html")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text)
		})
	}
}

// The line is read page by page, however long it is, and a filter ends after so many units.
func TestLongLine(t *testing.T) {
	s := siteOf(t, factstest.Firm(12_000), "")
	for path, wants := range map[string][]string{
		"/queues/work":                       {"job-000049", "?from=50", "12,000 in line"},
		"/queues/work?from=11950":            {"job-011999", "?from=11900"},
		"/queues/work?from=99999":            {"No job waits here so far behind."},
		"/queues/work?text=job-0049":         {"job-004900", "Found among"},
		"/queues/work?text=nobody":           {"None of 5,000 jobs matches", "?from=5000&amp;text=nobody"},
		"/queues/work?from=5000&text=nobody": {"?from=0&amp;text=nobody", "?from=10000"},
	} {
		body := get(s, path).Body.String()
		for _, want := range wants {
			require.Contains(t, body, want, path)
		}
		require.Less(t, len(body), 60_000, path)
	}
	require.NotContains(t, get(s, "/queues/work").Body.String(), "job-000050")
	require.NotContains(t, get(s, "/queues/work?from=11950").Body.String(), `rel="next"`)
}

// A lead gets the jobs of all namespaces that it may see, and a tenant those of its own.
func TestJobsOfALead(t *testing.T) {
	world := factstest.Firm(3)
	lead, tenant := siteOfLead(t, world), siteOf(t, world, "red")
	for _, path := range []string{"/queues/work", "/search?q=report"} {
		body := get(lead, path).Body.String()
		require.Contains(t, body, `href="/jobs/blue/report"`, path)
		require.Contains(t, body, "Jobs are listed from all namespaces that you may see.", path)
		require.NotContains(t, get(tenant, path).Body.String(), "/jobs/blue/", path)
	}
	require.NotContains(t, get(lead, "/queues/work?namespace=red").Body.String(), "/jobs/blue/")
}

// The filters of a queue are in its URL, and each narrows the line.
func TestFiltersOfALine(t *testing.T) {
	s := siteOf(t, factstest.Firm(3), "")
	row := regexp.MustCompile(`class="n">[0-9]+</td><th scope="row"><a href="/jobs/([^"]*)"`)
	for query, want := range map[string][]string{
		"":                                 {"red/job-000000", "blue/job-000001", "red/job-script"},
		"namespace=blue":                   {"blue/job-000001"},
		"namespace=green":                  nil,
		"quota=red":                        {"red/job-000000", "red/job-script"},
		"kind=job":                         {"red/job-000000", "blue/job-000001", "red/job-script"},
		"kind=Job.v1.batch":                {"red/job-000000", "blue/job-000001", "red/job-script"},
		"kind=PyTorchJob":                  nil,
		"reason=quotaexceeded":             {"red/job-000000", "blue/job-000001", "red/job-script"},
		"reason=Backoff":                   nil,
		"text=document":                    {"red/job-script"}, // of the name of the job
		"text=job-00&namespace=red&kind=x": nil,
		"text=job-00&namespace=red&from=1": nil,
		"kind=%3Cscript%3E":                nil,
	} {
		w := get(s, "/queues/work?"+query)
		require.Equal(t, http.StatusOK, w.Code, query)
		line, _, _ := strings.Cut(w.Body.String(), `id="admitted"`)
		var got []string
		for _, found := range row.FindAllStringSubmatch(line, -1) {
			got = append(got, found[1])
		}
		require.Equal(t, want, got, query)
		require.NotContains(t, line, "<script>", query)
	}
}

// All times of a page are UTC, wherever its server is.
func TestTimesOfAServerElsewhere(t *testing.T) {
	here, elsewhere := siteOf(t, factstest.Firm(3), ""), siteOf(t, factstest.Firm(3), "")
	elsewhere.Clock = testclock.NewFakeClock(factstest.Now.In(time.FixedZone("elsewhere", -9*60*60)))
	for _, path := range []string{"/jobs/red/job-000000", "/queues/work", "/history", "/quotas"} {
		require.Equal(t, get(here, path).Body.String(), get(elsewhere, path).Body.String(), path)
	}
}

func TestActions(t *testing.T) {
	for _, c := range []struct {
		of, form, want string
	}{
		{"", "verb=hold", "done: hold job/eval --namespace=red"},
		{"", "verb=release-unit", "done: release --unit job/eval --namespace=red"},
		{"", "verb=priority&to=+7", "done: priority --to=7 job/eval --namespace=red"},
		{"", "verb=priority&to=7+--clear", "want a whole number"},
		{"", "verb=move&queue=--clear", "done: move --queue=--clear job/eval --namespace=red"},
		{"", "verb=move&queue=", "want the name of a queue"},
		{"", "verb=uninstall", "no button has this name"},
		{"blue", "verb=hold", "may not read queueunits"},
		{"none", "verb=hold", "may not read queueunits"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/jobs/red/eval", strings.NewReader(c.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		siteOf(t, factstest.Firm(1), c.of).ServeHTTP(w, r)
		require.Contains(t, w.Body.String(), c.want, c.form)
	}
}

// Every link of a page leads somewhere.
func TestLinks(t *testing.T) {
	s := siteOf(t, factstest.Firm(60), "")
	link := regexp.MustCompile(` href="([^"]*)"`)
	seen, next := map[string]bool{}, []string{"/quotas"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		w := get(s, path)
		if !strings.Contains(path, "/jobs/") { // a job of the record may be gone
			require.Equal(t, http.StatusOK, w.Code, path)
		}
		for _, found := range link.FindAllStringSubmatch(w.Body.String(), -1) {
			at, err := url.Parse(strings.ReplaceAll(found[1], "&amp;", "&"))
			require.NoError(t, err)
			base, err := url.Parse(path)
			require.NoError(t, err)
			to := base.ResolveReference(at)
			if to.Fragment = ""; !seen[to.String()] && !strings.HasPrefix(to.Path, "/static/") {
				seen[to.String()] = true
				next = append(next, to.String())
			}
		}
	}
	require.Greater(t, len(seen), 60)
}

// A timeline has each cause of the past, and of the present with who is ahead.
func TestTimeline(t *testing.T) {
	at := func(minutes int) time.Time { return factstest.Now.Add(time.Duration(minutes-60) * time.Minute) }
	record := func(minutes int, event visibility.RecordEvent, reason string) visibility.Record {
		return visibility.Record{Event: event, Reason: reason, Time: metav1.NewMicroTime(at(minutes))}
	}
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(0))}}
	story := &screen.Story{
		Unit: u, Taken: &answers.Taken{Time: metav1.NewTime(at(40)), ByQuota: "blue"},
		Live: &visibility.Unit{Status: visibility.UnitStatus{Position: 3, First: "blue/first", Reason: "QuotaExhausted"}},
	}
	var got []string
	for _, s := range stretchesOf([]visibility.Record{
		record(0, visibility.RecordEnqueued, ""), record(5, visibility.RecordReserved, ""),
		record(6, visibility.RecordAdmitted, ""), record(8, visibility.RecordRunning, ""),
		record(20, visibility.RecordEvicted, "CheckRetry"), record(25, visibility.RecordDeactivated, "Held"),
		record(30, visibility.RecordActivated, ""), record(35, visibility.RecordAdmitted, ""),
		record(40, visibility.RecordEvicted, "Reclaimed"),
	}, story, factstest.Now) {
		got = append(got, s.To.Sub(s.From).String()+" "+s.Cause)
	}
	require.Equal(t, []string{
		"5m0s Waits for quota", "1m0s Admission checks", "2m0s Pods start", "12m0s Runs",
		"5m0s Waits after its eviction: CheckRetry", "5m0s On hold: Held", "5m0s Waits for quota", "5m0s Pods start",
		"20m0s Waits after its eviction: Reclaimed by quota blue: QuotaExhausted, 2 jobs ahead, first blue/first",
	}, got)
}
