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
	"errors"
	"fmt"
	"math"
)

// ErrMalformed marks an object whose fields are not of the type that they should have.
var ErrMalformed = errors.New("malformed job")

// ChildKey is the field of a job under which its child is read.
const ChildKey = "child"

// Lookup returns the value at the path, or nil.
func Lookup(object map[string]any, p Path) any {
	if len(p) == 0 {
		return nil
	}
	var value any = object
	for _, key := range p {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[key]
	}
	return value
}

// Integer reads a whole number; an absent or null field is not found.
func Integer(object map[string]any, p Path) (int64, bool, error) {
	switch n := Lookup(object, p).(type) {
	case nil:
		return 0, false, nil
	case int64:
		return n, true, nil
	case int32:
		return int64(n), true, nil
	case int:
		return int64(n), true, nil
	case float64:
		if n == math.Trunc(n) && math.Abs(n) <= math.MaxInt32 {
			return int64(n), true, nil
		}
	}
	return 0, false, fmt.Errorf("%w: %s is not a whole number", ErrMalformed, p)
}

// StringMap are the texts of an object, nil if the value is none.
func StringMap(value any) map[string]string {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]string, len(fields))
	for key, v := range fields {
		if s, ok := v.(string); ok {
			out[key] = s
		}
	}
	return out
}

// FirstOf the keys that has a value.
func FirstOf(set map[string]string, keys ...string) string {
	for _, key := range keys {
		if value := set[key]; value != "" {
			return value
		}
	}
	return ""
}

// Copy is a copy of a value as JSON has it.
func Copy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = Copy(item)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Copy(item)
		}
		return out
	default:
		return value
	}
}
