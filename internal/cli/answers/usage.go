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
	sums := sums{}
	for _, h := range HoldingsOf(records, units, from, to) {
		sums.add(&h)
	}
	var out []Usage
	for _, s := range sums {
		s.Jobs = len(s.units)
		out = append(out, s.Usage)
	}
	slices.SortFunc(out, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// Holding is an amount of a quota that a unit held from one time to another.
type Holding struct {
	Quota, Namespace, UID string
	Amount                corev1.ResourceList
	From, To              time.Time
}

// HoldingsOf units between two times, in no order. The arguments are those of UsageOf.
func HoldingsOf(records []visibility.Record, units []v1alpha1.QueueUnit, from, to time.Time) []Holding {
	u := holdings{from: from, to: to, open: map[string]holding{}}
	for i := range records {
		u.take(&records[i])
	}
	for i := range units {
		u.holds(&units[i])
	}
	return u.found
}

// holdings are collected record by record.
type holdings struct {
	from, to time.Time
	// open are the units, by UID, that hold something at the time of the record.
	open  map[string]holding
	found []Holding
}

// holding is an amount from a time on.
type holding struct {
	amount corev1.ResourceList
	quota  string
	since  time.Time
}

// sums by quota and namespace.
type sums map[[2]string]*sum

type sum struct {
	Usage
	units map[string]struct{}
}

func (u *holdings) take(r *visibility.Record) {
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
func (u *holdings) holds(unit *v1alpha1.QueueUnit) {
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

func (u *holdings) add(namespace, uid string, h holding, until time.Time) {
	if h.since.Before(u.from) {
		h.since = u.from
	}
	if len(h.amount) > 0 && until.After(h.since) {
		u.found = append(u.found, Holding{h.quota, namespace, uid, h.amount, h.since, until})
	}
}

func (s sums) add(h *Holding) {
	key := [2]string{h.Quota, h.Namespace}
	of := s[key]
	if of == nil {
		of = &sum{
			Usage: Usage{Quota: h.Quota, Namespace: h.Namespace, Hours: map[corev1.ResourceName]float64{}},
			units: map[string]struct{}{},
		}
		s[key] = of
	}
	of.units[h.UID] = struct{}{}
	for name, amount := range h.Amount {
		of.Hours[name] += amount.AsApproximateFloat64() * h.To.Sub(h.From).Hours()
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
