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
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/callers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/guard"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/pages"
)

// Bounds of a server of many people.
const (
	// streamTime ends a stream. The browser opens the next one, whose token the proxy may have renewed.
	streamTime = 90 * time.Second
	// requestTime bounds a whole request with its answer, and is longer than a stream.
	requestTime = 2 * time.Minute
	// mostHeader bounds the headers and the URL of a request, in bytes. The headers have a token, and the cookies of a
	// proxy have two more.
	mostHeader = 64 << 10
	// Open streams, and pages that are made at the same time.
	streamsEach, streamsAll = 20, 400
	pagesEach, pagesAll     = 8, 64
)

// SharedOptions are those of a server of many people.
type SharedOptions struct {
	// Address to listen on, such as :8443.
	Address string
	// Hosts are the names by which browsers, or the proxy, call the server. Other names get no answer.
	Hosts []string
	// Certificate is that of the server. Without it the server listens on the loopback only, where nobody else can read a
	// token.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Open asks the API server who has a token.
	Open  callers.Open
	Clock clock.WithTicker
}

// Shared is a server of many people, behind a proxy that logs them in. It has no rights of its own. A request has the
// rights of the bearer token that the proxy adds.
type Shared struct {
	listener net.Listener
	server   *http.Server
}

// ListenShared opens the port. Streams end with the context, and browsers try another replica.
func ListenShared(ctx context.Context, o SharedOptions) (*Shared, error) {
	if len(o.Hosts) == 0 {
		return nil, errors.New("want the names of the server: --host")
	}
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); o.Certificate == nil && (ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("requests have tokens: want a certificate, or an address of the loopback")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	s := &Shared{listener: listener}
	handler, err := o.handler(ctx)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: mostHeader,
		ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: requestTime,
	}
	if o.Certificate != nil {
		s.server.TLSConfig = &tls.Config{GetCertificate: o.Certificate, MinVersion: tls.VersionTLS12}
	}
	return s, nil
}

// Address is where the server listens.
func (s *Shared) Address() net.Addr { return s.listener.Addr() }

// Serve answers until the context ends.
func (s *Shared) Serve(ctx context.Context) error {
	return serve(ctx, s.server, func() {}, func() error {
		if s.server.TLSConfig != nil {
			return s.server.ServeTLS(s.listener, "", "")
		}
		return s.server.Serve(s.listener)
	})
}

// asked is the key of an answer in the context of a request.
type asked struct{}

// answer has the source of the caller, or says why there is none.
type answer func() (facts.Source, error)

// handler serves until the context ends.
func (o *SharedOptions) handler(ctx context.Context) (http.Handler, error) {
	site, err := pages.NewSite(o.Clock, func(r *http.Request) (facts.Source, error) {
		return r.Context().Value(asked{}).(answer)()
	}, nil)
	if err != nil {
		return nil, err
	}
	site.Shared = true
	known := callers.New(o.Clock, func(ctx context.Context, token string) (*callers.Caller, error) {
		c, err := o.Open(ctx, token)
		if err == nil {
			c = &callers.Caller{Name: c.Name, Source: &facts.Cached{Source: c.Source, Clock: o.Clock}}
		}
		return c, err
	})
	mux := http.NewServeMux()
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	}
	mux.Handle("/", guard.Behind(o.Hosts, bounded(ctx, known, withAssets(site)), withAssets(site.Entrance())))
	return mux, nil
}

// bounded lets a caller have so much open at the same time. Streams end with the context of the server.
func bounded(server context.Context, known *callers.Known, next http.Handler) http.Handler {
	streams := &callers.Bound{Each: streamsEach, All: streamsAll}
	made := &callers.Bound{Each: pagesEach, All: pagesAll}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := guard.Token(r)
		caller, err := known.Of(r.Context(), token)
		stream := strings.HasPrefix(r.URL.Path, "/live/")
		if err != nil {
			if stream { // the page says why
				http.Error(w, "this token opens no stream", statusOf(err))
				return
			}
			refused := answer(func() (facts.Source, error) { return nil, err })
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), asked{}, refused)))
			return
		}
		ctx := context.WithValue(r.Context(), asked{}, answer(func() (facts.Source, error) { return caller.Source, nil }))
		bound := made
		if stream {
			bound = streams
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, streamTime)
			defer cancel()
			defer context.AfterFunc(server, cancel)()
		}
		leave, ok := bound.Enter(caller.Name)
		if !ok {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many requests at once: close some tabs, or try again", http.StatusTooManyRequests)
			return
		}
		defer leave()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func statusOf(err error) int {
	if apierrors.IsUnauthorized(err) {
		return http.StatusUnauthorized
	}
	return http.StatusBadGateway
}
