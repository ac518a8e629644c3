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

// Package intern keeps equal values of very many objects only once.
package intern

import (
	"hash/maphash"
	"sync/atomic"
)

// Pool remembers a fixed number of values. It is safe for concurrent use. A value that it forgot is merely kept twice.
type Pool[T any] struct {
	seed  maphash.Seed
	hash  func(seed maphash.Seed, v T) uint64
	same  func(a, b T) bool
	slots [4096]atomic.Pointer[T]
}

// NewPool takes what tells values apart: the same values must have the same hash.
func NewPool[T any](hash func(maphash.Seed, T) uint64, same func(a, b T) bool) *Pool[T] {
	return &Pool[T]{seed: maphash.MakeSeed(), hash: hash, same: same}
}

// Of returns the same value, that of another object if it is known. Neither may be changed from now on.
func (p *Pool[T]) Of(v T) T {
	slot := &p.slots[p.hash(p.seed, v)%uint64(len(p.slots))]
	if have := slot.Load(); have != nil && p.same(*have, v) {
		return *have
	}
	fresh := new(T)
	*fresh = v
	slot.Store(fresh)
	return v
}
