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
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Greatest is the greatest amount of one resource that a list read from quantities may have. A sum of
// several of them cannot wrap, and nothing real comes near it.
const Greatest int64 = 1 << 60

const cpu = "cpu"

// FromQuantities converts a ResourceList. It returns an error that names the first (by name) negative or
// unrepresentable amount.
func FromQuantities[K ~string](m map[K]resource.Quantity) (List, error) {
	if len(m) == 0 {
		return List{}, nil
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, string(name))
	}
	sort.Strings(names)
	items := make([]Item, 0, len(m))
	for _, name := range names {
		q := m[K(name)]
		if q.Sign() < 0 {
			return List{}, fmt.Errorf("resource %q: negative amount %s", name, q.String())
		}
		if q.Cmp(Quantity(name, Greatest)) > 0 {
			return List{}, fmt.Errorf("resource %q: absurd amount %s", name, q.String())
		}
		items = append(items, Item{Name: name, Amount: amount(name, q)})
	}
	return List{items: items}, nil
}

// amount rounds up, as Koordinator and the scheduler do.
func amount(name string, q resource.Quantity) int64 {
	if name == cpu {
		return q.MilliValue()
	}
	return q.Value()
}

// Quantity is one amount in the unit of its resource.
func Quantity(name string, amount int64) resource.Quantity {
	switch {
	case name == cpu:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case strings.HasSuffix(name, "memory"), strings.HasSuffix(name, "ephemeral-storage"),
		strings.HasPrefix(name, "hugepages-"):
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// Quantities converts back; the inverse of FromQuantities.
func (l List) Quantities() map[string]resource.Quantity {
	out := make(map[string]resource.Quantity, len(l.items))
	for _, it := range l.items {
		out[it.Name] = Quantity(it.Name, it.Amount)
	}
	return out
}

// Format writes one amount for people, in the unit of its resource: 1500 of cpu is "1500m".
func Format(name string, amount int64) string {
	q := Quantity(name, amount)
	return q.String()
}

// String is for people: "cpu: 1500m, memory: 2Gi".
func (l List) String() string {
	var b strings.Builder
	for i, it := range l.items {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(it.Name)
		b.WriteString(": ")
		b.WriteString(Format(it.Name, it.Amount))
	}
	return b.String()
}

// Words is String, with a word for a list without amounts.
func (l List) Words() string {
	if l.IsZero() {
		return "nothing"
	}
	return l.String()
}
