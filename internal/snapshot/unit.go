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

package snapshot

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

type unitSpec struct {
	Key             string      `json:"key"`
	UID             string      `json:"uid"`
	Queue           string      `json:"queue"`
	Quota           string      `json:"quota"`
	MovesTo         string      `json:"movesTo,omitempty"`
	Chosen          bool        `json:"chosen,omitempty"`
	Quotas          string      `json:"quotas,omitempty"`
	Priority        int32       `json:"priority,omitempty"`
	MaxPriority     int32       `json:"maxPriority,omitempty"`
	Created         time.Time   `json:"created,omitzero"`
	Request         amounts     `json:"request,omitempty"`
	Pods            int64       `json:"pods,omitempty"`
	Sizes           *sizes      `json:"sizes,omitempty"`
	NonPreemptible  bool        `json:"nonPreemptible,omitempty"`
	Inactive        bool        `json:"inactive,omitempty"`
	Consumer        consumer    `json:"consumer,omitzero"`
	ConsumerManaged bool        `json:"consumerManaged,omitempty"`
	OwnedByConsumer bool        `json:"ownedByConsumer,omitempty"`
	Unsuspendable   bool        `json:"unsuspendable,omitempty"`
	Misnamed        bool        `json:"misnamed,omitempty"`
	Adopting        bool        `json:"adopting,omitempty"`
	Adopted         bool        `json:"adopted,omitempty"`
	Phase           unit.Phase  `json:"phase"`
	Attempts        int64       `json:"attempts,omitempty"`
	Deactivate      unit.Reason `json:"deactivate,omitempty"`
	Observed        bool        `json:"observed,omitempty"`
	Quarantined     bool        `json:"quarantined,omitempty"`
	Held            amounts     `json:"held,omitempty"`
	HeldPods        int64       `json:"heldPods,omitempty"`
	Recorded        bool        `json:"recorded,omitempty"`
	RequeueAt       time.Time   `json:"requeueAt,omitzero"`
	Requeues        int64       `json:"requeues,omitempty"`
	Admitted        time.Time   `json:"admitted,omitzero"`
	MaxExecution    span        `json:"maximumExecution,omitempty"`
	Executed        span        `json:"executed,omitempty"`
	RanSince        time.Time   `json:"ranSince,omitzero"`
	GangGroup       string      `json:"gangGroup,omitempty"`
	Gangs           string      `json:"gangs,omitempty"`
	Preempts        string      `json:"preempts,omitempty"`
	Unpreemptable   bool        `json:"unpreemptable,omitempty"`
	Kept            bool        `json:"kept,omitempty"`
	Invalid         unit.Reason `json:"invalid,omitempty"`
}

type consumer struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// sizes of a unit that can be admitted with fewer pods. Fixed ones are whole, since the unit waits for its whole.
type sizes struct {
	Sets  []podSet `json:"sets"`
	Fixed bool     `json:"fixed,omitempty"`
}

type podSet struct {
	Count   int64   `json:"count"`
	Least   int64   `json:"least"`
	Request amounts `json:"request"`
}

func unitOf(u *unit.Unit) unitSpec {
	out := unitSpec{
		Key: u.Key, UID: u.UID, Queue: u.Queue, Quota: u.Quota, MovesTo: u.MovesTo, Chosen: u.Chosen, Quotas: u.Quotas,
		Priority: u.Priority, MaxPriority: u.MaxPriority, Created: u.Created.UTC(), Request: amountsOf(u.Request),
		Pods: u.Pods, Sizes: sizesOf(u.Sizes), NonPreemptible: u.NonPreemptible, Inactive: !u.Active,
		Consumer:        consumer{u.Consumer.Kind, u.Consumer.Namespace, u.Consumer.Name, u.Consumer.UID},
		ConsumerManaged: u.ConsumerManaged, OwnedByConsumer: u.OwnedByConsumer, Unsuspendable: u.Unsuspendable,
		Misnamed: u.Misnamed, Adopting: u.Adopting, Adopted: u.Adopted, Phase: u.Phase,
		Attempts: u.Attempts, Observed: u.Observed, Quarantined: u.Quarantined,
		Held: amountsOf(u.Held), HeldPods: u.HeldPods, Recorded: u.Recorded, RequeueAt: u.RequeueAt.UTC(),
		Requeues: u.Requeues, Admitted: u.Admitted.UTC(), MaxExecution: span(u.MaximumExecution),
		Executed: span(u.Executed), RanSince: u.RanSince.UTC(), GangGroup: u.GangGroup, Gangs: u.Gangs,
		Preempts: u.Preempts, Unpreemptable: u.Unpreemptable, Kept: u.Kept, Invalid: u.Invalid,
	}
	if u.Deactivate != nil {
		out.Deactivate = u.Deactivate.Reason
	}
	return out
}

func (u *unitSpec) read() *unit.Unit {
	out := &unit.Unit{
		Key: u.Key, UID: u.UID, Queue: u.Queue, Quota: u.Quota, MovesTo: u.MovesTo, Chosen: u.Chosen,
		Priority: u.Priority, MaxPriority: u.MaxPriority, Created: u.Created, Request: u.Request.list(), Pods: u.Pods,
		NonPreemptible: u.NonPreemptible, Active: !u.Inactive,
		Consumer: unit.Consumer{
			Kind: u.Consumer.Kind, Namespace: u.Consumer.Namespace, Name: u.Consumer.Name, UID: u.Consumer.UID,
		},
		ConsumerManaged: u.ConsumerManaged, OwnedByConsumer: u.OwnedByConsumer, Unsuspendable: u.Unsuspendable,
		Misnamed: u.Misnamed, Adopting: u.Adopting, Adopted: u.Adopted, Phase: u.Phase,
		Attempts: u.Attempts, Observed: u.Observed, Quarantined: u.Quarantined,
		Stated: unit.Stated{
			Held: u.Held.list(), HeldPods: u.HeldPods, Recorded: u.Recorded, RequeueAt: u.RequeueAt, Requeues: u.Requeues,
			Admitted: u.Admitted, MaximumExecution: time.Duration(u.MaxExecution), Executed: time.Duration(u.Executed),
			RanSince: u.RanSince, GangGroup: u.GangGroup, Gangs: u.Gangs, Quotas: u.Quotas, Sizes: u.Sizes.read(),
			Preempts: u.Preempts, Unpreemptable: u.Unpreemptable, Kept: u.Kept, Invalid: u.Invalid,
		},
	}
	if u.Deactivate != "" {
		out.Deactivate = &unit.Deactivation{Reason: u.Deactivate}
	}
	return out
}

func sizesOf(s *unit.Sizes) *sizes {
	if s == nil {
		return nil
	}
	out := &sizes{Fixed: s.Steps() == 0}
	for _, set := range s.Sets() {
		out.Sets = append(out.Sets, podSet{set.Count, set.Least, amountsOf(set.Request)})
	}
	return out
}

func (s *sizes) read() *unit.Sizes {
	if s == nil {
		return nil
	}
	var sets []unit.PodSetSize
	for _, set := range s.Sets {
		sets = append(sets, unit.PodSetSize{Count: set.Count, Least: set.Least, Request: resources.FromMap(set.Request)})
	}
	out := unit.NewSizes(sets)
	if s.Fixed {
		return out.Fixed()
	}
	return out
}
