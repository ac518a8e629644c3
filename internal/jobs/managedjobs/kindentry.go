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

package managedjobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// KindEntry is a kind of jobs in a configuration. It is the name of a built-in kind, "<Kind>.<version>.<group>", or a
// description. A description replaces the built-in kind of the same name.
type KindEntry struct {
	Name       string
	Descriptor *jobkind.Descriptor
}

// KindsNamed are entries of these names.
func KindsNamed(names ...string) []KindEntry {
	entries := make([]KindEntry, 0, len(names))
	for _, name := range names {
		entries = append(entries, KindEntry{Name: name})
	}
	return entries
}

// String is the name of the kind.
func (e KindEntry) String() string {
	if e.Descriptor == nil {
		return e.Name
	}
	version, group := e.Descriptor.APIVersion, ""
	if before, after, ok := strings.Cut(e.Descriptor.APIVersion, "/"); ok {
		group, version = before, after
	}
	return e.Descriptor.Kind + "." + version + "." + group
}

// UnmarshalJSON reads a name or a description; an unknown field is an error.
func (e *KindEntry) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &e.Name) == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	e.Descriptor = &jobkind.Descriptor{}
	return decoder.Decode(e.Descriptor)
}

// MarshalJSON is what UnmarshalJSON reads.
func (e KindEntry) MarshalJSON() ([]byte, error) {
	if e.Descriptor != nil {
		return json.Marshal(e.Descriptor)
	}
	return json.Marshal(e.Name)
}

// kind is the one that the entry names or describes.
func (e KindEntry) kind() (*jobkind.Kind, error) {
	if e.Descriptor != nil {
		return e.Descriptor.Compile()
	}
	kind, ok := jobkind.Find(e.Name)
	if !ok {
		return nil, fmt.Errorf("%q is not known; known kinds: %s", e.Name, strings.Join(builtinNames(), ", "))
	}
	return kind, nil
}

// compiled are the kinds of the configuration, in its order.
func (m Jobs) compiled() ([]jobkind.Kind, error) {
	kinds := make([]jobkind.Kind, 0, len(m.Kinds))
	for i, entry := range m.Kinds {
		kind, err := entry.kind()
		if err != nil {
			return nil, fmt.Errorf("%s.kinds[%d]: %w", Key, i, err)
		}
		if slices.ContainsFunc(kinds, func(k jobkind.Kind) bool { return k.GVK == kind.GVK }) {
			return nil, fmt.Errorf("%s.kinds[%d]: %s is there twice", Key, i, kind)
		}
		kinds = append(kinds, *kind)
	}
	return kinds, nil
}

func builtinNames() []string {
	kinds := jobkind.Builtin()
	names := make([]string, 0, len(kinds))
	for i := range kinds {
		names = append(names, kinds[i].String())
	}
	slices.Sort(names)
	return names
}
