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

// Package document reads YAML of other systems. Unreadable text and unknown fields become findings.
package document

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// Bounds of an input.
const (
	// MaxBytes of all files together.
	MaxBytes = 4 << 20
	// MaxObjects is the greatest number of objects.
	MaxObjects = 5000
	// maxDepth of lists and mappings within each other.
	maxDepth = 64
)

// Document is one object, or one file of a system that has no objects.
type Document struct {
	Content map[string]any
}

// Set is all that was read. The zero value is empty.
type Set struct {
	Documents []Document
	full      bool
}

// Decode splits a stream of YAML or JSON into documents. Lists of objects count as their items.
func Decode(raw []byte, out *finding.List) []Document {
	const object = "input"
	if len(raw) > MaxBytes {
		out.Add(finding.Error, finding.TooLarge, object, "",
			"The input has %d bytes; at most %d are read, so nothing is migrated.", len(raw), MaxBytes)
		return nil
	}
	var set Set
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for n := 1; ; n++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return set.Documents
		}
		if err != nil {
			out.Add(finding.Error, finding.Unreadable, object, "", "Document %d cannot be read: %v", n, err)
			return set.Documents
		}
		content, err := decodeOne(text)
		if err != nil {
			out.Add(finding.Error, finding.Unreadable, object, "", "Document %d is not an object in YAML: %v", n, err)
			continue
		}
		if !set.Add(content, out) {
			return set.Documents
		}
	}
}

func decodeOne(text []byte) (content map[string]any, err error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	return content, json.Unmarshal(raw, &content)
}

// Add an object, or the items of a list. It adds nothing that is nested too deep, and says whether there is room for
// more.
func (s *Set) Add(content map[string]any, out *finding.List) bool {
	d := Document{Content: content}
	items, ok := content["items"].([]any)
	if !ok || !strings.HasSuffix(d.Kind(), "List") {
		s.add(d, out)
		return !s.full
	}
	for _, item := range items {
		// A list within a list is no object.
		if fields, ok := item.(map[string]any); ok && fields["items"] == nil {
			s.add(Document{Content: fields}, out)
		}
	}
	return !s.full
}

func (s *Set) add(d Document, out *finding.List) {
	switch {
	case s.full || len(d.Content) == 0:
	case depth(d.Content, maxDepth) > maxDepth:
		out.Add(finding.Error, finding.TooLarge, d.Name(), "", "The object is nested more than %d levels deep.", maxDepth)
	case len(s.Documents) == MaxObjects:
		s.full = true
		out.Add(finding.Error, finding.TooLarge, "input", "",
			"%s and what follows it is left out: at most %d objects are read.", d.Name(), MaxObjects)
	default:
		s.Documents = append(s.Documents, d)
	}
}

// depth of a value, or a greater number than most.
func depth(value any, most int) int {
	deepest := 0
	below := func(v any) {
		if most > 0 {
			deepest = max(deepest, depth(v, most-1))
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			below(item)
		}
	case []any:
		for _, item := range v {
			below(item)
		}
	default:
		return 0
	}
	return deepest + 1
}

func (d Document) text(path ...string) string {
	var value any = d.Content
	for _, key := range path {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	text, _ := value.(string)
	return text
}

// Kind of the object; empty if it names none.
func (d Document) Kind() string { return d.text("kind") }

// Group of its API.
func (d Document) Group() string {
	group, _, versioned := strings.Cut(d.text("apiVersion"), "/")
	if !versioned {
		return ""
	}
	return group
}

// ObjectName and Namespace of the object.
func (d Document) ObjectName() string { return d.text("metadata", "name") }

// Namespace of the object.
func (d Document) Namespace() string { return d.text("metadata", "namespace") }

// Name of the object in findings.
func (d Document) Name() string {
	if d.Kind() == "" {
		return "input"
	}
	name := d.Kind() + "/"
	if d.Namespace() != "" {
		name += d.Namespace() + "/"
	}
	return name + d.ObjectName()
}

// Into reads the fields of a document into a struct. Fields that the struct does not have become findings. It says
// whether the document could be read.
func (d Document) Into(target any, out *finding.List) bool {
	content := make(map[string]any, len(d.Content))
	for key, value := range d.Content {
		if key != "status" {
			content[key] = value
		}
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, target, true)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	switch {
	case err == nil:
		return true
	case !isStrict:
		out.Add(finding.Error, finding.Unreadable, d.Name(), "", "The object is left out, because it cannot be read: %v", err)
		return false
	}
	for _, field := range unknown(strict.Errors()) {
		out.Add(finding.Warning, finding.UnknownField, d.Name(), field, "The field is not known, and nothing is made of it.")
	}
	return true
}

// unknown returns the paths of unknown fields, sorted.
func unknown(errs []error) []string {
	fields := make([]string, 0, len(errs))
	for _, err := range errs {
		text := strings.TrimPrefix(err.Error(), "unknown field ")
		fields = append(fields, strings.Trim(text, `"`))
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// State is status.state, which Volcano writes.
func (d Document) State() string { return d.text("status", "state") }
