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

package resources

import (
	"math/bits"
	"slices"
	"strings"
)

// Sum accumulates vectors exactly, in 128 bits: adding and subtracting a vector restores the same sum, however large
// the amounts are. Reading saturates. The zero value is empty. A name whose amount becomes zero is dropped, so a sum is
// as large as its present contents.
type Sum struct{ items []sumItem }

// sumItem is an amount in two's complement that is not zero.
type sumItem struct {
	name string
	hi   int64
	lo   uint64
}

// Add adds a vector.
func (s *Sum) Add(l List) {
	if s.items == nil && len(l.items) > 0 {
		s.items = make([]sumItem, 0, len(l.items))
	}
	for i := range l.items {
		s.add(l.items[i].Name, signExtension(l.items[i].Amount), uint64(l.items[i].Amount))
	}
}

// Sub takes a vector away. Amounts may become negative.
func (s *Sum) Sub(l List) {
	for i := range l.items {
		hi, lo := negative(signExtension(l.items[i].Amount), uint64(l.items[i].Amount))
		s.add(l.items[i].Name, hi, lo)
	}
}

// AddSum adds another sum exactly.
func (s *Sum) AddSum(o *Sum) {
	for i := range o.items {
		s.add(o.items[i].name, o.items[i].hi, o.items[i].lo)
	}
}

// SubSum takes another sum away exactly.
func (s *Sum) SubSum(o *Sum) {
	for i := range o.items {
		hi, lo := negative(o.items[i].hi, o.items[i].lo)
		s.add(o.items[i].name, hi, lo)
	}
}

// add adds one amount of 128 bits.
func (s *Sum) add(name string, hi int64, lo uint64) {
	if hi == 0 && lo == 0 {
		return
	}
	i, found := s.search(name)
	if !found {
		s.items = slices.Insert(s.items, i, sumItem{name, hi, lo})
		return
	}
	it := &s.items[i]
	sum, carry := bits.Add64(it.lo, lo, 0)
	it.lo, it.hi = sum, it.hi+hi+int64(carry)
	if it.hi == 0 && it.lo == 0 {
		s.items = slices.Delete(s.items, i, i+1)
	}
}

func negative(hi int64, lo uint64) (int64, uint64) {
	lo, borrow := bits.Sub64(0, lo, 0)
	return -hi - int64(borrow), lo
}

// signExtension is the upper half of a 64-bit number in 128 bits.
func signExtension(a int64) int64 {
	if a < 0 {
		return -1
	}
	return 0
}

// search finds the place of a name. There may be many: a user who makes jobs may name any resource.
func (s *Sum) search(name string) (int, bool) {
	return slices.BinarySearchFunc(s.items, name,
		func(it sumItem, name string) int { return strings.Compare(it.name, name) })
}

func (it sumItem) value() int64 {
	v := int64(it.lo)
	if it.hi != signExtension(v) { // too much for 64 bits
		return end(it.hi)
	}
	return v
}

// Get reads one amount, saturated; zero when the name never occurred.
func (s *Sum) Get(name string) int64 {
	if i, found := s.search(name); found {
		return s.items[i].value()
	}
	return 0
}

// Len is the number of resources in it; At reads one of them, in the order of names, saturated.
func (s *Sum) Len() int { return len(s.items) }

// At reads the amount at index i, from 0 to Len.
func (s *Sum) At(i int) (name string, amount int64) { return s.items[i].name, s.items[i].value() }

// IsZero says whether all amounts are zero.
func (s *Sum) IsZero() bool { return len(s.items) == 0 }

// List reads the sum, saturated.
func (s *Sum) List() List {
	if len(s.items) == 0 {
		return List{}
	}
	items := make([]Item, 0, len(s.items))
	for i := range s.items {
		items = append(items, Item{Name: s.items[i].name, Amount: s.items[i].value()})
	}
	return List{items: items}
}
