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

package screen

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Top writes the tree of quotas with the amounts of one resource, or of all resources if it is empty. Quotas whose
// parent is not listed stand at the top.
func Top(out io.Writer, quotas []visibility.Quota, resource string) error {
	rows := [][]string{{"QUOTA", "RESOURCE", "MIN", "RUNTIME", "MAX", "USED", "RESERVED", "ADMITTED", "PENDING"}}
	children := tree(quotas)
	var walk func(parent, indent string, depth int)
	walk = func(parent, indent string, depth int) {
		below := children[parent]
		slices.SortFunc(below, func(a, b *visibility.Quota) int { return strings.Compare(a.Name, b.Name) })
		for _, q := range below {
			rows = append(rows, quotaRows(q, indent, resource)...)
			if depth < len(quotas) { // a loop of parents is nobody's child and is not reached
				walk(q.Name, indent+"  ", depth+1)
			}
		}
	}
	walk("", "", 0)
	if err := table(out, "", rows); err != nil {
		return err
	}
	return unusable(out, quotas, resource)
}

// unusable says what of the cluster no pod can use: there the limit of the top is below its max.
func unusable(out io.Writer, quotas []visibility.Quota, resource string) error {
	for i := range quotas {
		q := &quotas[i]
		if !whole(q) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(q.Status.Max)) {
			all, limit := q.Status.Max[name], q.Status.Limit[name]
			if resource != "" && string(name) != resource || all.Cmp(limit) <= 0 {
				continue
			}
			all.Sub(limit)
			_, err := fmt.Fprintf(out, "%s of %s is free on nodes that take no pods: they are cordoned, not ready or being "+
				"deleted.\n", all.String(), Clean(string(name)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tree has the quotas below each parent, and below "" those whose parent is not listed.
func tree(quotas []visibility.Quota) map[string][]*visibility.Quota {
	known := map[string]bool{}
	children := map[string][]*visibility.Quota{}
	for i := range quotas {
		known[quotas[i].Name] = true
	}
	for i := range quotas {
		parent := quotas[i].Status.Parent
		if !known[parent] || parent == quotas[i].Name {
			parent = ""
		}
		children[parent] = append(children[parent], &quotas[i])
	}
	return children
}

// amountOf a resource. Koordinator writes a fifth of the greatest number, or more, for a quota without a bound.
func amountOf(list corev1.ResourceList, resource, absent string) string {
	q, ok := list[corev1.ResourceName(resource)]
	most := q.Value()
	if resource == string(corev1.ResourceCPU) {
		most = q.MilliValue()
	}
	switch {
	case !ok:
		return absent
	case most >= math.MaxInt64/5:
		return "unlimited"
	}
	return q.String()
}

func quotaRows(q *visibility.Quota, indent, resource string) (rows [][]string) {
	s := &q.Status
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{s.Min, s.Limit, s.Max, s.Used, s.Reserved} {
		for name := range list {
			if resource == "" || string(name) == resource {
				names[name] = true
			}
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, string(name))
	}
	slices.Sort(sorted)
	name, admitted, pending := indent+q.Name, fmt.Sprint(s.Holding), fmt.Sprint(s.Waiting)
	for _, r := range sorted {
		amount := func(list corev1.ResourceList, absent string) string { return amountOf(list, r, absent) }
		rows = append(rows, []string{
			name, r, amount(s.Min, none), amount(s.Limit, none), amount(s.Max, none), amount(s.Used, "0"),
			amount(s.Reserved, "0"), admitted, pending,
		})
		name, admitted, pending = " ", " ", " "
	}
	if len(rows) == 0 {
		rows = append(rows, []string{name, "", "", "", "", "", "", admitted, pending})
	}
	return rows
}
