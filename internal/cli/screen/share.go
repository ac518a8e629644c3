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
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// share is the dominant share of a quota: the largest ratio of held to min, and to max, over all resources.
type share struct {
	quota        *visibility.Quota
	ofMin, ofMax float64
	resource     string
}

// shareOf computes as the core does: use of a resource without a min is an infinite share of min. The whole cluster has
// no min. Its max is what all nodes have.
func shareOf(q *visibility.Quota) share {
	s := share{quota: q}
	held := q.Status.Used.DeepCopy()
	if held == nil {
		held = corev1.ResourceList{}
	}
	for name, reserved := range q.Status.Reserved {
		sum := held[name]
		sum.Add(reserved)
		held[name] = sum
	}
	for _, name := range sortedNames(held) {
		amount := held[name]
		if amount.Sign() <= 0 {
			continue
		}
		if r := ratio(amount, q.Status.Min[name]); r > s.ofMin && !whole(q) {
			s.ofMin, s.resource = r, string(name)
		}
		if most, limited := q.Status.Max[name]; limited && ratio(amount, most) > s.ofMax {
			s.ofMax = ratio(amount, most)
			if whole(q) {
				s.resource = string(name)
			}
		}
	}
	return s
}

// whole says that the quota is the top of the tree: it competes with none.
func whole(q *visibility.Quota) bool { return q.Status.Parent == "" && q.Status.Exists }

func ratio(amount, of resource.Quantity) float64 {
	if of.Sign() <= 0 {
		return math.Inf(1)
	}
	return amount.AsApproximateFloat64() / of.AsApproximateFloat64()
}

// Share writes the quotas of each parent in the order in which they get free quota. The smallest held share of min is
// first, then the smallest share of max.
func Share(out io.Writer, quotas []visibility.Quota) error {
	rows := [][]string{{"QUOTA", "ORDER", "SHARE OF MIN", "OF MAX", "RESOURCE", "ADMITTED", "PENDING"}}
	children := tree(quotas)
	var walk func(parent, indent string, depth int)
	walk = func(parent, indent string, depth int) {
		below := make([]share, 0, len(children[parent]))
		for _, q := range children[parent] {
			below = append(below, shareOf(q))
		}
		slices.SortFunc(below, func(a, b share) int {
			return cmp.Or(cmp.Compare(a.ofMin, b.ofMin), cmp.Compare(a.ofMax, b.ofMax), strings.Compare(a.quota.Name,
				b.quota.Name))
		})
		for i, s := range below {
			order, ofMin := fmt.Sprint(i+1), percent(s.ofMin)
			if whole(s.quota) {
				order, ofMin = none, none
			}
			rows = append(rows, []string{
				indent + s.quota.Name, order, ofMin, percent(s.ofMax), s.resource,
				fmt.Sprint(s.quota.Status.Holding), fmt.Sprint(s.quota.Status.Waiting),
			})
			if depth < len(quotas) { // see Top
				walk(s.quota.Name, indent+"  ", depth+1)
			}
		}
	}
	walk("", "", 0)
	return table(out, "", rows)
}

func percent(of float64) string {
	if math.IsInf(of, 1) {
		return "no min"
	}
	return fmt.Sprintf("%.0f%%", of*100)
}
