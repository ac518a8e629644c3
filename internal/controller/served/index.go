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

package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/utils/clock"
)

const (
	// lookEvery is how often the index is read.
	lookEvery = 5 * time.Second
	// timeout of a request.
	timeout = 30 * time.Second
)

// errNotRead: the API server has not answered yet.
var errNotRead = errors.New("the API server does not answer")

// Index of what an API server serves. It is safe for concurrent use.
type Index struct {
	client openapi.Client
	clock  clock.WithTicker

	mu sync.Mutex
	// groups by path, as "apis/batch/v1"; nil until the index was read.
	groups map[string]openapi.GroupVersion
	// err of the last look.
	err error
	// next is closed at the next look.
	next chan struct{}

	// asking guards known: one document is read at a time.
	asking sync.Mutex
	known  map[question]answer
}

// question is whether a resource is served, and whether its objects may have a field.
type question struct {
	gvr schema.GroupVersionResource
	// kind and field of the objects, as ".spec.suspend"; the field is empty if none is asked for.
	kind, field string
}

// answer holds until the document has another hash, which url has in it.
type answer struct {
	url           string
	served, field bool
}

// New returns an index of this API server. Nothing is read until Start or Look.
func New(config *rest.Config, clk clock.WithTicker) (*Index, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	own := *client
	own.Timeout = timeout
	// A server that has a document of another hash redirects to it. Such a document must not be kept for this hash: one
	// address can have several servers, and some learn of a change later than others.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, &own)
	if err != nil {
		return nil, err
	}
	return &Index{client: found.OpenAPIV3(), clock: clk, next: make(chan struct{}), known: map[question]answer{}}, nil
}

// Start reads the index every few seconds until the context ends.
func (x *Index) Start(ctx context.Context) {
	ticker := x.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := x.Look(); err != nil {
			klog.FromContext(ctx).V(4).Info("The API server does not say what it serves", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// Look reads the index once. If the API server does not answer, what it said last holds.
func (x *Index) Look() error {
	groups, err := x.client.Paths()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		x.groups = groups
	}
	x.err = err
	close(x.next)
	x.next = make(chan struct{})
	return err
}

// Next returns a channel that is closed at the next look.
func (x *Index) Next() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.next
}

// Wait returns when ready returns nil, or with the context's error. ready is called only while all needed groups and
// versions are served: at once, and at each look, since rights may be given later. A version that is not named is any.
func (x *Index) Wait(ctx context.Context, ready func(context.Context) error, needed ...schema.GroupVersion) error {
	said := ""
	for {
		next := x.Next() // before it is asked: what comes in between is not missed
		err := x.missing(needed)
		if err == nil {
			err = ready(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if said != err.Error() {
			said = err.Error()
			klog.FromContext(ctx).V(1).Info("Waiting for what the API server does not serve yet", "needed", needed,
				"cause", said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}

// missing says which of them is not served.
func (x *Index) missing(needed []schema.GroupVersion) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.groups == nil {
		return x.notRead()
	}
	for _, gv := range needed {
		found := false
		for path := range x.groups {
			found = found || path == pathOf(gv) || gv.Version == "" && strings.HasPrefix(path, "apis/"+gv.Group+"/")
		}
		if !found {
			return fmt.Errorf("%s is not served", gv)
		}
	}
	return nil
}

func (x *Index) notRead() error {
	if x.err != nil {
		return fmt.Errorf("%w: %w", errNotRead, x.err)
	}
	return errNotRead
}

// Missing are the resources that are not served. The error says that the API server did not answer.
func (x *Index) Missing(resources ...schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	read := x.reader()
	var missing []schema.GroupVersionResource
	for _, gvr := range resources {
		a, err := read.answer(question{gvr: gvr})
		if err != nil {
			return nil, err
		}
		if !a.served {
			missing = append(missing, gvr)
		}
	}
	return missing, nil
}

// reader answers questions of one moment. Documents that it reads are forgotten with it, since they are large: answers
// are remembered.
type reader struct {
	*Index
	documents map[string]*spec3.OpenAPI
}

func (x *Index) reader() *reader { return &reader{Index: x, documents: map[string]*spec3.OpenAPI{}} }

func (r *reader) answer(q question) (answer, error) {
	r.mu.Lock()
	group, served := r.groups[pathOf(q.gvr.GroupVersion())]
	err := r.notRead()
	if r.groups != nil {
		err = nil
	}
	r.mu.Unlock()
	if err != nil || !served {
		return answer{}, err
	}
	r.asking.Lock()
	defer r.asking.Unlock()
	if a := r.known[q]; a.url == group.ServerRelativeURL() {
		return a, nil
	}
	document, err := r.document(group)
	if err != nil {
		return answer{}, err
	}
	a := answer{url: group.ServerRelativeURL(), served: hasResource(document, q.gvr.Resource)}
	a.field = q.field != "" && hasField(document, q.gvr.GroupVersion().WithKind(q.kind), q.field)
	r.known[q] = a
	return a, nil
}

func (r *reader) document(group openapi.GroupVersion) (*spec3.OpenAPI, error) {
	if document, read := r.documents[group.ServerRelativeURL()]; read {
		return document, nil
	}
	text, err := group.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	document := &spec3.OpenAPI{}
	if err := json.Unmarshal(text, document); err != nil {
		return nil, err
	}
	r.documents[group.ServerRelativeURL()] = document
	return document, nil
}

// pathOf a group and version in the index.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
