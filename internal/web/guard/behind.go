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
	"regexp"
	"slices"
	"strings"
)

// mostTokenBytes bounds a bearer token. Tokens with many groups have some thousand bytes.
const mostTokenBytes = 16 << 10

// tokens are those of RFC 6750.
var tokens = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// Token is the bearer token of a request. The API server says whose it is.
func Token(r *http.Request) (token string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > mostTokenBytes || !tokens.MatchString(token) {
		return "", false
	}
	return token, true
}

// Behind protects a server behind a proxy, which adds the bearer token of the caller to each request. Requests without
// a token get the entrance. A request for a host that is not listed gets no answer, whatever its token.
func Behind(hosts []string, next, entrance http.Handler) http.Handler {
	protected := http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := Token(r); !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			entrance.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return Headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.ContainsFunc(hosts, func(host string) bool { return strings.EqualFold(host, hostOf(r)) }) {
			http.Error(w, "this server has another name: see its flag --host", http.StatusMisdirectedRequest)
			return
		}
		protected.ServeHTTP(w, r)
	}))
}

// hostOf a request is without the port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}
