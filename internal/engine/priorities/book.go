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

// Package priorities has the values of priority classes, and the greatest priority that each namespace allows.
package priorities

import "github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"

// Book is what priorities follow from. It keeps nothing of namespaces that say nothing.
type Book struct {
	classes map[string]*objects.Class
	bounds  map[string]int32
}

// NewBook returns one without classes.
func NewBook() *Book { return &Book{map[string]*objects.Class{}, map[string]int32{}} }

// SetClass sets a class, nil for none. changed says whether a priority can follow from the change, and byDefault
// whether one can that names no class.
func (b *Book) SetClass(name string, class *objects.Class) (changed, byDefault bool) {
	old := b.classes[name]
	if class == nil {
		delete(b.classes, name)
	} else {
		b.classes[name] = class
	}
	if old != nil && class != nil && old.Value == class.Value && old.GlobalDefault == class.GlobalDefault {
		return false, false
	}
	return true, (old != nil && old.GlobalDefault) || (class != nil && class.GlobalDefault)
}

// Of a class; the cluster's default for "" and for a class that does not exist.
func (b *Book) Of(name string) int32 {
	if class := b.classes[name]; class != nil {
		return class.Value
	}
	var best *objects.Class
	for _, class := range b.classes {
		// Kubernetes takes the lowest of several defaults.
		if class.GlobalDefault && (best == nil || class.Value < best.Value) {
			best = class
		}
	}
	if best == nil {
		return 0
	}
	return best.Value
}

// SetBound takes what a namespace allows, nil if it does not say, and says whether that changes anything.
func (b *Book) SetBound(namespace string, most *int32) (changed bool) {
	before := b.bounds[namespace]
	delete(b.bounds, namespace)
	if most != nil && *most != 0 {
		b.bounds[namespace] = *most
	}
	return b.bounds[namespace] != before
}

// BoundOf a namespace: units there take nothing from others by a greater priority. It is 0 where the namespace does not
// say.
func (b *Book) BoundOf(namespace string) int32 { return b.bounds[namespace] }
