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
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// Availability says whether jobs of a kind can be managed.
type Availability string

const (
	// Available: the kind is served, and can be suspended as its descriptor says.
	Available Availability = "Available"
	// NotInstalled: the kind, or one of what stands between its jobs and their pods, is not served. It is waited for.
	NotInstalled Availability = "NotInstalled"
	// Unsupported: the kind is served without the field that suspends. An API server drops what is written into it, so
	// jobs would run without quota.
	Unsupported Availability = "Unsupported"
)

// Kind says whether a kind can be managed.
type Kind struct {
	Availability Availability
	// Reason why it is not available.
	Reason string
	// Err says that the API server did not answer; the rest is empty then.
	Err error
}

// Kinds says which of these kinds can be managed, in their order.
func (x *Index) Kinds(kinds []jobkind.Kind) []Kind {
	read := x.reader()
	out := make([]Kind, len(kinds))
	for i := range kinds {
		out[i] = read.kind(&kinds[i])
	}
	return out
}

func (r *reader) kind(kind *jobkind.Kind) Kind {
	q := question{gvr: kind.GVR}
	if field := kind.SuspendField; len(field) > 0 {
		q.kind, q.field = kind.GVK.Kind, field.String()
	}
	own, err := r.answer(q)
	switch {
	case err != nil:
		return Kind{Err: err}
	case !own.served:
		return notInstalled(kind.GVR)
	case kind.Child != nil:
		child, err := r.answer(question{gvr: kind.Child.GVR})
		if err != nil {
			return Kind{Err: err}
		}
		if !child.served {
			return notInstalled(kind.Child.GVR)
		}
	}
	if q.field != "" && !own.field {
		return Kind{Unsupported, fmt.Sprintf("%s has no field %s: its operator is older than suspension", kind, q.field), nil}
	}
	return Kind{Availability: Available}
}

func notInstalled(gvr schema.GroupVersionResource) Kind {
	return Kind{NotInstalled, fmt.Sprintf("%s is not served", gvr.GroupResource()), nil}
}

// hasResource says whether the document has a path of the resource's collection.
func hasResource(document *spec3.OpenAPI, resource string) bool {
	if document.Paths == nil {
		return false
	}
	for path := range document.Paths.Paths {
		if strings.HasSuffix(path, "/"+resource) {
			return true
		}
	}
	return false
}

// kindExtension of a schema names the kinds that it is of.
const kindExtension = "x-kubernetes-group-version-kind"

// hasField says whether objects of the kind may have the field, as ".spec.suspend".
func hasField(document *spec3.OpenAPI, gvk schema.GroupVersionKind, field string) bool {
	schemas := map[string]*spec.Schema{}
	if document.Components != nil {
		schemas = document.Components.Schemas
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if isOf(schemas[name], gvk) {
			return leadsTo(schemas, schemas[name], strings.Split(field[1:], "."))
		}
	}
	return false
}

func isOf(s *spec.Schema, gvk schema.GroupVersionKind) bool {
	kinds, _ := s.Extensions[kindExtension].([]any)
	for _, k := range kinds {
		fields, _ := k.(map[string]any)
		if fields["group"] == gvk.Group && fields["version"] == gvk.Version && fields["kind"] == gvk.Kind {
			return true
		}
	}
	return false
}

// leadsTo says whether an object of the schema may have the field.
func leadsTo(schemas map[string]*spec.Schema, s *spec.Schema, field []string) bool {
	for _, key := range field {
		if s = resolved(schemas, s); s == nil {
			return false
		}
		if keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); keeps {
			return true
		}
		next, ok := s.Properties[key]
		if !ok {
			return false
		}
		s = &next
	}
	return true
}

// resolved follows references, which built-in kinds have.
func resolved(schemas map[string]*spec.Schema, s *spec.Schema) *spec.Schema {
	const prefix = "#/components/schemas/"
	if len(s.AllOf) == 1 && len(s.Properties) == 0 {
		s = &s.AllOf[0]
	}
	if name, ok := strings.CutPrefix(s.Ref.String(), prefix); ok {
		return schemas[name]
	}
	return s
}
