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

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// Discovery is what is asked about the kinds that an API server serves.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

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

// Served asks the API server about kinds.
type Served struct {
	Discovery Discovery
	// Schemas of the API server.
	Schemas openapi3.Root
}

// Availability of a kind, and why it is not available. The error says that the API server did not answer.
func (s *Served) Availability(kind *jobs.Kind) (Availability, string, error) {
	needed := []jobs.Object{{GVK: kind.GVK, GVR: kind.GVR}}
	if kind.Child != nil {
		needed = append(needed, *kind.Child)
	}
	for _, o := range needed {
		served, err := s.serves(o.GVR)
		if err != nil {
			return "", "", err
		}
		if !served {
			return NotInstalled, fmt.Sprintf("%s is not served", o.GVR.GroupResource()), nil
		}
	}
	field := kind.SuspendField()
	if len(field) == 0 {
		return Available, "", nil
	}
	found, err := s.hasField(kind.GVK, field)
	if err != nil {
		return "", "", err
	}
	if !found {
		return Unsupported, fmt.Sprintf("%s has no field %s: its operator is older than suspension", kind, field), nil
	}
	return Available, "", nil
}

func (s *Served) serves(gvr schema.GroupVersionResource) (bool, error) {
	list, err := s.Discovery.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == gvr.Resource {
			return true, nil
		}
	}
	return false, nil
}

// kindExtension of a schema names the kinds that it is of.
const kindExtension = "x-kubernetes-group-version-kind"

func (s *Served) hasField(gvk schema.GroupVersionKind, field jobs.Path) (bool, error) {
	document, err := s.Schemas.GVSpec(gvk.GroupVersion())
	if err != nil {
		return false, err
	}
	schemas := map[string]*spec.Schema{}
	if document.Components != nil {
		schemas = document.Components.Schemas
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if isOf(schemas[name], gvk) {
			return leadsTo(schemas, schemas[name], field), nil
		}
	}
	return false, nil
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
func leadsTo(schemas map[string]*spec.Schema, s *spec.Schema, field jobs.Path) bool {
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
