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

// Package pages has the pages: what each reads, and its template. A page is a function of its URL, the answers and the
// time.
package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/charts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/live"
)

//go:embed templates
var files embed.FS

// patience bounds the time for one page.
const patience = 20 * time.Second

// grain of the time on a page: an age changes that often, and the page with it.
const grain = 10 * time.Second

// Site serves all pages.
type Site struct {
	Clock clock.WithTicker
	// Source of the caller of a request.
	Source func(*http.Request) (facts.Source, error)
	// Done ends all streams.
	Done <-chan struct{}
	// Shared says that many people use the server. Each may choose a namespace.
	Shared    bool
	templates *template.Template
	routes    *http.ServeMux
}

// question is a request for a page.
type question struct {
	context.Context
	facts.Source
	*http.Request
	query url.Values
	now   time.Time
}

// view is what a page shows.
type view struct {
	// Title of the page, and Nav the entry of the navigation that it belongs to.
	Title, Nav string
	// Template draws Body.
	Template string
	Body     any
	// Fault replaces the body.
	Fault *fault
	// Note is the scope of the answers in words, where it is not all.
	Note string
}

// frame is a view with all that stands around it.
type frame struct {
	*view
	Path  string
	Live  string
	State string
	Query string
	At    time.Time
	// Said is what a command said before.
	Said *said
	// Shared is that of the site, and Mine the namespace of the reader.
	Shared bool
	Mine   string
}

// NewSite parses all templates.
func NewSite(
	c clock.WithTicker, source func(*http.Request) (facts.Source, error), done <-chan struct{},
) (*Site, error) {
	s := &Site{Clock: c, Source: source, Done: done, routes: http.NewServeMux()}
	var err error
	s.templates, err = template.New("").Funcs(words).Funcs(template.FuncMap{"body": s.body}).
		ParseFS(files, "templates/*.html")
	if err == nil {
		s.templates, err = s.templates.ParseFS(charts.Templates, "templates/*.html")
	}
	if err != nil {
		return nil, err
	}
	s.routes.Handle("GET /{$}", http.RedirectHandler("/quotas", http.StatusFound))
	for path, show := range map[string]func(*question) (*view, error){
		"/quotas": quotasPage, "/quotas/{name}": quotaPage, "/queues": queuesPage, "/queues/{name}": queuePage,
		"/jobs/{namespace}/{name}": jobPage, "/reclaim": reclaimPage, "/history": historyPage, "/health": healthPage,
		"/search": searchPage,
	} {
		s.routes.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.page(w, r, show, nil) })
		s.routes.Handle("GET /live"+path, http.StripPrefix("/live", s.stream(path, show)))
	}
	s.routes.HandleFunc("POST /jobs/{namespace}/{name}", s.act)
	s.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.page(w, r, func(*question) (*view, error) { return nil, errNoPage }, nil)
	})
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Entrance tells somebody without a session how to get one. The script exchanges the token.
func (s *Site) Entrance() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusUnauthorized)
		s.write(w, "entrance", s.Shared, "")
	})
}

// write draws a template, whose links name the namespace of the reader if that was chosen.
func (s *Site) write(w http.ResponseWriter, name string, data any, namespace string) {
	var text bytes.Buffer
	if err := s.templates.ExecuteTemplate(&text, name, data); err != nil {
		klog.Background().Error(err, "A page could not be drawn", "template", name)
		http.Error(w, "this page could not be drawn", http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, keep(text.String(), namespace))
}

// body draws a template by its name.
func (s *Site) body(name string, data any) (template.HTML, error) {
	var text strings.Builder
	err := s.templates.ExecuteTemplate(&text, name, data)
	return template.HTML(text.String()), err //nolint:gosec // a template of this package has escaped it
}

// source of the caller, with the namespace that the caller chose.
func (s *Site) source(r *http.Request) (facts.Source, error) {
	source, err := s.Source(r)
	if namespace := s.choice(r); err == nil && namespace != "" {
		source = within{source, namespace}
	}
	return source, err
}

// ask has a page answered, at a time that moves in grains.
func (s *Site) ask(r *http.Request, show func(*question) (*view, error)) *view {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	source, err := s.source(r)
	var v *view
	if err == nil {
		v, err = show(&question{ctx, source, r, r.URL.Query(), s.Clock.Now().UTC().Truncate(grain)})
	}
	if err != nil {
		f := faultOf(err)
		v = &view{Title: f.Title, Nav: "/" + strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")[0], Fault: f}
	}
	return v
}

func (s *Site) page(w http.ResponseWriter, r *http.Request, show func(*question) (*view, error), said *said) {
	v := s.ask(r, show)
	f := &frame{view: v, Path: r.URL.RequestURI(), Query: r.URL.Query().Get("q"), At: s.Clock.Now(), Said: said,
		Shared: s.Shared, Mine: s.choice(r)}
	f.State = s.state(v)
	f.Live = "/live" + f.Path
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.Fault != nil {
		w.WriteHeader(v.Fault.Status)
	}
	s.write(w, "frame", f, f.Mine)
}

// state names what a view shows.
func (s *Site) state(v *view) string {
	var text bytes.Buffer
	if err := s.templates.ExecuteTemplate(&text, "content", &frame{view: v}); err != nil {
		return "error"
	}
	sum := sha256.Sum256(text.Bytes())
	return hex.EncodeToString(sum[:8])
}

// stream tells of changes of a page. The path of the request has the names of the page.
func (s *Site) stream(pattern string, show func(*question) (*view, error)) http.Handler {
	// The names in the path are those of the page.
	page := http.NewServeMux()
	page.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
		(&live.Stream{
			Clock: s.Clock, Done: s.Done, State: func(context.Context) (state string, last bool) {
				v := s.ask(r, show)
				// The token of this request has ended. The proxy may have another one for the next request.
				return s.state(v), s.Shared && v.Fault != nil && v.Fault.Stranger
			},
		}).ServeHTTP(w, r)
	})
	return page
}

// fault is why a page has no content.
type fault struct {
	Status      int
	Title, Text string
	// Help is what to do.
	Help string
	// Again says that the page asks again by itself.
	Again bool
	// Stranger says that the API server does not know the caller.
	Stranger bool
}

var errNoPage = errors.New("no such page")

func faultOf(err error) *fault {
	f := &fault{Status: http.StatusBadGateway, Title: "No answer", Text: err.Error(), Again: true,
		Help: "Ask kubectl jobqueue doctor what does not run. The page appears when the server answers."}
	switch {
	case errors.Is(err, errNoPage):
		return &fault{Status: http.StatusNotFound, Title: "No such page", Text: "Nothing has this address.",
			Help: "Choose a page above."}
	case apierrors.IsForbidden(err):
		f.Status, f.Title = http.StatusForbidden, "You may not see this"
		f.Help = "Ask an operator for the role jobqueue-operator, or choose a namespace that you may read."
	case apierrors.IsNotFound(err):
		f.Status, f.Title = http.StatusNotFound, "Gone, or never there"
		f.Help = "History has what was deleted. If another object of this name is created, the page shows it."
	case apierrors.IsUnauthorized(err):
		f.Status, f.Title, f.Stranger = http.StatusForbidden, "The cluster does not know you", true
		f.Help = "Log in again. If kubectl jobqueue web serves this page, start it again."
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		f.Status, f.Title = http.StatusGatewayTimeout, "No answer in time"
	}
	return f
}
