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
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/callers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

// people of a world: a token of-NAME is that of the reader of the namespace NAME, and of-all that of the reader of all.
func people(ctx context.Context, token string) (*callers.Caller, error) {
	of, ok := strings.CutPrefix(token, "of-")
	if !ok {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	if of == "all" {
		of = ""
	}
	return &callers.Caller{Name: token, Source: &factstest.Person{World: factstest.Firm(3), Of: of}}, ctx.Err()
}

// visit asks a server of many people.
type visit struct {
	*testing.T
	base string
	stop func()
}

func newVisit(t *testing.T) *visit {
	t.Helper()
	return newVisitOf(t, people)
}

func newVisitOf(t *testing.T, open callers.Open) *visit {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	shared, err := ListenShared(ctx, SharedOptions{
		Address: "127.0.0.1:0", Hosts: []string{"127.0.0.1"}, Open: open, Clock: factstest.NewClock(),
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- shared.Serve(ctx) }()
	v := &visit{T: t, base: "http://" + shared.Address().String()}
	ended := false
	v.stop = func() {
		if cancel(); !ended {
			ended = true
			require.NoError(t, <-served)
		}
	}
	t.Cleanup(v.stop)
	return v
}

// reply is the answer to a request.
type reply struct {
	io.ReadCloser
	status int
	header http.Header
}

// ask with a token, none if it is empty.
func (v *visit) ask(method, path, token, body string, headers ...string) reply {
	v.Helper()
	request, err := http.NewRequestWithContext(v.Context(), method, v.base+path, strings.NewReader(body))
	require.NoError(v, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if request.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(v, err)
	v.Cleanup(func() { _ = response.Body.Close() })
	return reply{response.Body, response.StatusCode, response.Header}
}

func (v *visit) text(r reply, status int) string {
	v.Helper()
	require.Equal(v, status, r.status)
	text, err := io.ReadAll(r)
	require.NoError(v, err)
	return string(text)
}

// The headers of oauth2-proxy for a person in 200 groups: the cookies of its session, the groups, and a token.
func TestHeadersOfManyGroups(t *testing.T) {
	v := newVisit(t)
	long := func(kibibytes int) string { return strings.Repeat("a", kibibytes<<10) }
	v.text(v.ask(http.MethodGet, "/quotas", "of-red", "", "Cookie", "_oauth2_proxy="+long(25),
		"X-Forwarded-Groups", long(7), "X-Forwarded-Access-Token", long(11)), http.StatusOK)
}

// Each request has the rights of its token, and no token is in an answer or in the log.
func TestShared(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.SetOutput(os.Stderr)
	v := newVisit(t)
	for _, c := range []struct {
		path, token string
		status      int
		has, hasNot string
	}{
		{"/quotas", "of-all", 200, `href="/quotas/blue"`, "You may read namespace"},
		{"/quotas", "of-red", 200, "You may read namespace red.", `href="/quotas/blue"`},
		{"/quotas", "of-blue", 200, "You may read namespace blue.", `href="/quotas/red"`},
		{"/jobs/red/eval", "of-red", 200, "eval", ""},
		{"/jobs/red/eval", "of-blue", 403, "You may not see this", ""},
		{"/quotas", "", 401, "Log in first", "blue"},
		{"/live/quotas", "", 401, "Log in first", "blue"},
		{"/quotas", "forged-one", 403, "The cluster does not know you", "blue"},
		{"/live/quotas", "forged-one", 401, "this token opens no stream", "blue"},
		{"/healthz", "", 200, "ok", ""},
		{"/readyz", "", 200, "ok", ""},
		{"/static/page.css", "", 200, "--ground", ""},
	} {
		text := v.text(v.ask(http.MethodGet, c.path, c.token, ""), c.status)
		require.Contains(t, text, c.has, c.path)
		if c.hasNot != "" {
			require.NotContains(t, text, c.hasNot, "%s of %s", c.path, c.token)
		}
		if c.token != "" {
			require.NotContains(t, text, c.token)
		}
	}
	require.Contains(t, v.text(v.ask(http.MethodPost, "/jobs/red/eval", "of-red", "verb=hold",
		"Content-Type", "application/x-www-form-urlencoded"), 200), "done: hold job/eval --namespace=red")
	v.text(v.ask(http.MethodPost, "/jobs/red/eval", "of-red", "verb=hold", "Origin", "https://evil.example"), 403)
	v.text(v.ask(http.MethodGet, "/quotas", "of-red", "", "Host", "evil.example"), 421)
	v.text(v.ask(http.MethodGet, "/healthz", "", "", "Host", "10.1.2.3:8443"), 200)
	v.text(v.ask(http.MethodGet, "/"+strings.Repeat("x", mostHeader+8<<10), "of-red", ""), 431)
	v.stop()
	klog.Flush()
	for _, token := range []string{"of-red", "of-all", "forged-one"} {
		require.NotContains(t, log.String(), token)
	}
}

// One person cannot open more streams than its share, and gets them back when tabs are closed.
func TestStreamsAreBounded(t *testing.T) {
	v := newVisit(t)
	var open []reply
	for range streamsEach {
		r := v.ask(http.MethodGet, "/live/quotas", "of-red", "")
		require.Equal(t, http.StatusOK, r.status)
		open = append(open, r)
	}
	refused := v.ask(http.MethodGet, "/live/quotas", "of-red", "")
	require.Contains(t, v.text(refused, http.StatusTooManyRequests), "close some tabs")
	require.Equal(t, "5", refused.header.Get("Retry-After"))
	v.text(v.ask(http.MethodGet, "/quotas", "of-red", ""), http.StatusOK)
	require.Equal(t, http.StatusOK, v.ask(http.MethodGet, "/live/quotas", "of-blue", "").status)
	require.NoError(t, open[0].Close())
	require.Eventually(t, func() bool {
		return v.ask(http.MethodGet, "/live/quotas", "of-red", "").status == http.StatusOK
	}, 10*time.Second, 10*time.Millisecond)
}

// A server that ends closes its streams without a last word, so that browsers try another replica.
func TestSharedEndsItsStreams(t *testing.T) {
	v := newVisit(t)
	stream := bufio.NewScanner(v.ask(http.MethodGet, "/live/quotas", "of-red", ""))
	require.True(t, stream.Scan())
	v.stop()
	for stream.Scan() {
		require.NotContains(t, stream.Text(), "event: end")
	}
}

// mortal is the source of a token that ends.
type mortal struct {
	facts.Source
	ended *atomic.Bool
}

func (m mortal) Quotas(ctx context.Context, namespace string) ([]visibility.Quota, error) {
	if m.ended.Load() {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	return m.Source.Quotas(ctx, namespace)
}

// A stream ends with its token, so that the browser opens one with the token that the proxy has renewed.
func TestStreamsEndWithTheirToken(t *testing.T) {
	var ended, closed atomic.Bool
	v := newVisitOf(t, func(ctx context.Context, token string) (*callers.Caller, error) {
		c, err := people(ctx, token)
		if err == nil {
			c.Source = mortal{c.Source, &ended}
		}
		return c, err
	})
	stream := bufio.NewReader(v.ask(http.MethodGet, "/live/quotas", "of-red", ""))
	_, err := stream.ReadString('\n')
	require.NoError(t, err)
	ended.Store(true)
	go func() {
		_, _ = io.Copy(io.Discard, stream)
		closed.Store(true)
	}()
	require.Eventually(t, closed.Load, 10*time.Second, 10*time.Millisecond)
}

// A token is not read from a network without TLS, and a server without names answers nobody.
func TestSharedRefusesToListen(t *testing.T) {
	for want, o := range map[string]SharedOptions{
		"--host":               {Address: "127.0.0.1:0"},
		"want a certificate":   {Address: ":0", Hosts: []string{"a"}},
		"missing port":         {Address: "127.0.0.1", Hosts: []string{"a"}},
		"or an address of the": {Address: "192.0.2.1:0", Hosts: []string{"a"}},
	} {
		o.Open = people
		_, err := ListenShared(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}
