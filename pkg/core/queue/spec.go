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

package queue

import (
	"reflect"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Spec is what the core needs of a Queue object.
type Spec struct {
	Name     string
	Policy   string // Priority, FIFO, Block, Intelligent; anything else parks its units with UnknownPolicy
	Priority int32
	// Threshold of policy Intelligent.
	Threshold int32
	// Quotas that the queue accepts; nil accepts all.
	Quotas []string
	// Lists are quotas for units without a list of their own whose quota is the first of these. Such a unit may be
	// admitted in each of them, in order.
	Lists []string
	// AdmissionChecks that its units have to pass between reservation and release. Fault, when set, is why nothing new is
	// reserved in the queue: a check that nobody answers.
	AdmissionChecks []AdmissionCheck
	Fault           *Fault
	// Held: admit nothing new. Drains: in addition evict admitted units, the last one first.
	Held, Drains bool
	// MaxPending is how many units may be in line, of those that PerNamespace lets there; the others wait outside, at
	// their places. MaxAdmitted is how many may hold quota. Below zero is no bound.
	MaxPending, MaxAdmitted int32
	// HeartbeatTimeout is how long a unit without consumer keeps what it holds after its last heartbeat. Zero is no bound.
	HeartbeatTimeout time.Duration
	// Timeouts of its units; nil means those of Config.
	Timeouts *Timeouts
	// Execution bounds for how long their jobs run.
	Execution ExecutionTimes
	// MostEvictions is how often in a row a unit may lose its admission to a timeout: the last one has it made inactive.
	// Zero is no bound.
	MostEvictions int64
	// Preemption says whom its units preempt, and when they are victims.
	Preemption Preemption
	// PerNamespace bounds the units of each namespace; nil means no bounds.
	PerNamespace *NamespaceBounds
}

// Same says whether both say the same.
func (q *Spec) Same(o *Spec) bool { return reflect.DeepEqual(q, o) }

// SameOrder says that units of the queue have the same places, and are decided with the same others, with both.
func (q *Spec) SameOrder(o *Spec) bool {
	return q.Policy == o.Policy && q.Threshold == o.Threshold && q.MaxPending == o.MaxPending &&
		q.Preemption.ComparesPriorities() == o.Preemption.ComparesPriorities() && slices.Equal(q.Lists, o.Lists) &&
		reflect.DeepEqual(q.PerNamespace, o.PerNamespace)
}

// Victims are the units that one may preempt.
type Victims uint8

// The victims: nobody, those of lower priority, or any.
const (
	VictimsNone Victims = iota
	VictimsOfLowerPriority
	VictimsAny
)

// Preemption says whom the units of a queue preempt, and when they are victims.
type Preemption struct {
	// Reclaim is of what others hold beyond their min, as far as the quota of the unit is within its own. WithinQueue is
	// of what units of the same queue hold.
	Reclaim, WithinQueue Victims
	// MinRunTime is for how long a unit keeps what it holds, from its admission. Protected: none is ever a victim.
	// Adopted: also those that ran before they were queued are.
	MinRunTime         time.Duration
	Protected, Adopted bool
	// Keeps: a unit that asked for it before its admission is never a victim.
	Keeps bool
	// DryRun: its units are only told what they would preempt.
	DryRun bool
}

// DefaultMinRunTime is the MinRunTime of a queue that names none. So who has jobs suspended again and again, for
// something that never runs, costs others a part of their work and not all of it.
const DefaultMinRunTime = time.Minute

// MostMinRunTime bounds the MinRunTime of a queue, so that a loan is not a gift. The schema of Queue bounds it as well.
const MostMinRunTime = time.Hour

// PreemptsNothing says that a unit of the queue preempts nobody.
func (p *Preemption) PreemptsNothing() bool {
	return p.Reclaim == VictimsNone && p.WithinQueue == VictimsNone
}

// ComparesPriorities says that a unit of the queue preempts units of lower priority.
func (p *Preemption) ComparesPriorities() bool {
	return p.Reclaim == VictimsOfLowerPriority || p.WithinQueue == VictimsOfLowerPriority
}

// Fault is why nothing new is reserved in a queue, in a word and a sentence.
type Fault struct {
	Reason  unit.Reason
	Message string
}

// NamespaceBounds bound the units of one namespace in one queue. A negative number is no bound.
type NamespaceBounds struct {
	// MaxPending is how many of them may be in line; the others wait outside, at their places.
	MaxPending int32
	// MaxAdmitted is how many of them may hold quota.
	MaxAdmitted int32
}

// Timeouts are for how long a unit of a managed job may keep what it holds. Zero is no bound.
type Timeouts struct {
	// Idle is without any pod, Unbound without a pod on a node.
	Idle, Unbound time.Duration
	// PodsReady bounds the time from the admission until all pods are ready for the first time. Recovery bounds the time
	// after they stop being ready.
	PodsReady, Recovery time.Duration
}

// ExecutionTimes bound for how long the jobs of a queue run, in all their runs together. Default is for a unit that
// names no time, Most is the longest that one may name, or have by default. Zero means no bound.
type ExecutionTimes struct {
	Default, Most time.Duration
}

// Limit is for how long a job may run that names a time; zero is no bound, and names none.
func (e ExecutionTimes) Limit(named time.Duration) time.Duration {
	if named <= 0 {
		named = e.Default
	}
	if e.Most > 0 && (named <= 0 || named > e.Most) {
		return e.Most
	}
	return named
}

// AdmissionCheck is one that units of a queue have to pass.
type AdmissionCheck struct {
	Name string
	// Selector picks the units by their labels, as Config.Selects reads it; empty picks all.
	Selector string
	// Timeout is for how long a unit waits for the answer. Zero is no bound.
	Timeout time.Duration
	// Foreseen: the answer is asked for before a unit preempts, as if its victims were gone. A unit with a check of which
	// that is not so preempts nobody.
	Foreseen bool
}
