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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Preemptions are units that take quota of others, and units that lost theirs. The caller may read them.
type Preemptions struct {
	// DryRun: nothing is taken. Taking has what units would take if their queues had no dryRun.
	DryRun bool     `json:"dryRun,omitempty"`
	Taking []Taking `json:"taking"`
	// Taken, the latest first.
	Taken []Taken `json:"taken"`
	// NamesHidden says that units of other namespaces may be part of this, and that the caller may not list them.
	NamesHidden bool `json:"namesHidden,omitempty"`
	// CompleteSince is the time from which on the record has all preemptions; absent without a record.
	CompleteSince *metav1.Time `json:"completeSince,omitempty"`
	// NoRecord says why there is no record. Without it, Taken has only units that wait since their preemption.
	NoRecord string `json:"noRecord,omitempty"`
}

// Subject is a unit of a preemption.
type Subject struct {
	Namespace string `json:"namespace"`
	Unit      string `json:"unit"`
	// Job is KIND/NAME.
	Job   string `json:"job"`
	Queue string `json:"queue,omitempty"`
	Quota string `json:"quota,omitempty"`
}

// Taking is a pending unit and what it takes.
type Taking struct {
	Subject `json:",inline"`
	Asks    string `json:"asks,omitempty"`
	// Victims that the caller may read.
	Victims []Victim `json:"victims"`
	// Others is the number of victims that are not among those that were read. A dry run names 100 victims at most.
	Others int `json:"others,omitempty"`
}

// Victim is a unit that loses what it holds.
type Victim struct {
	Subject `json:",inline"`
	State   VictimState `json:"state"`
}

// Taken is one preemption, as its victim knows it.
type Taken struct {
	Victim `json:",inline"`
	Time   metav1.Time `json:"time"`
	Reason string      `json:"reason"`
	// ByQuota is the quota of the taker; empty if it is not known.
	ByQuota string `json:"byQuota,omitempty"`
	// Taker is absent if the caller may not read it, or if it is gone.
	Taker *Subject `json:"taker,omitempty"`
	// Evictions of the unit so far, for any reason; 0 if the unit is deleted.
	Evictions int64 `json:"evictions,omitempty"`
	// Message of the eviction, while the unit waits since then.
	Message string `json:"message,omitempty"`
}

// VictimState is what has become of a victim by now.
type VictimState string

// The states.
const (
	VictimHolds     VictimState = "Holds"     // the unit has not lost anything yet
	VictimSuspended VictimState = "Suspended" // the unit waits again
	VictimResumed   VictimState = "Resumed"   // the unit was admitted again
	VictimEnded     VictimState = "Ended"
	VictimDeleted   VictimState = "Deleted"
)

// PreemptionQuery selects preemptions. A preemption of which the taker or a victim matches is selected.
type PreemptionQuery struct {
	// Namespace; empty asks for all, which needs the right to.
	Namespace string
	// Queue; empty selects all.
	Queue string
	// Since is the time of the oldest preemption that is looked for in the record.
	Since time.Time
}

// Preemptions reads units, and the record if there is one.
func (r *Reader) Preemptions(ctx context.Context, q *PreemptionQuery) (*Preemptions, error) {
	var records []visibility.Record
	evictions := RecordQuery{Namespace: q.Namespace, Event: visibility.RecordEvicted, Since: q.Since}
	found, missing := r.Records(ctx, &evictions)
	if missing == nil {
		records = found.Items
	}
	units, err := concerned(ctx, r.Objects, q.Namespace, records)
	if err != nil {
		return nil, err
	}
	everywhere := func() ([]v1alpha1.QueueUnit, error) { return r.lately(ctx, "") }
	p, err := r.named(ctx, q, units, everywhere, func(units []v1alpha1.QueueUnit) (*Preemptions, bool) {
		return preemptionsOf(units, records, q)
	})
	switch {
	case err != nil:
		return nil, err
	case missing != nil:
		p.NoRecord = missing.Error()
	default:
		p.CompleteSince = &found.CompleteSince
	}
	return p, nil
}

// named are the preemptions among units of a namespace. If they name others, units of everywhere are read, too, as far
// as the caller may.
func (r *Reader) named(
	ctx context.Context, q *PreemptionQuery, units []v1alpha1.QueueUnit,
	everywhere func() ([]v1alpha1.QueueUnit, error),
	among func([]v1alpha1.QueueUnit) (p *Preemptions, complete bool),
) (*Preemptions, error) {
	p, complete := among(units)
	if q.Namespace == "" || complete {
		return p, nil
	}
	all, err := everywhere()
	switch {
	case err == nil:
		p, _ = among(joined(units, all))
	case apierrors.IsForbidden(err):
		p.NamesHidden = true
	default:
		return nil, err
	}
	return p, nil
}

// joined are units of two lists, each once.
func joined(units, others []v1alpha1.QueueUnit) []v1alpha1.QueueUnit {
	known := sets.New[types.UID]()
	return slices.DeleteFunc(slices.Concat(units, others), func(u v1alpha1.QueueUnit) bool {
		again := known.Has(u.UID)
		known.Insert(u.UID)
		return again
	})
}

// lately reads units that preemptions of a namespace, or of all, may be of: those of the latest evictions among them.
func (r *Reader) lately(ctx context.Context, namespace string) ([]v1alpha1.QueueUnit, error) {
	var records []visibility.Record
	evictions := RecordQuery{Namespace: namespace, Event: visibility.RecordEvicted, Limit: mostEvicted}
	if found, err := r.Records(ctx, &evictions); err == nil {
		records = found.Items
	}
	return concerned(ctx, r.Objects, namespace, records)
}

// PreemptionOf is what a unit takes now, and the preemption since which it waits; nil where there is none. Units that
// the caller may not read have no name there, and neither have victims in a large cluster before they are evicted.
func (r *Reader) PreemptionOf(ctx context.Context, u *v1alpha1.QueueUnit) (*Taking, *Taken, error) {
	c := preemptionsAmong(nil, &PreemptionQuery{})
	_, takes := c.taking(u)
	_, lost := c.waits(u)
	if !takes && lost == "" {
		return nil, nil, nil
	}
	units, err := r.lately(ctx, "")
	if apierrors.IsForbidden(err) {
		units, err = r.lately(ctx, u.Namespace)
	}
	if err != nil {
		return nil, nil, err
	}
	c = preemptionsAmong(units, &PreemptionQuery{})
	var taking *Taking
	var taken *Taken
	if t, takes := c.taking(u); takes {
		taking = &t
	}
	if t, lost := c.waits(u); lost != "" {
		taken = &t
	}
	return taking, taken, nil
}

// Units are the names of all units that exist, each once, in the order of the answer.
func (p *Preemptions) Units() (names []string) {
	told := map[Subject]bool{}
	add := func(s Subject) {
		if !told[s] {
			names = append(names, s.Unit)
		}
		told[s] = true
	}
	for i := range p.Taking {
		add(p.Taking[i].Subject)
		for _, v := range p.Taking[i].Victims {
			add(v.Subject)
		}
	}
	for i := range p.Taken {
		if t := &p.Taken[i]; t.State != VictimDeleted {
			add(t.Subject)
		}
		if t := p.Taken[i].Taker; t != nil {
			add(*t)
		}
	}
	return names
}

// preemptions are collected from units and records.
type preemptions struct {
	query *PreemptionQuery
	byUID map[string]*v1alpha1.QueueUnit
	// takers are the units whose last decision names a hold. The decision may be over.
	takers map[string]*v1alpha1.QueueUnit
}

func preemptionsAmong(units []v1alpha1.QueueUnit, q *PreemptionQuery) *preemptions {
	c := preemptions{query: q, byUID: map[string]*v1alpha1.QueueUnit{}, takers: map[string]*v1alpha1.QueueUnit{}}
	for i := range units {
		u := &units[i]
		c.byUID[string(u.UID)] = u
		if u.Status.Preemption != nil {
			for _, hold := range u.Status.Preemption.Holds {
				c.takers[hold] = u
			}
		}
	}
	return &c
}

// preemptionsOf units and records. They are complete if all takers and victims are among the units.
func preemptionsOf(
	units []v1alpha1.QueueUnit, records []visibility.Record, q *PreemptionQuery,
) (p *Preemptions, complete bool) {
	c := preemptionsAmong(units, q)
	p = &Preemptions{Taking: []Taking{}, Taken: []Taken{}}
	told := map[string]bool{}
	for i := range units {
		u := &units[i]
		if t, selected := c.taking(u); selected {
			p.Taking = append(p.Taking, t)
		}
		if t, hold := c.waits(u); hold != "" && c.selects(&t) {
			p.Taken, told[hold] = append(p.Taken, t), true
		}
	}
	for i := range records {
		if t, hold := c.recorded(&records[i]); hold != "" && !told[hold] && c.selects(&t) {
			p.Taken = append(p.Taken, t)
		}
	}
	slices.SortStableFunc(p.Taken, func(a, b Taken) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Unit, b.Unit))
	})
	complete = !slices.ContainsFunc(p.Taken, func(t Taken) bool { return t.Taker == nil })
	for hold := range c.takers {
		uid, _, _ := strings.Cut(hold, "/")
		complete = complete && c.byUID[uid] != nil
	}
	return p, complete
}

// taking is what a unit takes now. A decision ends with the admission of its unit. A unit on hold has given up, though
// its status says what it took.
func (c *preemptions) taking(u *v1alpha1.QueueUnit) (t Taking, selected bool) {
	p := u.Status.Preemption
	if p == nil || u.Inactive() || p.Attempts != u.Status.Attempts || !unit.Phase(u.Status.Phase).Waits() {
		return t, false
	}
	t = Taking{Subject: subjectOf(u), Victims: []Victim{}}
	if e := u.Status.Effective; e != nil {
		t.Asks = e.Requested
	}
	selected = c.matches(&t.Subject)
	for _, hold := range p.Holds {
		uid, attempt, _ := strings.Cut(hold, "/")
		v := c.byUID[uid]
		if v == nil {
			t.Others++
			continue
		}
		victim := Victim{Subject: subjectOf(v), State: stateOf(v)}
		if victim.State == VictimResumed && attempt == fmt.Sprint(v.Status.Attempts) {
			victim.State = VictimHolds
		}
		t.Victims = append(t.Victims, victim)
		selected = selected || c.matches(&victim.Subject)
	}
	return t, selected && len(p.Holds) > 0
}

// waits is the preemption since which a unit waits.
func (c *preemptions) waits(u *v1alpha1.QueueUnit) (t Taken, hold string) {
	evicted := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionEvicted)
	if evicted == nil || evicted.Status != metav1.ConditionTrue || !isPreemption(evicted.Reason) {
		return t, ""
	}
	t = Taken{
		Victim: Victim{subjectOf(u), stateOf(u)}, Time: evicted.LastTransitionTime, Reason: evicted.Reason,
		Evictions: evictionsOf(u), Message: evicted.Message,
	}
	hold = fmt.Sprintf("%s/%d", u.UID, u.Status.Attempts)
	c.nameTaker(&t, hold)
	return t, hold
}

// recorded is the preemption that a record is about.
func (c *preemptions) recorded(r *visibility.Record) (t Taken, hold string) {
	if r.Event != visibility.RecordEvicted || !isPreemption(r.Reason) {
		return t, ""
	}
	of := Subject{r.Namespace, r.Unit, JobName(r.Kind, r.Job, r.Unit), r.Queue, r.Quota}
	t = Taken{Victim: Victim{of, VictimDeleted}, Time: metav1.NewTime(r.Time.Time), Reason: r.Reason}
	if u := c.byUID[r.UID]; u != nil {
		t.State, t.Evictions = stateOf(u), evictionsOf(u)
	}
	hold = fmt.Sprintf("%s/%d", r.UID, r.Attempt)
	c.nameTaker(&t, hold)
	return t, hold
}

func (c *preemptions) nameTaker(t *Taken, hold string) {
	// Of the taker the victim knows the quota alone, from the message of the eviction.
	_, _ = fmt.Sscanf(t.Message, "quota %q takes back its min", &t.ByQuota)
	if u := c.takers[hold]; u != nil {
		taker := subjectOf(u)
		t.Taker, t.ByQuota = &taker, cmp.Or(t.ByQuota, taker.Quota)
	}
}

func (c *preemptions) selects(t *Taken) bool {
	return c.matches(&t.Subject) || t.Taker != nil && c.matches(t.Taker)
}

func (c *preemptions) matches(s *Subject) bool {
	return (c.query.Namespace == "" || s.Namespace == c.query.Namespace) &&
		(c.query.Queue == "" || s.Queue == c.query.Queue)
}

func isPreemption(reason string) bool {
	return reason == string(unit.ReasonReclaimed) || reason == string(unit.ReasonPreemptedInQueue)
}

func stateOf(u *v1alpha1.QueueUnit) VictimState {
	switch phase := unit.Phase(u.Status.Phase); {
	case phase.Terminal():
		return VictimEnded
	case phase.Holds():
		return VictimResumed
	default:
		return VictimSuspended
	}
}

// evictionsOf a unit: each admission but the present or last one ended with an eviction, and that one also if the unit
// says so.
func evictionsOf(u *v1alpha1.QueueUnit) int64 {
	if meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionEvicted) {
		return u.Status.Attempts
	}
	return max(u.Status.Attempts-1, 0)
}

func subjectOf(u *v1alpha1.QueueUnit) Subject {
	s := Subject{Namespace: u.Namespace, Unit: u.Name, Job: JobOf(u), Queue: u.Spec.Queue}
	if e := u.Status.Effective; e != nil {
		s.Queue, s.Quota = cmp.Or(e.Queue, s.Queue), e.Quota
	}
	return s
}
