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
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Item is the amount of one resource.
type Item struct {
	Name   string
	Amount int64
}

// Jobs is the name under which a limit says how many units may be admitted at a level and below. It is no resource: no
// pod has it, and every unit counts as one, whatever its request says.
const Jobs = "koord-queue/max-jobs"

// List is an immutable resource vector, sorted by name, each name once.
// The zero value is the empty vector. A name that is absent is zero in a request and unlimited in a limit.
type List struct{ items []Item }

// FromMap builds a List of amounts.
func FromMap(m map[string]int64) List {
	if len(m) == 0 {
		return List{}
	}
	items := make([]Item, 0, len(m))
	for name, amount := range m {
		items = append(items, Item{Name: name, Amount: amount})
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return List{items: items}
}

// FromSorted builds a List of items that are sorted by name, each name once, and takes them over.
func FromSorted(items []Item) List { return List{items: items} }

// Items returns the sorted items; the caller must not change them.
func (l List) Items() []Item { return l.items }

// Len is the number of resources named.
func (l List) Len() int { return len(l.items) }

// manyItems is from where on looking in the middle is faster than looking at all.
const manyItems = 8

// Get returns the amount of a resource and whether the list names it.
func (l List) Get(name string) (int64, bool) {
	if len(l.items) > manyItems {
		i, found := slices.BinarySearchFunc(l.items, name,
			func(it Item, name string) int { return strings.Compare(it.Name, name) })
		if !found {
			return 0, false
		}
		return l.items[i].Amount, true
	}
	for i := range l.items {
		if l.items[i].Name == name {
			return l.items[i].Amount, true
		}
	}
	return 0, false
}

// Add returns the sum by name, over the union of the names.
func (l List) Add(o List) List {
	if len(o.items) == 0 {
		return l
	}
	return l.merge(o, SaturatingAdd)
}

// Sub returns the difference by name, over the union of the names; amounts may become negative.
func (l List) Sub(o List) List {
	if len(o.items) == 0 {
		return l
	}
	return l.merge(o, SaturatingSub)
}

// Max returns the greater amount by name, over the union of the names; a name that is absent counts as zero.
func (l List) Max(o List) List {
	return l.merge(o, func(a, b int64) int64 { return max(a, b) })
}

// Min returns the lesser amount by name, of the names of both where neither is zero.
func (l List) Min(o List) List {
	out := make([]Item, 0, len(l.items))
	for _, it := range l.items {
		if other, _ := o.Get(it.Name); other != 0 && it.Amount != 0 {
			out = append(out, Item{it.Name, min(it.Amount, other)})
		}
	}
	return List{items: out}
}

// Covers says whether no amount of o is above that of the list; a name that is absent counts as zero.
func (l List) Covers(o List) bool {
	for _, it := range o.items {
		if amount, _ := l.Get(it.Name); it.Amount > amount {
			return false
		}
	}
	return true
}

// Part is so many of a number of equal parts, rounded up. Where the number is not above zero there are none; what is
// below zero has no part.
func (l List) Part(parts, of int64) List {
	if of <= 0 || parts <= 0 {
		return List{}
	}
	parts = min(parts, of)
	items := make([]Item, 0, len(l.items))
	for _, it := range l.items {
		hi, lo := bits.Mul64(uint64(max(it.Amount, 0)), uint64(parts))
		quotient, rest := bits.Div64(hi, lo, uint64(of))
		if rest > 0 {
			quotient++
		}
		items = append(items, Item{it.Name, int64(quotient)})
	}
	return FromSorted(items)
}

// PartOf is so many of a number of equal parts of an amount, rounded down. A number below zero counts as zero. If parts
// is greater than of, it counts as of.
func PartOf(amount, parts, of int64) int64 {
	if of <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(max(amount, 0)), uint64(min(max(parts, 0), of)))
	quotient, _ := bits.Div64(hi, lo, uint64(of))
	return int64(quotient)
}

// merge combines two vectors by name; an absent name enters as zero.
func (l List) merge(o List, f func(a, b int64) int64) List {
	out := make([]Item, 0, max(len(l.items), len(o.items)))
	i, j := 0, 0
	for i < len(l.items) || j < len(o.items) {
		switch {
		case j == len(o.items) || (i < len(l.items) && l.items[i].Name < o.items[j].Name):
			out = append(out, Item{l.items[i].Name, f(l.items[i].Amount, 0)})
			i++
		case i == len(l.items) || o.items[j].Name < l.items[i].Name:
			out = append(out, Item{o.items[j].Name, f(0, o.items[j].Amount)})
			j++
		default:
			out = append(out, Item{l.items[i].Name, f(l.items[i].Amount, o.items[j].Amount)})
			i++
			j++
		}
	}
	return List{items: out}
}

// Floor0 replaces negative amounts by zero.
func (l List) Floor0() List {
	for i := range l.items {
		if l.items[i].Amount < 0 {
			out := make([]Item, len(l.items))
			for j, it := range l.items {
				out[j] = Item{it.Name, max(it.Amount, 0)}
			}
			return List{items: out}
		}
	}
	return l
}

// IsZero says whether every amount is zero.
func (l List) IsZero() bool {
	for i := range l.items {
		if l.items[i].Amount != 0 {
			return false
		}
	}
	return true
}

// Equal compares as vectors: a zero amount equals an absent name.
func (l List) Equal(o List) bool {
	i, j := 0, 0
	for {
		for i < len(l.items) && l.items[i].Amount == 0 {
			i++
		}
		for j < len(o.items) && o.items[j].Amount == 0 {
			j++
		}
		if i == len(l.items) || j == len(o.items) {
			return i == len(l.items) && j == len(o.items)
		}
		if l.items[i] != o.items[j] {
			return false
		}
		i++
		j++
	}
}

// Same compares names and amounts. Unlike Equal it tells a zero amount from an absent name, which matters in limits.
func (l List) Same(o List) bool {
	if len(l.items) != len(o.items) {
		return false
	}
	for i := range l.items {
		if l.items[i] != o.items[i] {
			return false
		}
	}
	return true
}

// Mask keeps the names that o has.
func (l List) Mask(o List) List {
	out := make([]Item, 0, len(l.items))
	for _, it := range l.items {
		if _, ok := o.Get(it.Name); ok {
			out = append(out, it)
		}
	}
	return List{items: out}
}

// Key is a canonical string of the vector without zero amounts: equal vectors, equal keys.
func (l List) Key() string {
	var b strings.Builder
	for _, it := range l.items {
		if it.Amount == 0 {
			continue
		}
		// Quoted, so that no name can imitate another vector.
		b.WriteString(strconv.Quote(it.Name))
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(it.Amount, 10))
		b.WriteByte(';')
	}
	return b.String()
}

// SaturatingAdd adds and stops at the ends of int64.
func SaturatingAdd(a, b int64) int64 {
	sum := a + b
	if (a^sum)&(b^sum) < 0 { // neither has the sign of the sum
		return end(a)
	}
	return sum
}

// SaturatingSub subtracts and stops at the ends of int64.
func SaturatingSub(a, b int64) int64 {
	diff := a - b
	if (a^b)&(a^diff) < 0 { // a has neither the sign of b nor that of the difference
		return end(a)
	}
	return diff
}

// end is the end of int64 on the side of a.
func end(a int64) int64 {
	if a < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}
