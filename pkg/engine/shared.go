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

package engine

import (
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// shared is a pool of values that very many objects have in common. It remembers a fixed number of them and is safe for concurrent use;
// one that is forgotten is merely kept twice.
type shared[T any] struct {
	seed  maphash.Seed
	hash  func(h *maphash.Hash, v T)
	same  func(a, b T) bool
	slots [4096]atomic.Pointer[T]
}

func newShared[T any](hash func(*maphash.Hash, T), same func(a, b T) bool) *shared[T] {
	return &shared[T]{seed: maphash.MakeSeed(), hash: hash, same: same}
}

// of returns an equal value, that of another object if there is one. It must not be changed.
func (s *shared[T]) of(v T) T {
	var h maphash.Hash
	h.SetSeed(s.seed)
	s.hash(&h, v)
	slot := &s.slots[h.Sum64()%uint64(len(s.slots))]
	if have := slot.Load(); have != nil && s.same(*have, v) {
		return *have
	}
	slot.Store(&v)
	return v
}

var (
	sharedLists = newShared(hashList, resources.List.Same)
	sharedSets  = newShared(hashSets, sameSets)
)

func hashList(h *maphash.Hash, list resources.List) {
	for _, it := range list.Items() {
		_, _ = h.WriteString(it.Name)
		maphash.WriteComparable(h, it.Amount)
	}
}

func hashSets(h *maphash.Hash, sets []podSetTotal) {
	for i := range sets {
		_, _ = h.WriteString(sets[i].name)
		maphash.WriteComparable(h, sets[i].count)
		hashList(h, sets[i].total)
	}
}

func sameSets(a, b []podSetTotal) bool {
	return slices.EqualFunc(a, b, func(x, y podSetTotal) bool {
		return x.name == y.name && x.count == y.count && x.total.Same(y.total)
	})
}
