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

package placement

import (
	"cmp"
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// search places the pods of a request on a view, one set after the other.
type search struct {
	framework framework.Framework
	view      *view
	placed    []Placed
}

// place places all models, or ends with the first one that does not find nodes, which has a shortage.
func (s *search) place(ctx context.Context, models []*model) (*Shortage, error) {
	if err := s.order(ctx, models); err != nil {
		return nil, err
	}
	for _, m := range models {
		left := m.Count
		if m.counted {
			n, err := s.placeCounted(ctx, m)
			if err != nil {
				return nil, err
			}
			left -= n
		}
		// Arithmetic may leave pods that the filters accept, so the filters have the last word.
		shortage, err := s.placeEach(ctx, m, left)
		if shortage != nil || err != nil {
			return shortage, err
		}
	}
	return nil, nil
}

// order puts the model first that takes the greatest part of its slots.
func (s *search) order(ctx context.Context, models []*model) error {
	if len(models) < 2 {
		return nil
	}
	part := make(map[*model]float64, len(models))
	for _, m := range models {
		slots, err := s.slots(ctx, m)
		if err != nil {
			return err
		}
		total := 0
		for _, n := range slots {
			total += n
		}
		part[m] = float64(m.Count) / float64(total)
	}
	slices.SortStableFunc(models, func(a, b *model) int { return cmp.Compare(part[b], part[a]) })
	return nil
}

// slots of each node for a model: one run of the filters per node.
func (s *search) slots(ctx context.Context, m *model) ([]int, error) {
	c, err := newCycle(ctx, s.framework, m)
	if err != nil {
		return nil, err
	}
	slots := make([]int, len(s.view.nodes))
	for i, node := range s.view.nodes {
		status, err := c.filter(ctx, node)
		if err != nil {
			return nil, err
		}
		if status.IsSuccess() {
			slots[i] = m.slots(node)
		}
	}
	return slots, nil
}

// placeCounted places pods by arithmetic, and returns how many. The nodes with the fewest slots are taken first: large
// gaps are left to others.
func (s *search) placeCounted(ctx context.Context, m *model) (placed int, err error) {
	slots, err := s.slots(ctx, m)
	if err != nil {
		return 0, err
	}
	var order []int
	for i, n := range slots {
		if n > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(slots[a], slots[b]) })
	taken := map[domain]bool{}
	for _, i := range order {
		if placed == m.Count {
			break
		}
		domains := m.domains(s.view.nodes[i].Node())
		if slices.ContainsFunc(domains, func(d domain) bool { return taken[d] }) {
			continue
		}
		for _, d := range domains {
			taken[d] = true
		}
		n := min(slots[i], m.Count-placed)
		s.add(m, i, n)
		placed += n
	}
	return placed, nil
}

// placeEach places the last pods of a set one by one. It begins at the node of the former pod, where the next one fits
// most often. It returns a shortage if no node takes a pod.
func (s *search) placeEach(ctx context.Context, m *model, left int) (*Shortage, error) {
	if left == 0 {
		return nil, nil
	}
	c, err := newCycle(ctx, s.framework, m)
	if err != nil {
		return nil, err
	}
	statuses := make([]*fwk.Status, len(s.view.nodes))
	for at := 0; ; {
		found, err := s.next(ctx, c, at, statuses)
		switch {
		case err != nil:
			return nil, err
		case found < 0 && len(c.grown) == 0:
			return newShortage(m, m.Count-left, statuses, c.rejected != nil), nil
		case found < 0:
			c, err = newCycle(ctx, s.framework, m)
		default:
			at = found
			s.add(m, at, 1)
			if left--; left == 0 {
				return nil, nil
			}
			c, err = c.added(ctx, s.view.nodes[at])
		}
		if err != nil {
			return nil, err
		}
	}
}

// next returns the first node from an index on, and then from the beginning, that takes a pod. If there is none, it
// returns -1, and statuses has the reason of each node that the cycle can judge.
func (s *search) next(ctx context.Context, c *cycle, from int, statuses []*fwk.Status) (int, error) {
	for k := range statuses {
		i := (from + k) % len(statuses)
		if c.stale(s.view.nodes[i].Node()) {
			continue
		}
		var err error
		if statuses[i], err = c.filter(ctx, s.view.nodes[i]); err != nil {
			return -1, err
		}
		if statuses[i].IsSuccess() {
			return i, nil
		}
	}
	return -1, nil
}

// add places n pods of a set on a node.
func (s *search) add(m *model, i, n int) {
	s.view.add(i, m.info, n)
	node := s.view.nodes[i].Node().Name
	if last := len(s.placed) - 1; last >= 0 && s.placed[last].pod == m.info && s.placed[last].Node == node {
		s.placed[last].Count += n
		return
	}
	s.placed = append(s.placed, Placed{Unit: m.Unit, Set: m.Name, Node: node, Count: n, pod: m.info})
}
