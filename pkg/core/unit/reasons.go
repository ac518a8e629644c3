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
	"strconv"
	"strings"
)

// Reason is a stable CamelCase word: condition reason, metric label and event reason.
type Reason string

// Reasons why a unit is not admitted.
const (
	ReasonQuotaExceeded Reason = "QuotaExceeded" // used + outstanding + request > limit on some level
	ReasonMinExceeded   Reason = "MinExceeded"   // non-preemptible request above what is left of min
	ReasonBlockedByHead Reason = "BlockedByHead" // fits, but a unit ahead in a blocking queue claims it
	ReasonExceedsMax    Reason = "ExceedsMax"    // can never fit: above max of a level
	ReasonExceedsMin    Reason = "ExceedsMin"    // non-preemptible, can never fit: above min of a level
	// ReasonExceedsGuaranteedShare: more than its quota can get while all others use what they are guaranteed.
	ReasonExceedsGuaranteedShare Reason = "ExceedsGuaranteedShare"
	ReasonUnknownQueue           Reason = "UnknownQueue"
	ReasonUnknownQuota           Reason = "UnknownQuota"
	ReasonQuotaNotNamed          Reason = "QuotaNotNamed"   // its quota is not for queueing
	ReasonQuotaNotInQueue        Reason = "QuotaNotInQueue" // the queue lists the quotas that it accepts; this is none
	ReasonUnknownPolicy          Reason = "UnknownPolicy"
	ReasonInvalidRequest         Reason = "InvalidRequest" // negative, absurd or undecodable
	ReasonNoPods                 Reason = "NoPods"         // neither a request nor pods
	ReasonConsumerNotFound       Reason = "ConsumerNotFound"
	ReasonKindNotListed          Reason = "KindNotListed" // jobs of its kind could not be listed yet
	ReasonConsumerUIDMismatch    Reason = "ConsumerUIDMismatch"
	ReasonConsumerOtherNamespace Reason = "ConsumerOtherNamespace"
	ReasonDuplicateUnit          Reason = "DuplicateUnit" // another unit stands for the same consumer
	ReasonInactive               Reason = "Inactive"
	ReasonQueueHeld              Reason = "QueueHeld"
	ReasonQueueDrained           Reason = "QueueDrained"
	ReasonQueueFull              Reason = "QueueFull"        // maxAdmitted of the queue
	ReasonQueueOverflow          Reason = "QueueOverflow"    // maxPending of the queue, or of it for the namespace
	ReasonNoNodeFits             Reason = "NoNodeFits"       // no nodes even after it takes quota of others
	ReasonHeldByOthers           Reason = "HeldByOthers"     // may take quota of others, but cannot now
	ReasonReclaimed              Reason = "Reclaimed"        // the owner of a min takes back what the unit borrowed
	ReasonPreemptedInQueue       Reason = "PreemptedInQueue" // a unit of higher priority in its queue gets what it held
	ReasonBackoff                Reason = "Backoff"
	ReasonAdopting               Reason = "Adopting"
	ReasonWriteRefused           Reason = "WriteRefused"  // the API server refuses the status write
	ReasonInternalError          Reason = "InternalError" // a check panicked; the unit is parked, others go on
	ReasonPending                Reason = "Pending"       // not examined yet
	ReasonUnknownPhase           Reason = "UnknownPhase"  // a phase of another version
	ReasonUnschedulable          Reason = "Unschedulable" // no pod of it came on a node in time
	ReasonIdleReservation        Reason = "IdleReservation"
	ReasonPodsChargedElsewhere   Reason = "PodsChargedElsewhere" // pods of it are charged to another quota, and wait
	ReasonPodsHeldBySuspension   Reason = "PodsHeldBySuspension" // pods of it are held: its job is marked as suspended
	ReasonQuotaChanged           Reason = "QuotaChanged"         // the unit names another quota than it holds quota in
	ReasonNoHeartbeat            Reason = "NoHeartbeat"          // nobody said in time that the unit is used
	ReasonPodsReadyTimeout       Reason = "PodsReadyTimeout"     // not all of its pods were ready in time
	ReasonRecoveryTimeout        Reason = "RecoveryTimeout"      // nor were they again after one of them was not
	ReasonMaximumExecutionTime   Reason = "MaximumExecutionTimeExceeded"
	ReasonCheckRetry             Reason = "CheckRetry"                // an admission check has it tried again later
	ReasonCheckRejected          Reason = "CheckRejected"             // an admission check does not let it go as it is
	ReasonCheckConflict          Reason = "CheckConflict"             // checks want contradictory values
	ReasonCheckTimeout           Reason = "CheckTimeout"              // a check did not answer in time
	ReasonCheckNotFound          Reason = "CheckNotFound"             // its queue names a check that does not exist
	ReasonCheckInactive          Reason = "CheckInactive"             // its queue names a check that nobody answers
	ReasonWaitingForChecks       Reason = "WaitingForAdmissionChecks" // some checks have not answered
	ReasonChecksChanged          Reason = "ChecksChanged"             // its queue asks for a check that was not asked
	ReasonCheckNeeded            Reason = "CheckNeeded"               // its request exceeds the one that checks answered
	ReasonWaitingForGroup        Reason = "WaitingForGroup"           // a job of its gang group cannot be admitted
	ReasonRestoring              Reason = "RestoringTemplates"        // pod templates have updates of former checks
	ReasonRequeueLimitReached    Reason = "RequeueLimitReached"       // timeouts took its admission too often in a row
)

// Notice says that the reason is what is wrong with an admitted unit that goes on, and not why it waits for more.
func (r Reason) Notice() bool {
	return r == ReasonPodsChargedElsewhere || r == ReasonPodsHeldBySuspension || r == ReasonQuotaChanged
}

// OfPods says that the reason is about the pods of an admitted unit. The code that follows them says when it is over.
func (r Reason) OfPods() bool { return r == ReasonIdleReservation || r == ReasonUnschedulable }

// JobIsGone says that the job of the unit does not exist, or is being deleted.
func (r Reason) JobIsGone() bool {
	return r == ReasonConsumerNotFound || r == ReasonConsumerUIDMismatch
}

// Finding is why a unit is pending, in a form that stays true until the answer changes. It has the reason and, for a
// shortage, the level of the quota tree and the resource.
type Finding struct {
	Reason          Reason
	Level, Resource string
}

// Quoted are names in a sentence.
func Quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(name)
	}
	return strings.Join(out, ", ")
}
