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

package unit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// PodSetSize says how many pods of a kind a unit asks for, and with how few its job can do.
type PodSetSize struct {
	Count, Least int64
	// Request of all Count pods. So many pods of them ask for that part of it.
	Request resources.List
}

// shrinks says that it may be smaller. A pod set is never without any pod.
func (p *PodSetSize) shrinks() bool { return p.Fewest() < p.Count }

// Fewest is how many pods it is at the least.
func (p *PodSetSize) Fewest() int64 { return min(max(p.Least, 1), p.Count) }

// Sizes are the sizes in which a unit may be admitted, from the whole down to the least. They never change. As in
// Kueue, steps are numbered from the whole, and each pod set gives up its part of them.
type Sizes struct {
	sets  []PodSetSize
	steps int64
	least resources.List
	key   string
}

// NewSizes returns nil if there is only one size. The pod sets together have to be what the unit asks for.
func NewSizes(sets []PodSetSize) *Sizes {
	if !slices.ContainsFunc(sets, func(p PodSetSize) bool { return p.shrinks() }) {
		return nil
	}
	s := &Sizes{sets: sets}
	var key strings.Builder
	for i := range sets {
		p := &sets[i]
		s.steps = resources.SaturatingAdd(s.steps, p.Count-p.Fewest())
		fmt.Fprintf(&key, "%d-%d of %s|", p.Fewest(), p.Count, p.Request.Key())
	}
	s.key = key.String()
	s.least, _ = s.At(s.steps)
	return s
}

// Fixed is the whole as the only size.
func (s *Sizes) Fixed() *Sizes {
	if s == nil || s.steps == 0 {
		return s
	}
	f := &Sizes{sets: s.sets, key: "whole " + s.key}
	f.least, _ = f.At(0)
	return f
}

// Same says whether both are the same sizes.
func (s *Sizes) Same(o *Sizes) bool { return s == o || s != nil && o != nil && s.key == o.key }

// String names all that the sizes depend on.
func (s *Sizes) String() string {
	if s == nil {
		return "one size"
	}
	return s.key
}

// Counts are the numbers of pods of each pod set that many steps below the whole.
func (s *Sizes) Counts(step int64) []int64 {
	counts := make([]int64, len(s.sets))
	for i := range s.sets {
		p := &s.sets[i]
		counts[i] = p.Count
		if s.steps > 0 && p.shrinks() {
			counts[i] -= resources.PartOf(p.Count-p.Fewest(), step, s.steps)
		}
	}
	return counts
}

// At is what the unit asks for that many steps below the whole, and for how many pods. No amount is greater than that
// of a step before.
func (s *Sizes) At(step int64) (request resources.List, pods int64) {
	for i, n := range s.Counts(step) {
		p := &s.sets[i]
		part := p.Request
		if n < p.Count {
			part = part.Part(n, p.Count)
		}
		request, pods = request.Add(part), resources.SaturatingAdd(pods, n)
	}
	return request, pods
}

// Size is what a unit is admitted with: the whole unless Counts say how many pods of each pod set it is. Quota is the
// one of its list that it is admitted in; empty for its own.
type Size struct {
	Request resources.List
	Pods    int64
	Counts  []int64
	Quota   string
}

// Greatest is the greatest size that fits, if the least is known to fit. If one size fits, all smaller ones do.
func (s *Sizes) Greatest(fits func(request resources.List) bool) (p Size) {
	lo, hi := int64(0), s.Steps()
	for lo < hi {
		step := lo + (hi-lo)/2
		if request, _ := s.At(step); fits(request) {
			hi = step
		} else {
			lo = step + 1
		}
	}
	if p.Request, p.Pods = s.At(lo); lo > 0 {
		p.Counts = s.Counts(lo)
	}
	return p
}

// Steps is how many sizes there are in addition to the whole.
func (s *Sizes) Steps() int64 { return s.steps }

// Sets are the pod sets of the whole; they must not be changed.
func (s *Sizes) Sets() []PodSetSize { return s.sets }
