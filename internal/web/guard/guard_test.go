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

package guard

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func session(t *testing.T) (s *Session, h http.Handler) {
	t.Helper()
	s, err := NewSession(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	require.NoError(t, err)
	say := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	return s, s.Protect(say(http.StatusOK), say(http.StatusUnauthorized))
}

// request as a browser sends it. A header without a value is left out.
func request(method, host, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "http://"+host+path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWhoIsLetIn(t *testing.T) {
	s, h := session(t)
	const host = "127.0.0.1:8080"
	_, token, _ := strings.Cut(s.URL(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}), "/#token=")
	let := answer(h, request(http.MethodPost, host, ExchangePath, token))
	require.Equal(t, http.StatusNoContent, let.Code)
	set := let.Header().Get("Set-Cookie")
	require.Contains(t, set, "; HttpOnly; SameSite=Strict")
	require.NotContains(t, set, token)
	cookie, _, _ := strings.Cut(set, ";")

	for name, c := range map[string]struct {
		request *http.Request
		status  int
	}{
		"with the cookie":       {request(http.MethodGet, host, "/quotas", "", "Cookie", cookie), 200},
		"by another name of it": {request(http.MethodGet, "localhost:8080", "/quotas", "", "Cookie", cookie), 200},
		"a stolen URL":          {request(http.MethodGet, host, "/quotas", ""), 401},
		"a made-up cookie":      {request(http.MethodGet, host, "/quotas", "", "Cookie", "koord-jobqueue-8080=x"), 401},
		"the cookie of a port": {
			request(http.MethodGet, host, "/", "", "Cookie", strings.Replace(cookie, "8080", "80", 1)), 401,
		},
		"the token in the query": {request(http.MethodGet, host, "/?token="+token, ""), 401},
		"a wrong token":          {request(http.MethodPost, host, ExchangePath, "x"), 403},
		"no token":               {request(http.MethodPost, host, ExchangePath, ""), 403},
		"a token by GET":         {request(http.MethodGet, host, ExchangePath, token), 405},
		"a name that resolves to the loopback": {
			request(http.MethodGet, "evil.example:8080", "/quotas", "", "Cookie", cookie), 421,
		},
		"an exchange by such a name": {request(http.MethodPost, "evil.example:8080", ExchangePath, token), 421},
		"another port":               {request(http.MethodGet, "127.0.0.1:8081", "/quotas", "", "Cookie", cookie), 421},
		"a form of another site": {
			request(http.MethodPost, host, "/jobs/a/b", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"), 403,
		},
		"a form of another port": {
			request(http.MethodPost, host, "/jobs/a/b", "", "Cookie", cookie, "Sec-Fetch-Site", "same-site"), 403,
		},
		"a form of an old browser elsewhere": {
			request(http.MethodPost, host, "/jobs/a/b", "", "Cookie", cookie, "Origin", "http://127.0.0.1:9"), 403,
		},
		"an own form": {
			request(http.MethodPost, host, "/jobs/a/b", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin"), 200,
		},
	} {
		got := answer(h, c.request)
		require.Equal(t, c.status, got.Code, name)
		require.Equal(t, Policy, got.Header().Get("Content-Security-Policy"), name)
	}
}

func TestWhoIsLetInBehindAProxy(t *testing.T) {
	say := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	h := Behind([]string{"queue.example.com", "web.koord-queue.svc"}, say(http.StatusOK), say(http.StatusUnauthorized))
	const host = "queue.example.com"
	get := func(host, path string, headers ...string) *http.Request {
		return request(http.MethodGet, host, path, "", headers...)
	}
	bearer := func(host, token string) *http.Request { return get(host, "/quotas", "Authorization", "Bearer "+token) }
	two := bearer(host, "a.b.c")
	two.Header["Authorization"] = []string{"Bearer a.b.c", "Bearer d"}
	for name, c := range map[string]struct {
		request *http.Request
		status  int
	}{
		"with a token":            {bearer(host, "a.b-c_d~1+/=="), 200},
		"by the other name":       {get("WEB.koord-queue.svc:8443", "/", "Authorization", "bearer a"), 200},
		"without a token":         {get(host, "/quotas"), 401},
		"no token in the header":  {bearer(host, ""), 401},
		"a password":              {get(host, "/quotas", "Authorization", "Basic cm9vdDpyb290"), 401},
		"two tokens":              {two, 401},
		"a token with a blank":    {bearer(host, "a b"), 401},
		"a very long token":       {bearer(host, strings.Repeat("a", mostTokenBytes+1)), 401},
		"names in headers":        {get(host, "/", "X-Remote-User", "root", "Impersonate-User", "root"), 401},
		"the token in the query":  {get(host, "/?access_token=a"), 401},
		"a name that resolves so": {bearer("evil.example", "a"), 421},
		"a longer name":           {bearer("queue.example.com.evil.example", "a"), 421},
		"a form of another site": {
			request(http.MethodPost, host, "/jobs/a/b", "", "Authorization", "Bearer a", "Sec-Fetch-Site", "cross-site"), 403,
		},
		"an own form": {
			request(http.MethodPost, host, "/jobs/a/b", "", "Authorization", "Bearer a", "Origin", "https://"+host), 200,
		},
	} {
		got := answer(h, c.request)
		require.Equal(t, c.status, got.Code, name)
		require.Equal(t, Policy, got.Header().Get("Content-Security-Policy"), name)
	}
}
