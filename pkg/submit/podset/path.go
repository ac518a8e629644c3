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
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Path is the way to a field of an object, one key for each level. The key "*" stands for every key of a map, and for
// every element of a list.
type Path []string

// Star stands for every key of a map and every element of a list.
const Star = "*"

// PathOf reads ".spec.suspend"; an empty text is no path.
func PathOf(dotted string) Path {
	if dotted == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(dotted, "."), ".")
}

// String is the path as a user writes it: ".spec.suspend".
func (p Path) String() string { return "." + strings.Join(p, ".") }

// Child is the path of a field below; the receiver is not changed.
func (p Path) Child(keys ...string) Path {
	return append(append(make(Path, 0, len(p)+len(keys)), p...), keys...)
}

// Fixed is the part of the path before the first star.
func (p Path) Fixed() Path {
	if i := slices.Index(p, Star); i >= 0 {
		return p[:i]
	}
	return p
}

// Place is an object inside of another one, and the way to it.
type Place struct {
	At     Path
	Object map[string]any
}

// Key is the last of the way: that of a map, or the index in a list.
func (p *Place) Key() string {
	if len(p.At) == 0 {
		return ""
	}
	return p.At[len(p.At)-1]
}

// maxPlaces bounds what a path with stars finds: the author of an object may write any number of places.
const maxPlaces = 1000

// Walk finds the objects that the path leads to. Keys of maps come in their order. Other values are skipped.
func Walk(object map[string]any, p Path) []Place {
	found := []Place{{Object: object}}
	values := []any{object}
	for i, key := range p {
		var next []Place
		var nextValues []any
		add := func(at Path, value any) {
			if len(next) >= maxPlaces {
				return
			}
			fields, _ := value.(map[string]any)
			next, nextValues = append(next, Place{at, fields}), append(nextValues, value)
		}
		for j, value := range values {
			at := found[j].At
			switch v := value.(type) {
			case map[string]any:
				if key != Star {
					if item, ok := v[key]; ok {
						add(at.Child(key), item)
					}
					continue
				}
				for _, k := range slices.Sorted(maps.Keys(v)) {
					add(at.Child(k), v[k])
				}
			case []any:
				if key != Star {
					continue
				}
				for n, item := range v {
					add(at.Child(strconv.Itoa(n)), item)
				}
			}
		}
		if found, values = next, nextValues; len(found) == 0 || i == len(p)-1 {
			break
		}
	}
	return slices.DeleteFunc(found, func(p Place) bool { return p.Object == nil })
}
