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

// Package schemas has the OpenAPI schemas of the aggregated API.
package schemas

import (
	"reflect"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Definitions are the schemas of the types of the API, and of those of Kubernetes that it uses. The former have names
// and types of fields, and no descriptions.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := openapi.GetOpenAPIDefinitions(ref)
	for _, kind := range v1alpha1.Kinds() {
		s := &schemas{ref: ref}
		schema := s.of(reflect.TypeOf(kind).Elem())
		all[util.GetCanonicalTypeName(kind)] = common.OpenAPIDefinition{Schema: schema, Dependencies: s.uses}
	}
	return all
}

// schemas makes schemas of Go types, whole but for the metadata of objects.
type schemas struct {
	ref  common.ReferenceCallback
	uses []string
}

// asText are types that are written as text.
var asText = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():       "date-time",
	reflect.TypeFor[metav1.MicroTime]():  "date-time",
	reflect.TypeFor[metav1.Duration]():   "",
	reflect.TypeFor[resource.Quantity](): "",
	reflect.TypeFor[[]byte]():            "byte",
}

// referred are types that have a schema of their own.
var referred = map[reflect.Type]util.OpenAPIModelNamer{
	reflect.TypeFor[metav1.ObjectMeta](): metav1.ObjectMeta{},
	reflect.TypeFor[metav1.ListMeta]():   metav1.ListMeta{},
}

func (s *schemas) of(t reflect.Type) spec.Schema {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if format, ok := asText[t]; ok {
		return simple("string", format)
	}
	if namer, ok := referred[t]; ok {
		name := namer.OpenAPIModelName()
		s.uses = append(s.uses, name)
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: s.ref(name), Default: map[string]any{}}}
	}
	switch t.Kind() {
	case reflect.Struct:
		out := simple("object", "")
		out.Properties = map[string]spec.Schema{}
		s.fields(t, out.Properties)
		return out
	case reflect.Slice:
		items := s.of(t.Elem())
		return spec.Schema{SchemaProps: spec.SchemaProps{
			Type: spec.StringOrArray{"array"}, Items: &spec.SchemaOrArray{Schema: &items},
		}}
	case reflect.Map:
		values := s.of(t.Elem())
		return spec.Schema{SchemaProps: spec.SchemaProps{
			Type: spec.StringOrArray{"object"}, AdditionalProperties: &spec.SchemaOrBool{Allows: true, Schema: &values},
		}}
	case reflect.Bool:
		return simple("boolean", "")
	case reflect.Int32:
		return simple("integer", "int32")
	case reflect.Int64:
		return simple("integer", "int64")
	default:
		return simple("string", "")
	}
}

func (s *schemas) fields(t reflect.Type, into map[string]spec.Schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			s.fields(inner, into)
			continue
		}
		into[name] = s.of(f.Type)
	}
}

func simple(kind, format string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{kind}, Format: format}}
}
