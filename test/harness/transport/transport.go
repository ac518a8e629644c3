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

// Package transport connects clients that send requests to a dynamic.Interface of the same process: a fake, or a
// simulation.
package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// kinds of objects that do not name their own.
var kinds = map[schema.GroupVersionResource]string{
	v1alpha1.QueueUnitResource: "QueueUnit",
	v1alpha1.QueueResource:     "Queue",
	schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"): "PriorityClass",
}

// Config of clients of these objects. A request is handled in its own goroutine, except a watch.
func Config(objects dynamic.Interface) *rest.Config {
	return &rest.Config{Host: "http://in-this-process", QPS: -1, Transport: &transport{objects}}
}

type transport struct{ objects dynamic.Interface }

// target of a request, by its path: /apis/GROUP/VERSION[/namespaces/NAMESPACE]/RESOURCE[/NAME[/SUBRESOURCE]].
type target struct {
	dynamic.ResourceInterface
	kind schema.GroupVersionKind
	name string
	sub  []string
}

func (t *transport) target(path string) (*target, error) {
	parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	namespace := ""
	if len(parts) > 4 && parts[2] == "namespaces" {
		namespace, parts = parts[3], append(parts[:2:2], parts[4:]...)
	}
	if len(parts) < 3 {
		return nil, fmt.Errorf("path %q is not served", path)
	}
	resource := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	out := &target{
		ResourceInterface: t.objects.Resource(resource).Namespace(namespace),
		kind:              resource.GroupVersion().WithKind(kinds[resource]),
	}
	if len(parts) > 3 {
		out.name, out.sub = parts[3], parts[4:]
	}
	return out, nil
}

// RoundTrip implements http.RoundTripper. An error that is no answer of an API server is one of the connection.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	to, err := t.target(request.URL.Path)
	if err != nil {
		return nil, err
	}
	query := request.URL.Query()
	limit, _ := strconv.ParseInt(query.Get("limit"), 10, 64)
	options := metav1.ListOptions{
		Limit: limit, Continue: query.Get("continue"), ResourceVersion: query.Get("resourceVersion"),
	}
	var answer any
	switch {
	case request.Method == http.MethodPatch:
		answer, err = to.patch(request)
	case request.Method != http.MethodGet:
		return nil, fmt.Errorf("method %s is not served", request.Method)
	case to.name != "":
		answer, err = to.get(request.Context())
	case query.Get("watch") != "":
		var body io.ReadCloser
		if body, err = to.watch(request.Context(), options, query.Get("sendInitialEvents") != ""); err == nil {
			return response(request, http.StatusOK, body), nil
		}
	default:
		answer, err = to.list(request.Context(), options)
	}
	code := http.StatusOK
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		failure := status.Status()
		failure.Kind, failure.APIVersion = "Status", "v1"
		answer, code = &failure, int(failure.Code)
	} else if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return response(request, code, io.NopCloser(bytes.NewReader(text))), nil
}

func response(request *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: request,
	}
}

// named is the object with its kind. It may belong to others.
func (t *target) named(fields map[string]any, suffix string) map[string]any {
	out := map[string]any{"apiVersion": t.kind.GroupVersion().String(), "kind": t.kind.Kind + suffix}
	for key, value := range fields {
		out[key] = value
	}
	return out
}

func (t *target) get(ctx context.Context) (any, error) {
	found, err := t.Get(ctx, t.name, metav1.GetOptions{}, t.sub...)
	if err != nil {
		return nil, err
	}
	return t.named(found.Object, ""), nil
}

func (t *target) patch(request *http.Request) (any, error) {
	data, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	patchType := types.PatchType(request.Header.Get("Content-Type"))
	patched, err := t.Patch(request.Context(), t.name, patchType, data, metav1.PatchOptions{}, t.sub...)
	if err != nil {
		return nil, err
	}
	return t.named(patched.Object, ""), nil
}

func (t *target) list(ctx context.Context, o metav1.ListOptions) (any, error) {
	found, err := t.List(ctx, o)
	if err != nil {
		return nil, err
	}
	items := make([]any, 0, len(found.Items))
	for i := range found.Items {
		items = append(items, t.named(found.Items[i].Object, ""))
	}
	list := t.named(found.Object, "List")
	list["items"] = items
	return list, nil
}

// watch answers with the events; with all objects first, and the bookmark that ends them, if those are asked for.
func (t *target) watch(ctx context.Context, o metav1.ListOptions, initial bool) (io.ReadCloser, error) {
	events, err := t.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	first := &unstructured.UnstructuredList{}
	if initial {
		if first, err = t.List(ctx, metav1.ListOptions{}); err != nil {
			events.Stop()
			return nil, err
		}
	}
	out, in := io.Pipe()
	send := func(event watch.EventType, fields map[string]any) bool {
		text, err := json.Marshal(map[string]any{"type": event, "object": t.named(fields, "")})
		if err == nil {
			_, err = in.Write(append(text, '\n'))
		}
		return err == nil
	}
	go func() {
		defer func() { _ = in.Close() }()
		defer events.Stop()
		for i := range first.Items {
			if !send(watch.Added, first.Items[i].Object) {
				return
			}
		}
		if initial && !send(watch.Bookmark, map[string]any{"metadata": map[string]any{
			"resourceVersion": first.GetResourceVersion(),
			"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		}}) {
			return
		}
		for event := range events.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || !send(event.Type, object.Object) {
				return
			}
		}
	}()
	return &body{out, events}, nil
}

// body of a watch, which ends when it is closed.
type body struct {
	*io.PipeReader
	events watch.Interface
}

// Close ends the watch.
func (b *body) Close() error {
	b.events.Stop()
	return b.PipeReader.Close()
}
