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

package answers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Usage is how much a quota was held by the jobs of a namespace, over a time.
type Usage struct {
	Quota     string `json:"quota"`
	Namespace string `json:"namespace"`
	// Jobs that held the quota in that time.
	Jobs int `json:"jobs"`
	// Hours of each resource: the amount that was held, in cores, bytes or devices, times hours.
	Hours map[corev1.ResourceName]float64 `json:"hours"`
}

// UsageOf sums held quota between two times, by quota and namespace. Records, the oldest first, have the units that
// ended in that time, and units those that hold quota at its end.
func UsageOf(records []visibility.Record, units []v1alpha1.QueueUnit, from, to time.Time) []Usage {
	u := usages{from: from, to: to, open: map[string]holding{}, sums: map[[2]string]*sum{}}
	for i := range records {
		u.take(&records[i])
	}
	for i := range units {
		u.holds(&units[i])
	}
	var out []Usage
	for _, s := range u.sums {
		s.Jobs = len(s.units)
		out = append(out, s.Usage)
	}
	slices.SortFunc(out, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// usages are added up record by record.
type usages struct {
	from, to time.Time
	// open are the units, by UID, that hold something at the time of the record.
	open map[string]holding
	sums map[[2]string]*sum
}

// holding is an amount from a time on.
type holding struct {
	amount corev1.ResourceList
	quota  string
	since  time.Time
}

type sum struct {
	Usage
	units map[string]struct{}
}

func (u *usages) take(r *visibility.Record) {
	at := r.Time.Time
	before, known := u.open[r.UID]
	switch r.Event {
	case visibility.RecordReserved, visibility.RecordAdmitted:
		if !known {
			u.open[r.UID] = holding{r.Held, r.Quota, at}
		}
	case visibility.RecordResized:
		if !known {
			before = holding{r.HeldBefore, r.Quota, u.from}
		}
		u.add(r.Namespace, r.UID, before, at)
		u.open[r.UID] = holding{r.Held, r.Quota, at}
	case visibility.RecordEvicted, visibility.RecordSucceeded, visibility.RecordFailed, visibility.RecordDeleted:
		if !known && r.Ran != nil {
			before = holding{r.Held, r.Quota, at.Add(-r.Ran.Duration)}
		}
		u.add(r.Namespace, r.UID, before, at)
		delete(u.open, r.UID)
	case visibility.RecordEnqueued, visibility.RecordChanged, visibility.RecordDeactivated, visibility.RecordActivated,
		visibility.RecordRunning:
	}
}

// holds adds what a unit has held since its admission, or since the record says that it holds as much.
func (u *usages) holds(unit *v1alpha1.QueueUnit) {
	switch unit.Status.Phase {
	case v1alpha1.PhaseReserved, v1alpha1.PhaseSchedReady, v1alpha1.PhaseSchedSucceed, v1alpha1.PhaseDequeued,
		v1alpha1.PhaseRunning:
	default:
		return
	}
	h, known := u.open[string(unit.UID)]
	if !known {
		if unit.Status.LastAllocateTime == nil {
			return
		}
		h = holding{corev1.ResourceList{}, "", unit.Status.LastAllocateTime.Time}
		if e := unit.Status.Effective; e != nil {
			h.quota = e.Quota
		}
		for _, a := range unit.Status.Admissions {
			for name, amount := range a.Resources {
				all := h.amount[name]
				all.Add(amount)
				h.amount[name] = all
			}
		}
	}
	u.add(unit.Namespace, string(unit.UID), h, u.to)
}

func (u *usages) add(namespace, uid string, h holding, until time.Time) {
	if h.since.Before(u.from) {
		h.since = u.from
	}
	hours := until.Sub(h.since).Hours()
	if len(h.amount) == 0 || hours <= 0 {
		return
	}
	key := [2]string{h.quota, namespace}
	s := u.sums[key]
	if s == nil {
		s = &sum{
			Usage: Usage{Quota: h.quota, Namespace: namespace, Hours: map[corev1.ResourceName]float64{}},
			units: map[string]struct{}{},
		}
		u.sums[key] = s
	}
	s.units[uid] = struct{}{}
	for name, amount := range h.amount {
		s.Hours[name] += amount.AsApproximateFloat64() * hours
	}
}

// Resources are those of all usages, by name.
func Resources(all []Usage) []corev1.ResourceName {
	names := map[corev1.ResourceName]struct{}{}
	for _, u := range all {
		for name := range u.Hours {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
