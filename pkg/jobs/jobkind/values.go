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

package jobkind

import (
	"fmt"
	"math"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/podtemplate"
)

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
	return 0, false, fmt.Errorf("%w: %s is not a whole number", podtemplate.ErrMalformed, p)
}

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

func FirstOf(set map[string]string, keys ...string) string {
	for _, key := range keys {
		if value := set[key]; value != "" {
			return value
		}
	}
	return ""
}
