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

package admission

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Consumer names the job behind a unit. The zero value means a unit without consumer.
type Consumer = owner.Consumer

// Quota is an observation of one level of the quota tree.
type Quota = capacity.Quota

// Expected is what is known of the pods of a unit that are still to come.
type Expected = ledger.Expected

// Unit is what the core needs to know of a QueueUnit; a value that is never changed after it was handed over.
type Unit struct {
	// Key is namespace/name, UID the object's UID.
	Key, UID string
	// Queue and Quota are the names that the unit resolved to; either may not exist (yet).
	Queue, Quota string
	// MovesTo is the quota that the object names, where it holds quota in another one; else empty. It has no effect on a
	// unit that waits.
	MovesTo  string
	Priority int32
	// Created is the enqueue time: metadata.creationTimestamp.
	Created time.Time
	// Request of the whole unit. Pods is the number of pods. Of a unit that was admitted with fewer pods than its whole
	// they are what it was admitted with.
	Request resources.List
	Pods    int64
	// Sizes in which it may be admitted, and is to be again when it loses its admission; nil is Request alone.
	Sizes *Sizes
	// Expected bounds what the unit holds beyond its pods, where its pods are known; see ledger.Expected.
	Expected Expected
	// NonPreemptible units draw on min only, on every level, beside the limit that all have. Once a unit holds quota that
	// stays as it is until it waits again.
	NonPreemptible bool
	// Active is spec.active (nil = true).
	Active bool
	// Consumer, and whether its kind is one that the controller manages: then it must be live (by UID).
	Consumer        Consumer
	ConsumerManaged bool
	// KindUnlisted: jobs of that kind could not be listed yet. That the consumer was not seen says nothing.
	KindUnlisted bool
	// OwnedByConsumer says that the unit's controller owner reference is its consumer: it wins over
	// other units of the same consumer.
	OwnedByConsumer bool
	// Unsuspendable: the kind of its consumer cannot be suspended, so that pods of it that are on nodes cannot be taken
	// away.
	Unsuspendable bool
	// Misnamed: its consumer is of a managed kind, whose unit has another name. It stands for no job.
	Misnamed bool
	// Adopting: born for a job that runs already; not decided, waits until its status says Running.
	Adopting bool
	// Phase, Attempts and Held (sum of status.admissions) as the API object has them.
	Phase    Phase
	Attempts int64
	Held     resources.List
	// HeldPods is the number of pods that Held is for. Recorded: the object says what is held, also where that is
	// nothing.
	HeldPods int64
	Recorded bool
	// Adopted: it was not admitted; its job ran before. It holds what Held says, also where that is nothing.
	Adopted bool
	// Admitted is when it was admitted last. Heartbeat is when whoever made a unit without consumer said last that it is
	// used; zero means never.
	Admitted, Heartbeat time.Time
	// Ready: all of its pods are, as the controller saw them. NotReadySince is when they were not any more; zero means
	// that they never were since it was admitted, or are.
	Ready         bool
	NotReadySince time.Time
	// MaximumExecution is for how long its job may run, in all its runs; zero means that it names no time. Executed is
	// for how long it ran before it was admitted last.
	MaximumExecution, Executed time.Duration
	// Requeue: not eligible before this time (TimeoutBackoff). Zero means none. Requeues counts how often in a row it
	// lost its admission to a timeout.
	RequeueAt time.Time
	Requeues  int64
	// GangGroup names all gangs that are to run together, sorted and joined by commas, and Gangs those of them that are
	// its own; both are empty for a unit that waits for no other.
	GangGroup, Gangs string
	// Labels are those of the object, as Config.Selects reads them.
	Labels string
	// Checks are the answers of the admission checks about what a unit holds; nil if it holds nothing or none was asked.
	Checks *CheckAnswers
	// TemplatesWritten: what admission checks asked to write into the pods of its job may be in their templates.
	TemplatesWritten bool
	// ResizePending is since when its object says that it waits for more than it holds; zero if it does not.
	ResizePending ordered.Moment
	// Said is what its object says of why it waits, or waits for more than it holds; nil if it says nothing.
	Said *Saying
	// Deactivate, when set, is why the unit is to be made inactive, which nobody has done yet. Until then it waits.
	Deactivate *Deactivation
	// Invalid, when set, parks the unit with this reason and message (could not be decoded, evaluated, ...).
	Invalid        Reason
	InvalidMessage string
	// Quarantined: to decide about it panicked. What it holds it keeps until its object says otherwise; no check is asked
	// whether it may. Invalid parks it while it waits.
	Quarantined bool
}

// Deactivation is why a unit is not to be tried again before its spec is changed, in a word and a sentence.
type Deactivation struct {
	Reason  Reason
	Message string
}

func (d *Deactivation) String() string { return string(d.Reason) + ": " + d.Message }

// Queue is what the core needs of a Queue object.
type Queue struct {
	Name     string
	Policy   string // Priority, FIFO, Block, Intelligent; anything else parks its units with UnknownPolicy
	Priority int32
	// Threshold of policy Intelligent.
	Threshold int32
	// Quotas that the queue accepts; nil accepts all.
	Quotas []string
	// AdmissionChecks that its units have to pass between reservation and release. Fault, when set, is why nothing new is
	// reserved in the queue: a check that nobody answers.
	AdmissionChecks []AdmissionCheck
	Fault           *Fault
	// Held: admit nothing new. Drains: and take back what is admitted, last what was admitted first.
	Held, Drains bool
	// MaxPending is how many units may be in line, of those that PerNamespace lets there; the others wait outside, at
	// their places. MaxAdmitted is how many may hold quota. Below zero is no bound.
	MaxPending, MaxAdmitted int32
	// HeartbeatTimeout is how long a unit without consumer keeps what it holds after its last heartbeat; zero means for
	// ever.
	HeartbeatTimeout time.Duration
	// Timeouts of its units; nil means those of Config.
	Timeouts *Timeouts
	// Execution bounds for how long their jobs run.
	Execution ExecutionTimes
	// MostEvictions is how often in a row a unit may lose its admission to a timeout: the last one has it made inactive.
	// Zero is no bound.
	MostEvictions int64
	// PerNamespace bounds the units of each namespace; nil means no bounds.
	PerNamespace *NamespaceBounds
}

// Fault is why nothing new is reserved in a queue, in a word and a sentence.
type Fault struct {
	Reason  Reason
	Message string
}

// NamespaceBounds are for the units of one namespace in one queue. What is below zero is no bound.
type NamespaceBounds struct {
	// MaxPending is how many of them may be in line; the others wait outside, at their places.
	MaxPending int32
	// MaxAdmitted is how many of them may hold quota.
	MaxAdmitted int32
}

// Pod is one existing, non-terminal pod of a unit.
type Pod struct {
	// UID of the pod; Quota that Koordinator charges it to.
	UID, Quota     string
	Request        resources.List
	NonPreemptible bool
	// Assigned: counted in Koordinator's used. Held: its job is marked as suspended, so that it is not let go.
	Assigned, Held bool
	// Former: it is left of a job that had the name of its unit before.
	Former bool
	// Leaving: it is being deleted, since a time. It is charged until it is gone; for a while, see replacementGrace, it is
	// not one of those that its unit may have.
	Leaving      bool
	LeavingSince time.Time
}

func (p Pod) inLedger(now time.Time) ledger.Pod {
	late := p.late(now)
	return ledger.Pod{
		UID: p.UID, Level: p.Quota, Request: p.Request, NonPreemptible: p.NonPreemptible,
		Leaving: p.Leaving && !late, Late: late, Held: p.Held, Former: p.Former,
	}
}

// Config of the core. The zero value of a field that may be empty means the built-in behaviour.
type Config struct {
	// ExplainAfter is how long a unit must wait before its reason is worth a status write. ExplainEvery is the least time
	// between two such writes of one unit.
	ExplainAfter, ExplainEvery time.Duration
	// RefusedBackoff is how long a unit is parked after a definite refusal of its status write. It doubles
	// with every refusal in a row, up to 32 times.
	RefusedBackoff time.Duration
	// Timeouts of units whose queue has none of its own.
	Timeouts Timeouts
	// ClaimTimeout is for how long the first unit of a blocking queue may claim what others would use meanwhile. Zero
	// means until it is admitted.
	ClaimTimeout time.Duration
	// Policies adds to or replaces the built-in policies, by name.
	Policies map[string]queue.Factory
	// PartialAdmission has units admitted in less than the whole where their Sizes allow it.
	PartialAdmission bool
	// Order of the queues; nil is FairOrder.
	Order QueueOrder
	// Selects says whether the selector of an admission check picks a unit of these labels; nil picks all.
	Selects func(selector, labels string) bool
	// Checks are filters of extensions. A unit is admitted only when all of them pass.
	Checks []Check
}

// Check is a filter of an extension. Key must be a function of the unit alone, and Check as well until Recheck is
// called.
type Check interface {
	// Key is equal for units that Check answers alike. It keeps the cost of a decision independent of the
	// number of waiting units; a check that returns the key of the unit has its units examined one by one.
	Key(u Unit) string
	// Check returns the reason why the unit must not be admitted and a sentence, or an empty reason.
	// A unit that is stopped claims nothing, also in a blocking queue.
	Check(u Unit) (Reason, string)
}
