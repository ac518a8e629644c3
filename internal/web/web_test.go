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
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

// From the URL to the end of the server, as a browser does it: the token, a page, its stream, and the last event.
func TestLocal(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	source := &factstest.Person{World: factstest.Firm(3)}
	_, err := Listen(ctx, "0.0.0.0:0", factstest.NewClock(), source)
	require.ErrorContains(t, err, "loopback")
	local, err := Listen(ctx, "127.0.0.1:0", factstest.NewClock(), source)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- local.Serve(ctx) }()
	base, token, _ := strings.Cut(local.URL(), "/#token=")

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar}
	ask := func(method, path, body string, want int) io.Reader {
		request, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		require.Equal(t, want, response.StatusCode, path)
		return response.Body
	}
	ask(http.MethodGet, "/quotas", "", http.StatusUnauthorized)
	ask(http.MethodGet, "/live/quotas", "", http.StatusUnauthorized)
	ask(http.MethodPost, "/jobs/red/eval", "verb=hold", http.StatusUnauthorized)
	ask(http.MethodGet, "/static/page.js", "", http.StatusOK)
	ask(http.MethodGet, "/static/vendored.yaml", "", http.StatusNotFound)
	ask(http.MethodPost, "/session", token, http.StatusNoContent)
	page, err := io.ReadAll(ask(http.MethodGet, "/", "", http.StatusOK))
	require.NoError(t, err)
	require.Contains(t, string(page), "<h1>Quotas</h1>")
	_, state, _ := strings.Cut(string(page), `data-state="`)
	state, _, _ = strings.Cut(state, `"`)

	stream := bufio.NewScanner(ask(http.MethodGet, "/live/quotas?have="+state, "", http.StatusOK))
	require.True(t, stream.Scan())
	stop()
	last := ""
	for stream.Scan() {
		if stream.Text() != "" {
			last = last + stream.Text() + ";"
		}
	}
	require.True(t, strings.HasSuffix(last, "event: end;data:;"), last)
	require.NoError(t, <-served)
}
