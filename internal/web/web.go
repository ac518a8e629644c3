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

// Package web serves the page: queues, quotas and jobs for people who would rather look than read. The server makes all
// of it, with the rights of the caller. The URL is the only state of a browser. Local is a server of one person, and
// Shared one of many.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/assets"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/guard"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/pages"
)

// Times of the server.
const (
	headerTimeout = 10 * time.Second
	// goodbye is for how long the end of open streams is waited for.
	goodbye = 2 * time.Second
)

// Local is a server of one person, on a loopback address.
type Local struct {
	listener net.Listener
	session  *guard.Session
	server   *http.Server
	done     chan struct{}
}

// Listen opens a port of the loopback; 0 chooses one.
func Listen(ctx context.Context, address string, c clock.WithTicker, source facts.Source) (*Local, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, errors.New("the page is for one person: want an address of the loopback, such as 127.0.0.1:0")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	session, err := guard.NewSession(listener.Addr())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l := &Local{listener: listener, session: session, done: make(chan struct{})}
	cached := &facts.Cached{Source: source, Clock: c}
	site, err := pages.NewSite(c, func(*http.Request) (facts.Source, error) { return cached, nil }, l.done)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l.server = &http.Server{Handler: l.session.Protect(withAssets(site), withAssets(site.Entrance())),
		ReadHeaderTimeout: headerTimeout}
	return l, nil
}

func withAssets(rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", assets.Handler())
	mux.Handle("/", rest)
	return mux
}

// URL lets its reader in.
func (l *Local) URL() string { return l.session.URL(l.listener.Addr()) }

// Serve answers until the context ends. Open streams are told.
func (l *Local) Serve(ctx context.Context) error {
	return serve(ctx, l.server, func() { close(l.done) }, func() error { return l.server.Serve(l.listener) })
}

// serve answers until the context ends. end has open streams end.
func serve(ctx context.Context, server *http.Server, end func(), answer func() error) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		end()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		err := server.Shutdown(last)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		stopped <- err
	})
	defer stop()
	if err := answer(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
