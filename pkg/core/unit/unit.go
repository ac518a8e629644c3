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
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Unit is what the core needs to know of a QueueUnit; a value that is never changed after it was handed over.
type Unit struct {
	// Key is namespace/name, UID the object's UID.
	Key, UID string
	// Queue and Quota are the names that the unit resolved to; either may not exist (yet).
	Queue, Quota string
	// MovesTo is the quota that the object names, where it holds quota in another one; else empty. It has no effect on a
	// unit that waits. Chosen: the unit was admitted in another quota of its list than the first, and stays there.
	MovesTo  string
	Chosen   bool
	Priority int32
	// MaxPriority bounds the priority with which it preempts others, and others preempt it: its namespace says
	// how much. Priority alone is for the order.
	MaxPriority int32
	// Created is the enqueue time: metadata.creationTimestamp.
	Created time.Time
	// Request of the whole unit. Pods is the number of pods. Of a unit that was admitted with fewer pods than its whole
	// they are what it was admitted with.
	Request resources.List
	Pods    int64
	// Expected bounds what the unit holds beyond its pods, where its pods are known; see ledger.Expected.
	Expected Expected
	// NonPreemptible units draw on min only, on every level, in addition to the limit that all have. Once a unit holds
	// quota that stays as it is until it waits again.
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
	// Phase and Attempts as the API object has them.
	Phase    Phase
	Attempts int64
	// Adopted: it was not admitted; its job ran before. It holds what Held says, also where that is nothing.
	Adopted bool
	// Ready: all of its pods are, as the controller saw them. NotReadySince is when they were not any more; zero means
	// that they never were since it was admitted, or are.
	Ready         bool
	NotReadySince time.Time
	// Labels are those of the object, as Config.Selects reads them.
	Labels string
	// Checks are the answers of the admission checks about what a unit holds; nil if it holds nothing or none was asked.
	Checks *CheckAnswers
	// TemplatesWritten: what admission checks asked to write into the pods of its job may be in their templates.
	TemplatesWritten bool
	// ResizePending is since when its object says that it waits for more than it holds; zero if it does not.
	ResizePending ordered.Moment
	// Said is the written reason of a unit that waits, or waits for growth; nil for none.
	Said *Saying
	// Deactivate, when set, is why the unit must be made inactive, which nobody has done yet. Until then it waits.
	Deactivate *Deactivation
	// Observed: it is decided about and told, and nobody acts on that. Its pods run, and it holds nothing.
	Observed bool
	// Quarantined: a decision about the unit panicked. It keeps its held quota until its object changes, and no check is
	// asked. While it waits, Invalid parks it.
	Quarantined bool

	Stated
}

// Stated is what the object of a unit says and rules read as it says so, where most objects say nothing.
type Stated struct {
	// Held is the sum of status.admissions, and HeldPods the number of pods that it is for. Recorded: the object says what
	// is held, also where that is nothing.
	Held     resources.List
	HeldPods int64
	Recorded bool
	// RequeueAt: not eligible before this time (TimeoutBackoff); zero means none. Requeues counts how often in a row it
	// lost its admission to a timeout.
	RequeueAt time.Time
	Requeues  int64
	// Admitted is when it was admitted last. Heartbeat is when the creator of a unit without consumer last said that the
	// unit is used; zero means never.
	Admitted, Heartbeat time.Time
	// MaximumExecution is for how long its job may run, in all its runs; zero means that it names no time. Executed is
	// for how long it ran before it was admitted last.
	MaximumExecution, Executed time.Duration
	// RanSince is when all pods of its job were ready for the first time since it was admitted; zero if they were not yet.
	RanSince time.Time
	// GangGroup names all gangs that run together, sorted and joined by commas, and Gangs the unit's own among them. Both
	// are empty for a unit that waits for no other.
	GangGroup, Gangs string
	// Quotas are those in which it may be admitted, in order, its own first, joined by commas; empty for its own alone.
	Quotas string
	// Sizes in which it may be admitted, the first time and again after it loses its admission; nil is Request alone.
	Sizes *Sizes
	// Preempts are the holds of its victims while it waits, by the rules of package reclaim; empty for none.
	Preempts string
	// Unpreemptable: it asks that nobody preempts it. Kept: it asked before it was admitted, and its queue let
	// it.
	Unpreemptable, Kept bool
	// Invalid, when set, parks the unit with this reason and message (could not be decoded, evaluated, ...).
	Invalid        Reason
	InvalidMessage string
}

// Hold names what the unit holds by its present admission, or the last one. Another admission of it is another hold.
func (in *Unit) Hold() string { return in.UID + "/" + strconv.FormatInt(in.Attempts, 10) }

// PreemptionPriority is that with which the unit preempts others, and with which others preempt it.
func (in *Unit) PreemptionPriority() int32 { return min(in.Priority, in.MaxPriority) }

// Deactivation is why a unit is not to be tried again before its spec is changed, in a word and a sentence.
type Deactivation struct {
	Reason  Reason
	Message string
}

func (d *Deactivation) String() string { return string(d.Reason) + ": " + d.Message }

// Move has a unit that holds nothing any more ask for the quota that its object names.
func (in *Unit) Move() {
	if in.MovesTo != "" {
		in.Quota, in.MovesTo, in.Chosen = in.MovesTo, "", false
	}
}

// Choose has a unit that waits be admitted in another quota than its own; an empty name is its own.
func (in *Unit) Choose(quota string) {
	if quota != "" {
		in.MovesTo, in.Quota, in.Chosen = in.Quota, quota, true
	}
}

// Leaves says that a unit that holds quota names another one now, and not just the first of a list that it has.
func (in *Unit) Leaves() bool { return in.MovesTo != "" && !in.Chosen }

// Namespace of the unit.
func (in *Unit) Namespace() string {
	namespace, _, found := strings.Cut(in.Key, "/")
	if !found {
		return ""
	}
	return namespace
}

// InNamespace says whether the key of a unit is of this namespace.
func InNamespace(key, namespace string) bool {
	of, _, found := strings.Cut(key, "/")
	return found && of == namespace
}

// SameJob says that two states of a unit mean the same job.
func (in *Unit) SameJob(o *Unit) bool {
	return in.Consumer == o.Consumer && in.ConsumerManaged == o.ConsumerManaged
}

// Wants is the amount that an admitted unit holds: that of its object, or its whole request without one. An observed
// unit holds nothing.
func (in *Unit) Wants() resources.List {
	if in.Observed {
		return resources.List{}
	}
	if in.SaysHeld() || in.Adopted {
		return in.Held
	}
	return in.Request
}

// SaysHeld says that the object of an admitted unit tells what it holds.
func (in *Unit) SaysHeld() bool { return in.Recorded || in.Held.Len() > 0 }

// SetHeld makes the unit hold this much for so many pods, as its object says.
func (in *Unit) SetHeld(held resources.List, pods int64) {
	in.Held, in.HeldPods, in.Recorded, in.ResizePending = held, pods, true, 0
}

// SetNothingHeld is what an object of a unit that waits says.
func (in *Unit) SetNothingHeld() {
	in.Held, in.HeldPods, in.Recorded, in.ResizePending = resources.List{}, 0, false, 0
}

// Same says whether both say the same. It looks at all fields, so that a new one is compared as well.
func (in *Unit) Same(o *Unit) bool {
	return sameFacts(reflect.ValueOf(in).Elem(), reflect.ValueOf(o).Elem())
}

func sameFacts(a, b reflect.Value) bool {
	for i := range a.NumField() {
		if !sameFact(a.Field(i).Addr().Interface(), b.Field(i)) {
			return false
		}
	}
	return true
}

// sameFact compares a field, by its address, with that of another unit.
func sameFact(field any, other reflect.Value) bool {
	o := other.Addr().Interface()
	switch a := field.(type) {
	case *Stated:
		return sameFacts(reflect.ValueOf(a).Elem(), other)
	case *time.Time:
		return a.Equal(*o.(*time.Time))
	case *resources.List:
		return a.Same(*o.(*resources.List))
	case *Expected:
		return a.Same(*o.(*Expected))
	case **Sizes:
		return (*a).Same(*o.(**Sizes))
	case **CheckAnswers:
		return (*a).Same(*o.(**CheckAnswers))
	case **Deactivation:
		return SamePointee(*a, *o.(**Deactivation))
	case **Saying:
		return SamePointee(*a, *o.(**Saying))
	default:
		return reflect.ValueOf(field).Elem().Equal(other)
	}
}

// SamePointee says that both are nil, or point to the same value.
func SamePointee[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Least is what a unit that waits has to get.
func (in *Unit) Least() resources.List {
	if in.Sizes == nil {
		return in.Request
	}
	return in.Sizes.least
}

// Become makes the unit ask for this much.
func (in *Unit) Become(request resources.List, pods int64) { in.Request, in.Pods = request, pods }

// BecomeWhole is what a unit is again that lost its admission.
func (in *Unit) BecomeWhole() {
	if in.Sizes != nil {
		in.Become(in.Sizes.At(0))
	}
}

// Saying is the reason of a pending unit in the form that its object has: a code and a sentence. The sentence has no
// amounts, so it stays true until the reason, the level or the resource changes. Explain has the amounts. The owner of
// the unit reads a Saying, so it names no unit of another namespace. An empty reason says that the unit waits for
// nothing.
type Saying struct {
	Reason  Reason
	Message string
}

// longestSaying bounds a message, in bytes.
const longestSaying = 1024

// Say makes a saying, and cuts a message that is too long.
func Say(reason Reason, message string) *Saying {
	if len(message) > longestSaying {
		message = strings.ToValidUTF8(message[:longestSaying], "") + "..."
	}
	return &Saying{Reason: reason, Message: message}
}
