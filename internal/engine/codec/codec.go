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

// Package codec decodes objects like client-go, but parses each only once.
package codec

import (
	"bytes"
	stdjson "encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// Codec is the one of client-go for JSON. That reads each object twice: once for its kind, and once for the rest.
type Codec struct {
	runtime.NegotiatedSerializer
	json *json.Serializer
}

// New returns the codec of the types of a scheme. It converts nothing.
func New(scheme *runtime.Scheme) *Codec {
	return &Codec{
		serializer.NewCodecFactory(scheme).WithoutConversion(),
		json.NewSerializerWithOptions(leadingKind{}, scheme, scheme, json.SerializerOptions{}),
	}
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer: JSON alone.
func (c *Codec) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
		Serializer:       c.json,
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: c.json, Framer: json.Framer},
	}}
}

// leadingKind finds the kind of an object in its first two fields, where API servers write it. Any other text is read
// whole. An event of a watch has no kind, and begins with its type.
type leadingKind struct{ json.SimpleMetaFactory }

// Interpret implements json.MetaFactory.
func (f leadingKind) Interpret(text []byte) (*schema.GroupVersionKind, error) {
	tokens := stdjson.NewDecoder(bytes.NewReader(text))
	if begin, err := tokens.Token(); err != nil || begin != stdjson.Delim('{') {
		return f.SimpleMetaFactory.Interpret(text)
	}
	var version, kind string
	for version == "" || kind == "" {
		field, _ := tokens.Token()
		value, _ := tokens.Token()
		of, ok := value.(string)
		switch {
		case field == "type" && ok:
			return &schema.GroupVersionKind{}, nil
		case field == "apiVersion" && ok:
			version = of
		case field == "kind" && ok:
			kind = of
		default:
			return f.SimpleMetaFactory.Interpret(text)
		}
	}
	of, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	gvk := of.WithKind(kind)
	return &gvk, nil
}
