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

package web

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

// paths of all pages, by name.
var paths = map[string]string{
	"quotas": "/quotas", "quota": "/quotas/firm", "queues": "/queues", "queue": "/queues/work",
	"queue-filter": "/queues/work?text=nobody", "job": "/jobs/red/job-000000", "running": "/jobs/red/eval",
	"pods": "/jobs/red/eval?show=pods", "events": "/jobs/red/eval?show=events", "yaml": "/jobs/red/eval?show=yaml",
	"reclaim": "/reclaim", "history": "/history", "health": "/health", "search": "/search?q=eval",
	"gone": "/jobs/red/none",
}

// sizes of windows: a telephone, a desk, and a desk at 200 % zoom.
var sizes = map[string]struct {
	width, height int64
	scale         float64
}{"telephone": {360, 740, 2}, "desk": {1280, 800, 1}, "zoomed": {640, 400, 2}}

func firm(t *testing.T, waiting int, of string) (*factstest.World, string) {
	t.Helper()
	world := factstest.Firm(waiting)
	return world, serve(t, &factstest.Person{World: world, Of: of}, factstest.NewClock())
}

// person of a name: "lead" may read two namespaces.
func person(world *factstest.World, name string) *factstest.Person {
	if name == "lead" {
		return &factstest.Person{World: world, Of: "red", Also: []string{"blue"}}
	}
	return &factstest.Person{World: world, Of: name}
}

// audit is what axe-core finds on the page: each violation in a line.
const audit = `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then((r) =>
	r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary)))`

// long skips a test that says more than whether it works.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-web runs it")
	}
}

// axe is the script of axe-core, as the npm registry has it.
func axe(t *testing.T) string {
	t.Helper()
	const version, path = "4.14.1", "package/axe.min.js"
	dir := t.TempDir()
	pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--fetch-retries=0", "axe-core@"+version)
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		t.Skipf("axe-core cannot be had: npm does not reach its registry: %v %s", err, out)
	}
	archive := filepath.Join(dir, "axe-core-"+version+".tgz")
	text, err := exec.CommandContext(t.Context(), "tar", "xzOf", archive, path).Output()
	require.NoError(t, err)
	return string(text)
}

// TestAccessibility audits every page at three sizes, dark and light, and what there is to see of an empty, a forbidden
// and a silent cluster.
func TestAccessibility(t *testing.T) {
	long(t)
	browser := newBrowser(t)
	script := axe(t)
	pages := func(x *tab, of map[string]string) {
		for name, path := range of {
			x.size(1280, 800, 1, "light")
			x.at(path)
			evaluate[any](x, script+"; null")
			for size, s := range sizes {
				for _, scheme := range []string{"light", "dark"} {
					x.size(s.width, s.height, s.scale, scheme)
					found := get(x, chromedp.Evaluate[[]string](audit, chromedp.EvalAwaitPromise))
					require.Empty(x, found, "%s, %s, %s", name, size, scheme)
					wide := evaluate[int](x, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
					require.LessOrEqual(x, wide, 0, "%s, %s: the page is wider than its window", name, size)
					if size == "telephone" {
						hidden := evaluate[int](x, `[...document.querySelectorAll('.cards')].filter((c) =>
						c.parentElement.scrollWidth > c.parentElement.clientWidth).length`)
						require.Zero(x, hidden, "%s: a part of a list can only be seen by scrolling sideways", name)
					}
				}
			}
		}
	}
	world, url := firm(t, 60, "")
	x := open(t, browser, url)
	pages(x, paths)
	world.Stop(errors.New("connection refused"))
	pages(x, map[string]string{"down": "/quotas"})
	world.Stop(nil)
	_, url = firm(t, 3, factstest.Nobody)
	pages(open(t, browser, url), map[string]string{"forbidden": "/queues"})
	pages(open(t, browser, behind(t, world).URL+"/#"), map[string]string{
		"no namespace yet": "/quotas", "a namespace": "/quotas?mine=red",
	})
	pages(open(t, browser, serve(t, &factstest.Person{World: factstest.Empty()}, factstest.NewClock())), map[string]string{
		"no quotas": "/quotas", "no queues": "/queues", "no history": "/history", "no preemptions": "/reclaim",
		"no findings": "/health", "no search": "/search",
	})
}

// A change is on the page within two seconds, and what the reader does stays: an open table, the focus, a typed word.
func TestLiveUpdate(t *testing.T) {
	browser := newBrowser(t)
	world, url := firm(t, 60, "")
	x := open(t, browser, url)
	x.at("/queues/work")
	x.until(`document.getElementById('live').textContent === 'Live'`)
	x.do(chromedp.Focus("#text"), chromedp.SendKeys("#text", "abc"))
	world.Finish()
	took := x.until(`!document.body.innerText.includes('job-000000')`)
	t.Logf("a change was on the page after %s", took)
	require.Less(t, took, 2*time.Second)
	require.Equal(t, "text", evaluate[string](x, "document.activeElement.id"))
	require.Equal(t, "abc", evaluate[string](x, "document.activeElement.value"))

	x.at("/quotas")
	x.until(`document.getElementById('live').textContent === 'Live'`)
	x.do(chromedp.Click("summary"))
	world.Finish()
	x.until(`document.body.innerText.includes('58 waiting')`)
	require.True(t, evaluate[bool](x, "document.querySelector('details').open"))
	require.Equal(t, 1, evaluate[int](x, "document.querySelectorAll('main').length"))
}

// The API server stops and comes back, and then the page's own server ends. The page says so once, and is not replaced
// by thousands of messages.
func TestServersStop(t *testing.T) {
	long(t)
	browser := newBrowser(t)
	world, url := firm(t, 3, "")
	x := open(t, browser, url)
	x.at("/jobs/red/job-000000")
	x.until(`document.getElementById('live').textContent === 'Live'`)
	world.Stop(errors.New("dial tcp 192.0.2.1:6443: connect: connection refused"))
	x.until(`document.body.innerText.includes('192.0.2.1:6443')`)
	require.Equal(t, 1, evaluate[int](x, "document.querySelectorAll('.error').length"))
	world.Stop(nil)
	x.until(`document.querySelector('.why') && !document.querySelector('.error')`)

	url, stop := start(t, &factstest.Person{World: world}, factstest.NewClock())
	y := open(t, browser, url)
	y.until(`document.getElementById('live').textContent === 'Live'`)
	stop()
	y.until(`document.getElementById('live').textContent.startsWith('Not live')`)
	require.Contains(t, y.text("#main"), "Quotas")
}

// An object that is deleted while its page is open leaves neither old facts nor buttons. A late press says so.
func TestGoneWhileOpen(t *testing.T) {
	browser := newBrowser(t)
	world, url := firm(t, 3, "")
	x := open(t, browser, url)
	x.at("/jobs/red/job-000000")
	x.until(`document.getElementById('live').textContent === 'Live' && document.querySelector('.actions') !== null`)
	world.Finish()
	x.until(`document.body.innerText.includes('Gone, or never there')`)
	require.Equal(t, 1, evaluate[int](x, "document.querySelectorAll('.error').length"))
	require.Equal(t, 0, evaluate[int](x, "document.querySelectorAll('.actions, .why, .timeline').length"))

	x.at("/jobs/blue/job-000001")
	// Nobody looks, so the page asks nothing.
	evaluate[any](x, `Object.defineProperty(document, 'hidden', {value: true})
		document.dispatchEvent(new Event('visibilitychange')); null`)
	world.Finish()
	x.do(chromedp.Click(".actions button"))
	x.until(`document.querySelector('[role=alert]')?.innerText.includes('not found')`)
}

// The server's time counts: ages and times are right though the browser's clock is an hour ahead.
func TestClockOfTheBrowser(t *testing.T) {
	browser := newBrowser(t)
	clock := factstest.NewClock()
	x := open(t, browser, serve(t, &factstest.Person{World: factstest.Firm(3)}, clock))
	x.ahead(time.Hour)
	x.at("/queues/work")
	require.Greater(t, evaluate[int64](x, "Date.now()"), time.Now().Add(50*time.Minute).UnixMilli())
	asOf := func() time.Duration {
		at, err := time.Parse(time.RFC3339, evaluate[string](x, "document.querySelector('.asof time').dateTime"))
		require.NoError(t, err)
		return clock.Since(at).Abs()
	}
	require.Less(t, asOf(), patience)
	age, err := time.ParseDuration(evaluate[string](x, "document.querySelector('tbody tr').cells[5].innerText"))
	require.NoError(t, err)
	require.Less(t, clock.Since(factstest.Now)-(age-time.Minute), patience, "job-000000 was created a minute before")
	x.until(`document.getElementById('live').textContent === 'Live'`)
	x.at("/jobs/red/job-000000")
	require.Less(t, asOf(), patience)
	require.Contains(t, x.text(".why"), "About 10:10 (in 4")
}

// A filter is in the URL, so that it can be sent to somebody, and the browser's way back undoes it.
func TestFilters(t *testing.T) {
	browser := newBrowser(t)
	_, url := firm(t, 3, "")
	x := open(t, browser, url)
	x.at("/queues/work")
	for field, c := range map[string]struct{ value, has, hasNot string }{
		"namespace": {"blue", "blue/job-000001", "red/job-000000"},
		"quota":     {"red", "red/job-000000", "blue/job-000001"},
		"kind":      {"job", "red/job-000000", "no such text"},
		"reason":    {"Backoff", "None of 3 jobs matches", "red/job-000000"},
		"text":      {"000001", "blue/job-000001", "red/job-000000"},
	} {
		x.at("/queues/work")
		x.do(chromedp.Focus("#"+field), chromedp.SendKeys("#"+field, c.value+"\r"))
		x.until(fmt.Sprintf(`new URLSearchParams(location.search).get(%q) === %q && document.body.innerText.includes(%q)`,
			field, c.value, c.has))
		require.NotContains(t, x.text("main"), c.hasNot)
		evaluate[any](x, "setTimeout(() => history.back()); null")
		x.until(`location.search === '' && ['red/job-000000', 'blue/job-000001'].every((j) =>
			document.body.innerText.includes(j))`)
	}
}

// Everything can be done with the keyboard: each link and field is reached in the order of the page, and is seen to be.
func TestKeyboard(t *testing.T) {
	long(t)
	browser := newBrowser(t)
	_, url := firm(t, 3, "")
	x := open(t, browser, url)
	const reach = `[...document.querySelectorAll(
		'a[href], button, input:not([type=hidden]), select, summary, [tabindex="0"]'
	)].filter((e) => e.checkVisibility()).length`
	const walk = `(() => { const e = document.activeElement; e.dataset.walked = ''; return [
		(e.innerText || e.name || e.getAttribute('aria-label') || e.tagName).trim(), getComputedStyle(e).outlineStyle] })()`
	for name, path := range paths {
		x.at(path)
		reachable := evaluate[int](x, reach)
		var order []string
		for range reachable {
			x.do(chromedp.KeyEvent("\t"))
			at := evaluate[[]string](x, walk)
			require.NotEqual(t, "none", at[1], "%s: the focus on %s cannot be seen", name, at[0])
			order = append(order, at[0])
		}
		walked := evaluate[int](x, `document.querySelectorAll('[data-walked]').length`)
		require.Equal(t, reachable, walked, "%s: %v", name, order)
		require.Equal(t, "To the content", order[0], name)
	}
	x.at("/queues")
	x.do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	x.until(`location.hash === '#main'`)
	x.do(chromedp.Focus("#q"), chromedp.SendKeys("#q", "eval\r"))
	x.until(`location.pathname === '/search' && document.body.innerText.includes('job/eval')`)
}

// A button runs the command that it names, and the page says what the command said.
func TestButtons(t *testing.T) {
	browser := newBrowser(t)
	_, url := firm(t, 3, "")
	x := open(t, browser, url)
	x.at("/jobs/red/eval")
	x.do(chromedp.SetValue("#priority-to", "7"), chromedp.Focus("#priority-to"), chromedp.KeyEvent("\r"))
	x.until(`document.querySelector('.done')?.innerText.includes('done: priority --to=7 job/eval --namespace=red')`)
	require.Empty(t, x.heard())
}

// Persons: an operator, somebody of one namespace, a lead of two, and somebody without rights.
func TestPersons(t *testing.T) {
	long(t)
	browser := newBrowser(t)
	for of, c := range map[string]struct {
		sees, never []string
	}{
		"": {[]string{"train-large", "blue/job-000001", "koordinator-root-quota", "Set priority"}, nil},
		"red": {
			[]string{"train-large", "(another namespace)"}, []string{"job-000001", "root-quota", "Set priority"},
		},
		"lead": {
			[]string{"train-large", "job/report", "all namespaces that you may see"}, []string{"root-quota", "Set priority"},
		},
		factstest.Nobody: {[]string{"You may not see this"}, []string{"train-large", "job-00000", "root-quota"}},
	} {
		x := open(t, browser, serve(t, person(factstest.Firm(3), of), factstest.NewClock()))
		var all strings.Builder
		for _, path := range []string{"/quotas", "/queues", "/queues/work", "/jobs/red/eval", "/history", "/search?q=r"} {
			x.at(path)
			all.WriteString(x.text("main"))
		}
		for _, word := range c.sees {
			require.Contains(t, all.String(), word, of)
		}
		for _, word := range c.never {
			require.NotContains(t, all.String(), word, of)
		}
	}
}

// A script in the name of a job is text. If a bug let it into the page, the policy would still not let it run.
func TestPlantedScript(t *testing.T) {
	browser := newBrowser(t)
	_, url := firm(t, 3, "")
	x := open(t, browser, url)
	x.at("/jobs/red/job-script")
	require.Equal(t, "job/"+factstest.Script, evaluate[string](x, "document.querySelector('h1').textContent"))
	require.NotEqual(t, "taken", get(x, chromedp.Title()))
	require.Empty(t, x.heard())
	evaluate[any](x, `(() => { const s = document.createElement('script')
		s.textContent = "document.title='taken'"; document.body.append(s) })()`)
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(x.heard(), " "), "Content Security Policy") },
		patience, 20*time.Millisecond)
	require.NotEqual(t, "taken", get(x, chromedp.Title()))
}

// A URL from the address bar or the history of the browser lets nobody in, and has no token.
func TestStolenURL(t *testing.T) {
	browser := newBrowser(t)
	_, url := firm(t, 3, "")
	x := open(t, browser, url)
	require.NotContains(t, evaluate[string](x, "location.href"), "token")
	x.at("/quotas/red")
	stolen := evaluate[string](x, "location.href")
	require.Empty(t, evaluate[string](x, "document.cookie"))

	thief := &tab{T: t}
	thief.ctx = newTab(t, browser)
	thief.do(chromedp.Navigate(stolen))
	require.Contains(t, thief.text("main"), "This page has an owner")
	thief.do(chromedp.Navigate("about:blank"), chromedp.Navigate(stolen+"#token=guess"))
	thief.until(`document.body.innerText.includes('earlier start')`)

	// A name that resolves to the loopback reaches the server, and nothing else.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.base+"/quotas", nil)
	require.NoError(t, err)
	request.Host = "rebound.example"
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusMisdirectedRequest, response.StatusCode)
}

// A long line: the first page is there in a second, and the server keeps no copy of it.
func TestManyUnits(t *testing.T) {
	const units, most = 100_000, 100 << 20
	long(t)
	browser := newBrowser(t)
	_, url := firm(t, units, "")
	x := open(t, browser, url)
	before := heap()
	for _, path := range []string{"/queues/work", "/queues/work?from=99950", "/quotas", "/search?q=eval", "/history"} {
		begin := time.Now()
		x.at(path)
		took := time.Since(begin)
		bytes := evaluate[int](x, "document.documentElement.outerHTML.length")
		t.Logf("%s with %d units: %s, %d bytes", path, units, took.Round(time.Millisecond), bytes)
		require.Less(t, took, time.Second, path)
		require.Less(t, bytes, 100_000, path)
	}
	grown := int64(heap()) - int64(before)
	t.Logf("the server and its browser driver keep %d KiB more", grown>>10)
	require.Less(t, grown, int64(most))
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// pictured skips a test that writes pictures, unless a directory is given for them.
func pictured(t *testing.T) (directory string) {
	t.Helper()
	if directory = os.Getenv("JOBQUEUE_PICTURES"); directory == "" {
		t.Skip("no directory for pictures: make pictures")
	}
	return directory
}

// TestPictures writes the pictures of the documentation, in a size that a reader sees whole.
func TestPictures(t *testing.T) {
	pictured(t)
	browser := newBrowser(t)
	_, url := firm(t, 7, "")
	x := open(t, browser, url)
	x.size(1000, 600, 1, "light")
	for _, name := range []string{"quotas", "job"} {
		x.at(paths[name])
		x.until(`document.getElementById('live').textContent === 'Live'`)
		file := filepath.Join("..", "..", "docs", "images", "page-"+name+".png")
		x.picture(file)
		written, err := os.Stat(file)
		require.NoError(t, err)
		require.Less(t, written.Size(), int64(200_000), file)
	}
}

// TestAllPictures writes pictures of all pages and sizes into JOBQUEUE_PICTURES, for those who change them.
func TestAllPictures(t *testing.T) {
	pictures := pictured(t)
	browser := newBrowser(t)
	_, url := firm(t, 7, "")
	x := open(t, browser, url)
	for _, scheme := range []string{"light", "dark"} {
		for size, s := range sizes {
			for name, path := range paths {
				x.size(s.width, s.height, s.scale, scheme)
				x.at(path)
				x.until(`document.getElementById('live').textContent === 'Live'`)
				x.picture(filepath.Join(pictures, fmt.Sprintf("%s-%s-%s.png", name, size, scheme)))
			}
		}
	}
	for _, of := range []string{"red", "lead", factstest.Nobody} {
		x := open(t, browser, serve(t, person(factstest.Firm(7), of), factstest.NewClock()))
		for _, name := range []string{"quotas", "queue", "job"} {
			x.size(1280, 800, 1, "light")
			x.at(paths[name])
			x.picture(filepath.Join(pictures, fmt.Sprintf("%s-of-%s.png", name, of)))
		}
	}
}
