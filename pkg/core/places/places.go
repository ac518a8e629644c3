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

// Package places bounds the number of units of a queue that hold quota, in all and of each namespace. A head that
// claims capacity claims a place as well. Otherwise smaller units behind it would take every place that becomes free. A
// head of a full queue claims no capacity, so it would never be admitted.
package places

// Bounds are how many units of a queue may hold quota, in all and of each namespace. Below zero is no bound.
type Bounds struct {
	Queue     string
	All, Each int32
}

// None says that nothing is bounded.
func (b *Bounds) None() bool { return b.All < 0 && b.Each < 0 }

// Full says that the queue has no place for another unit, together with the claims of those ahead. held counts those
// that hold quota.
func (b *Bounds) Full(held func(queue string) int, ahead Claims) bool {
	return b.All >= 0 && held(b.Queue)+ahead[place{queue: b.Queue}] >= int(b.All)
}

// FullFor says the same of a namespace.
func (b *Bounds) FullFor(namespace string, held func(queue, namespace string) int, ahead Claims) bool {
	return b.Each >= 0 && held(b.Queue, namespace)+ahead[place{b.Queue, namespace}] >= int(b.Each)
}

// Claims are the places that heads have claimed in a pass, by queue and namespace.
type Claims map[place]int

type place struct{ queue, namespace string }

// Add claims so many places of a queue, for a namespace. Where nothing is bounded nobody asks for claims.
func (c Claims) Add(of *Bounds, namespace string, n int) {
	if of.None() {
		return
	}
	c[place{queue: of.Queue}] += n
	c[place{of.Queue, namespace}] += n
}
