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

package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// streamBuffer holds most watch events, maxEvent any that client-go would take.
	streamBuffer = 32 << 10
	maxEvent     = 16 << 20
)

var listOptions = func() runtime.ParameterCodec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(scheme)
}()

// pathOf the objects of all namespaces for "".
func pathOf(gvr schema.GroupVersionResource, namespace string) string {
	if namespace == "" {
		return path.Join("/apis", gvr.Group, gvr.Version, gvr.Resource)
	}
	return path.Join("/apis", gvr.Group, gvr.Version, "namespaces", namespace, gvr.Resource)
}

// watchObjects watches objects and reads them from their bytes.
func watchObjects(ctx context.Context, client rest.Interface, from string, text objectText, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	body, err := client.Get().AbsPath(from).SpecificallyVersionedParams(&o, listOptions, schema.GroupVersion{Version: "v1"}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(newObjectEvents(body, text), apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")), nil
}

// bytesClient writes statuses without reading more of the answer than is asked for.
type bytesClient struct {
	dynamic.Interface
	rest rest.Interface
}

func (o *Options) writeClient() dynamic.Interface {
	if o.REST == nil {
		return o.Dynamic
	}
	return &bytesClient{o.Dynamic, o.REST}
}

func (c *bytesClient) patch(ctx context.Context, w *Write, data []byte) (*unitObject, error) {
	result := c.rest.Patch(types.MergePatchType).
		AbsPath("/apis", w.resource.Group, w.resource.Version, "namespaces", w.key.Namespace, w.resource.Resource, w.key.Name, "status").
		Body(data).Do(ctx)
	if err := result.Error(); err != nil || w.base == nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	return readUnit(raw)
}

// objectText reads the objects of one kind, one after the other.
type objectText interface {
	// reset has it read another text, by the lexer that it returns.
	reset(text []byte) *textLexer
	// object reads the object that the lexer has come to; nil for one that is not in order.
	object() runtime.Object
	// odd reads an object that is not in order.
	odd(raw []byte) (runtime.Object, error)
}

// objectEvents reads watch events. The API server writes each in a line of its own.
type objectEvents struct {
	body   io.ReadCloser
	reader *bufio.Reader
	long   []byte
	text   objectText
}

func newObjectEvents(body io.ReadCloser, text objectText) *objectEvents {
	return &objectEvents{body: body, reader: bufio.NewReaderSize(body, streamBuffer), text: text}
}

// Close ends the stream.
func (s *objectEvents) Close() { _ = s.body.Close() }

// line returns the next one that is not empty. It is valid until the next call.
func (s *objectEvents) line() ([]byte, error) {
	s.long = s.long[:0]
	for {
		part, err := s.reader.ReadSlice('\n')
		switch {
		case len(s.long)+len(part) > maxEvent:
			return nil, fmt.Errorf("a watch event is larger than %d bytes", maxEvent)
		case errors.Is(err, bufio.ErrBufferFull):
			s.long = append(s.long, part...)
			continue
		case err != nil:
			return nil, err
		}
		if len(s.long) > 0 {
			part = append(s.long, part...)
			s.long = part
		}
		if part = bytes.TrimSpace(part); len(part) > 0 {
			return part, nil
		}
		s.long = s.long[:0]
	}
}

// Decode implements watch.Decoder. Objects come as what text makes of them, bookmarks as Unstructured, errors as Status.
func (s *objectEvents) Decode() (watch.EventType, runtime.Object, error) {
	line, err := s.line()
	if err != nil {
		return "", nil, err
	}
	if event, obj := readEvent(s.text, line); obj != nil {
		return event, obj, nil
	}
	var event metav1.WatchEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return "", nil, fmt.Errorf("unable to decode a watch event: %w", err)
	}
	obj, err := readOddEvent(s.text, watch.EventType(event.Type), event.Object.Raw)
	if err != nil {
		return "", nil, fmt.Errorf("unable to decode a watch event: %w", err)
	}
	return watch.EventType(event.Type), obj, nil
}

func readOddEvent(text objectText, event watch.EventType, raw []byte) (runtime.Object, error) {
	switch event {
	case watch.Added, watch.Modified, watch.Deleted:
		return text.odd(raw)
	case watch.Bookmark:
		obj := &unstructured.Unstructured{}
		return obj, obj.UnmarshalJSON(raw)
	case watch.Error:
		status := &metav1.Status{}
		return status, json.Unmarshal(raw, status)
	}
	return nil, fmt.Errorf("event type %q is not known", event)
}

// readEvent returns no object for one that is not in order.
func readEvent(text objectText, line []byte) (event watch.EventType, obj runtime.Object) {
	r := text.reset(line)
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "type":
			switch string(r.text()) {
			case string(watch.Added):
				event = watch.Added
			case string(watch.Modified):
				event = watch.Modified
			case string(watch.Deleted):
				event = watch.Deleted
			default:
				return "", nil
			}
		case "object":
			if event == "" || obj != nil {
				return "", nil
			}
			if obj = text.object(); obj == nil {
				return "", nil
			}
		default:
			r.skip()
		}
	}
	if !r.atEnd() {
		return "", nil
	}
	return event, obj
}

// GetObjectKind implements runtime.Object, for the watch that brings it.
func (u *unitObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. A unit is immutable.
func (u *unitObject) DeepCopyObject() runtime.Object { return u }
