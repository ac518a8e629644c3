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

package podset

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An object may say in a text where a pod template is. Its author writes the text, so its length is bounded, and with
// it the number of steps.
const maxPointer = 500

// pointerStep is a field, and indexes of the list that it holds.
var pointerStep = regexp.MustCompile(`^([^.\[\]]+)((?:\[[0-9]{1,4}\])*)$`)

// TemplateFrom is the path of the object from which TemplateField leads to the template; nil if nothing does.
func TemplateFrom(s *Set) Path {
	if len(s.TemplateField) == 0 {
		return nil
	}
	return s.Path[:s.templateFrom]
}

// follow finds the template at the path in a field of the pod set. Its object is the innermost element of a list on the
// way, and its path continues from there. The error is ErrMalformed.
func (s *Found) follow() error {
	text, _ := Lookup(s.Fields, s.TemplateField).(string)
	malformed := fmt.Errorf("%w: %s: %.100q leads to no pod template", ErrMalformed,
		append(s.At.Child(), s.TemplateField...), text)
	if text == "" || len(text) > maxPointer {
		return malformed
	}
	at, object := s.At[:s.templateFrom], placeAt(s.Job, s.At[:s.templateFrom])
	var value any = object
	path := Path{}
	for step := range strings.SplitSeq(strings.TrimPrefix(text, "."), ".") {
		parts := pointerStep.FindStringSubmatch(step)
		if parts == nil {
			return malformed
		}
		fields, _ := value.(map[string]any)
		value, path = fields[parts[1]], append(path, parts[1])
		for index := range strings.FieldsFuncSeq(parts[2], func(r rune) bool { return r == '[' || r == ']' }) {
			list, _ := value.([]any)
			i, _ := strconv.Atoi(index) // digits, as the expression says
			if i >= len(list) {
				return malformed
			}
			at = append(at.Child(path...), index)
			object, _ = list[i].(map[string]any)
			value, path = object, Path{}
		}
	}
	if _, there := value.(map[string]any); !there || len(path) == 0 {
		return malformed
	}
	s.Place, s.Template = Place{at, object}, path
	return nil
}

// placeAt is the object at a path that Walk has found.
func placeAt(job map[string]any, at Path) map[string]any {
	var value any = job
	for _, key := range at {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			if i, err := strconv.Atoi(key); err == nil && i < len(v) {
				value = v[i]
			}
		}
	}
	object, _ := value.(map[string]any)
	return object
}
