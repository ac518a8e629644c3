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

// Package guard lets the person who started the page use it. It keeps out other users of the machine, other sites in
// the same browser, and names that resolve to the loopback.
package guard

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Policy is the Content-Security-Policy of every answer.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// ExchangePath takes the token and answers with the cookie.
const ExchangePath = "/session"

// maxToken bounds the body of an exchange, in bytes.
const maxToken = 256

// Session is one start of the page. Its token is in the fragment of the URL that is printed, which browsers send to
// nobody. The script of the page exchanges it for a cookie.
type Session struct {
	token, secret string
	hosts         map[string]bool
	cookie        string
}

// NewSession returns a session of a server on a loopback address.
func NewSession(address net.Addr) (*Session, error) {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil, err
	}
	s := &Session{
		token: rand.Text(), secret: rand.Text(), hosts: map[string]bool{},
		// Browsers send the cookies of all ports of a host.
		cookie: "koord-jobqueue-" + port,
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		s.hosts[net.JoinHostPort(host, port)] = true
	}
	return s, nil
}

// URL has the token.
func (s *Session) URL(address net.Addr) string {
	return fmt.Sprintf("http://%s/#token=%s", address, s.token)
}

// Protect serves requests of the session. Others get the entrance: a page that says what to do, and has no content.
func (s *Session) Protect(next, entrance http.Handler) http.Handler {
	protected := http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == ExchangePath:
			s.exchange(w, r)
		case s.knows(r):
			next.ServeHTTP(w, r)
		default:
			entrance.ServeHTTP(w, r)
		}
	}))
	return Headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hosts[strings.ToLower(r.Host)] {
			http.Error(w, "this server answers to its loopback address only", http.StatusMisdirectedRequest)
			return
		}
		protected.ServeHTTP(w, r)
	}))
}

func (s *Session) knows(r *http.Request) bool {
	cookie, err := r.Cookie(s.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.secret)) == 1
}

func (s *Session) exchange(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST the token", http.StatusMethodNotAllowed)
		return
	}
	token, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxToken))
	if err != nil || subtle.ConstantTimeCompare(token, []byte(s.token)) != 1 {
		http.Error(w, "this token is of another start", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // the loopback has no TLS, and cookies that need it are not kept there
		Name: s.cookie, Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.WriteHeader(http.StatusNoContent)
}

// Headers sets what browsers must not do with an answer.
func Headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
