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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	unitsPath = "/apis/" + v1alpha1.GroupName + "/v1alpha1/queueunits"
	// streamBuffer holds most watch events, maxEvent any that client-go would take.
	streamBuffer = 32 << 10
	maxEvent     = 16 << 20
)

var listOptions = func() runtime.ParameterCodec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(scheme)
}()

// watchUnits watches all units and reads them as unitText does.
func watchUnits(ctx context.Context, client rest.Interface, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	body, err := client.Get().AbsPath(unitsPath).SpecificallyVersionedParams(&o, listOptions, schema.GroupVersion{Version: "v1"}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(newUnitEvents(body), apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")), nil
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

// unitEvents reads watch events of units. The API server writes each in a line of its own.
type unitEvents struct {
	body   io.ReadCloser
	reader *bufio.Reader
	long   []byte
}

func newUnitEvents(body io.ReadCloser) *unitEvents {
	return &unitEvents{body: body, reader: bufio.NewReaderSize(body, streamBuffer)}
}

// Close ends the stream.
func (s *unitEvents) Close() { _ = s.body.Close() }

// line returns the next one that is not empty. It is valid until the next call.
func (s *unitEvents) line() ([]byte, error) {
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

// Decode implements watch.Decoder. Units come as unitObject, bookmarks as Unstructured, errors as Status.
func (s *unitEvents) Decode() (watch.EventType, runtime.Object, error) {
	line, err := s.line()
	if err != nil {
		return "", nil, err
	}
	if event, u := readUnitEvent(line); u != nil {
		return event, u, nil
	}
	var event metav1.WatchEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return "", nil, fmt.Errorf("unable to decode a watch event: %w", err)
	}
	obj, err := readOddEvent(watch.EventType(event.Type), event.Object.Raw)
	if err != nil {
		return "", nil, fmt.Errorf("unable to decode a watch event: %w", err)
	}
	return watch.EventType(event.Type), obj, nil
}

func readOddEvent(event watch.EventType, raw []byte) (runtime.Object, error) {
	switch event {
	case watch.Added, watch.Modified, watch.Deleted:
		return readUnit(raw)
	case watch.Bookmark:
		obj := &unstructured.Unstructured{}
		return obj, obj.UnmarshalJSON(raw)
	case watch.Error:
		status := &metav1.Status{}
		return status, json.Unmarshal(raw, status)
	}
	return nil, fmt.Errorf("event type %q is not known", event)
}

// readUnitEvent returns no unit for what unitText does not know.
func readUnitEvent(line []byte) (event watch.EventType, u *unitObject) {
	r := newUnitText(line)
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
			if event == "" || u != nil {
				return "", nil
			}
			if u = r.unit(); u == nil {
				return "", nil
			}
		default:
			r.skip()
		}
	}
	if !r.atEnd() {
		return "", nil
	}
	return event, u
}

// GetObjectKind implements runtime.Object, for the watch that brings it.
func (u *unitObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. A unit is immutable.
func (u *unitObject) DeepCopyObject() runtime.Object { return u }
