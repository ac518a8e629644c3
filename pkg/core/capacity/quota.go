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

package capacity

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
)

// Quota is an observation of one level of the quota tree, as Koordinator knows it now.
type Quota struct {
	Name string
	// Parent is the next level up; "" for the top. Max of the top is the cluster total, Limit the part that pods can use.
	Parent string
	// Limit for Used+outstanding: runtime or max. Max is spec.max (never fits above it). Min is spec.min, the limit
	// of what is non-preemptible; the top has none. A resource that a list does not name is unlimited there. In
	// Limit, resources.Jobs is the number of units that may be admitted here and below; no other list names it.
	Limit, Max, Min resources.List
	// Used by assigned pods, and the part of it that is non-preemptible.
	Used, NonPreemptibleUsed resources.List
	// Shared: the limit is the runtime, a share that depends on the demand of others. A unit can borrow beyond it, up to
	// Max.
	Shared bool
	// Terms say how the runtime is computed. Then Limit is not the limit of a Shared level, and names at most
	// resources.Jobs.
	Terms Terms
	// Requested by the quota's own pods that are not over, assigned or not. KeepsMin: the quota lends nothing of its
	// min. Both count where units borrow.
	Requested resources.List
	KeepsMin  bool
	// Closed: no unit is admitted here, whatever room there is.
	Closed bool
}

// Terms say how a level takes part where runtimes are computed; its zero value says that it does not. The rest is in
// Quota: parent, min, max, and what is requested.
type Terms struct {
	Part shares.Part
	// Weight by which is shared what goes beyond min.
	Weight resources.List
	// ScalesMin: min shrinks if the total is less than all min together. GuaranteesUsed: used amounts are guaranteed like
	// min. OwnUsed is the use of the quota's own pods.
	ScalesMin, GuaranteesUsed bool
	OwnUsed                   resources.List
}

func (s *Terms) same(o *Terms) bool {
	return s.Part == o.Part && s.ScalesMin == o.ScalesMin && s.GuaranteesUsed == o.GuaranteesUsed &&
		s.Weight.Same(o.Weight) && s.OwnUsed.Same(o.OwnUsed)
}

// computed says whether the limit is a share that is computed here.
func (q *Quota) computed() bool { return q.Shared && q.Terms.Part == shares.Sharing }

// most is what there is to share out at the top, and max elsewhere. The max of the top counts nodes that take no pods.
func (q *Quota) most() resources.List {
	if q.Terms.Part == shares.Top {
		return q.Limit.Mask(q.Max)
	}
	return q.Max
}

// limited names what the limit names; the amounts are of no meaning.
func (q *Quota) limited() resources.List {
	if q.computed() {
		return q.Max.Add(q.Limit)
	}
	return q.Limit
}

func (q *Quota) same(o *Quota) bool {
	return q.Name == o.Name && q.Parent == o.Parent && q.Limit.Same(o.Limit) && q.Max.Same(o.Max) &&
		q.Min.Same(o.Min) && q.Used.Same(o.Used) && q.NonPreemptibleUsed.Same(o.NonPreemptibleUsed) &&
		q.Shared == o.Shared && q.KeepsMin == o.KeepsMin && q.Closed == o.Closed && q.Requested.Same(o.Requested) &&
		q.Terms.same(&o.Terms)
}

// structural says whether another observation changes more than amounts: which units can be admitted at all.
func (q *Quota) structural(o *Quota) bool {
	return q.Parent != o.Parent || q.Shared != o.Shared || q.Closed != o.Closed || !q.Max.Same(o.Max) ||
		!q.Min.Same(o.Min)
}
