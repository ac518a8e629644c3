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

package submit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Object is a Kubernetes object as JSON has it, for instance the field Object of unstructured.Unstructured. Whole
// numbers are int64, int or float64.
type Object = map[string]any

// maxObjectBytes is the bound of the API server on one object.
const maxObjectBytes = 3 << 20

// ObjectOf is a typed object, such as a *rayv1.RayJob, as JSON. Its APIVersion and Kind have to be set.
func ObjectOf(typed any) (Object, error) {
	text, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	if len(text) > maxObjectBytes {
		return nil, fmt.Errorf("an object of %d bytes, want at most %d", len(text), maxObjectBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object Object
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one object")
	}
	return whole(object).(Object), nil
}

// whole has numbers as int64, or float64 where they are no whole numbers.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = whole(item)
		}
	case []any:
		for i, item := range v {
			v[i] = whole(item)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil && !strings.ContainsAny(v.String(), ".eE") {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return value
}

// Into writes an object into a typed one, which must be empty: encoding/json keeps what the object does not name.
func Into(object Object, typed any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, typed)
}
