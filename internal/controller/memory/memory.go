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

// Package memory keeps notes of a reconciler about objects, and drops them with the object.
package memory

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory of objects by their names. It is safe for concurrent use. The value of one object belongs to the reconciler of
// that object, which is one goroutine at a time.
type Memory[T any] struct {
	mu sync.Mutex
	of map[types.NamespacedName]*remembered[T]
}

type remembered[T any] struct {
	uid   types.UID
	value T
}

// Of is what is remembered of this very object. Of an object that was created again under its name, nothing is
// remembered.
func (m *Memory[T]) Of(object metav1.Object) *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if m.of == nil {
		m.of = map[types.NamespacedName]*remembered[T]{}
	}
	r := m.of[key]
	if r == nil || r.uid != object.GetUID() {
		r = &remembered[T]{uid: object.GetUID()}
		m.of[key] = r
	}
	return &r.value
}

// Named is what is remembered of an object of this name; false if that is nothing.
func (m *Memory[T]) Named(key types.NamespacedName) (*T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.of[key]; r != nil {
		return &r.value, true
	}
	return nil, false
}

// Forget an object that is gone.
func (m *Memory[T]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}
