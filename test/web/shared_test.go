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
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/callers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

// nameless is a source whose caller has no namespace, as that of a person who has no jobs.
type nameless struct{ facts.Source }

func (nameless) Namespace() string { return "" }

// proxy has logged the reader of namespace red in.
type proxy struct {
	*httptest.Server
	// broken answers streams with an error, and refused counts these answers.
	broken  atomic.Bool
	refused atomic.Int32
}

// behind serves the page to many people, behind a proxy.
func behind(t *testing.T, world *factstest.World) *proxy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	shared, err := web.ListenShared(ctx, web.SharedOptions{
		Address: "127.0.0.1:0", Hosts: []string{"127.0.0.1"}, Clock: factstest.NewClock(),
		Open: func(_ context.Context, token string) (*callers.Caller, error) {
			return &callers.Caller{Name: token, Source: nameless{&factstest.Person{World: world, Of: token}}}, nil
		},
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- shared.Serve(ctx) }()
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: shared.Address().String()})
		r.Out.Host = r.In.Host
		r.Out.Header = http.Header{}
		for key, values := range r.In.Header {
			r.Out.Header[key] = values
		}
		r.Out.Header.Set("Authorization", "Bearer red")
	}}
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.broken.Load() && strings.HasPrefix(r.URL.Path, "/live/") {
			p.refused.Add(1)
			http.Error(w, "no server of the page", http.StatusBadGateway)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// A reader of one namespace chooses it once. Links, filters and live updates of all pages keep it.
func TestShared(t *testing.T) {
	browser, world := newBrowser(t), factstest.Firm(60)
	x := open(t, browser, behind(t, world).URL+"/#")
	x.until(`document.body.innerText.includes('You may not see this')`)
	x.do(chromedp.Focus("#mine"), chromedp.SendKeys("#mine", "red\r"))
	x.until(`location.search === '?mine=red' && document.body.innerText.includes('You may read namespace red.')`)
	x.do(chromedp.Click(`nav a[href^="/queues"]`))
	x.until(`location.pathname === '/queues' && location.search === '?mine=red'`)
	x.do(chromedp.Click(`th a[href^="/queues/work"]`))
	x.until(`location.pathname === '/queues/work' && document.body.innerText.includes('red/job-000000')`)
	x.until(`document.getElementById('live').textContent === 'Live'`)
	world.Finish()
	x.until(`!document.body.innerText.includes('red/job-000000')`)
	x.do(chromedp.Focus("#text"), chromedp.SendKeys("#text", "job-00002\r"))
	x.until(`location.search.includes('job-00002') && document.body.innerText.includes('red/job-000020') &&
		!document.body.innerText.includes('red/job-000002')`)
	x.at("/quotas?mine=red")
	x.until(`location.pathname === '/quotas' && document.getElementById('resource') !== null`)
	// In one step: a live update between two would put a new form in place of this one.
	evaluate[bool](x, `(() => {
		const choice = document.getElementById('resource')
		choice.value = 'cpu'
		choice.form.querySelector('button').click()
		return true
	})()`)
	x.until(`location.search === '?mine=red&resource=cpu' &&
		document.querySelector('#resource [selected]')?.value === 'cpu'`)
	require.Contains(t, x.text("#main"), "You may read namespace red.")
	x.size(360, 740, 2, "light")
	wide := evaluate[int](x, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
	require.LessOrEqual(t, wide, 0, "the page is wider than its window")
}

// Browsers do not open a stream again that was answered with an error. The page does, and is live when the proxy finds
// a server again.
func TestStreamsAreOpenedAgain(t *testing.T) {
	browser, world := newBrowser(t), factstest.Firm(60)
	p := behind(t, world)
	x := open(t, browser, p.URL+"/#")
	x.at("/queues/work?mine=red")
	x.until(`document.getElementById('live').textContent === 'Live'`)
	p.broken.Store(true)
	p.CloseClientConnections()
	require.Eventually(t, func() bool { return p.refused.Load() > 1 }, patience, 10*time.Millisecond)
	x.until(`document.getElementById('live').textContent.startsWith('Not live')`)
	p.broken.Store(false)
	x.until(`document.getElementById('live').textContent === 'Live'`)
	require.Contains(t, x.text("#main"), "red/job-000000")
	world.Finish()
	x.until(`!document.body.innerText.includes('red/job-000000')`)
}
