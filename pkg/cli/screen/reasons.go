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

package screen

// helps says for each reason what a person can do.
var helps = map[string]string{
	"QuotaExceeded":                "Wait until jobs that hold this quota end, or ask for more quota.",
	"MinExceeded":                  "Wait until non-preemptible jobs end, or make the job preemptible.",
	"BlockedByHead":                "Wait until the unit ahead is admitted. Policy Priority does not block.",
	"ExceedsMax":                   "Waiting does not help. Make the job smaller, or ask for a larger max.",
	"ExceedsMin":                   "Waiting does not help. Make the job smaller or preemptible, or ask for a larger min.",
	"UnknownQueue":                 "Correct the queue name of the job, or create the Queue.",
	"UnknownQuota":                 "Correct the quota label of the job, or create the ElasticQuota.",
	"QuotaNotNamed":                "Put the label quota.scheduling.koordinator.sh/name on the job.",
	"QuotaNotInQueue":              "Choose another queue or quota. An operator can add the quota to the queue.",
	"UnknownPolicy":                "Ask the operator to correct the policy of the queue.",
	"InvalidRequest":               "Correct the resource requests of the job.",
	"NoPods":                       "Give the job at least one pod, or the unit a request.",
	"ConsumerNotFound":             "Delete the QueueUnit if its job is gone.",
	"ConsumerUIDMismatch":          "Delete the QueueUnit. The controller creates one for the new job.",
	"ConsumerOtherNamespace":       "Delete the QueueUnit. A unit stands for a job of its own namespace.",
	"DuplicateUnit":                "Delete this QueueUnit. Another one stands for the job.",
	"KindNotListed":                "Wait, or ask the operator to install the kind and its rights.",
	"Inactive":                     "An operator sets spec.active of the QueueUnit to true, after the cause is mended.",
	"QueueHeld":                    "Wait until the operator of the queue starts it again.",
	"QueueDrained":                 "Wait until the operator of the queue starts it again.",
	"QueueFull":                    "Wait until a unit of the queue ends. The queue bounds the admitted units.",
	"QueueOverflow":                "Wait. The queue bounds the pending units; the unit joins them at its position.",
	"Backoff":                      "Wait. The unit is retried by itself.",
	"Adopting":                     "Wait. The controller marks the running job.",
	"WriteRefused":                 "Ask the operator. The message has the words of the API server.",
	"InternalError":                "Report it with the log of the scheduler, and change or recreate the job.",
	"Pending":                      "Wait. The scheduler has not examined the unit yet.",
	"UnknownPhase":                 "Ask the operator to upgrade, or correct the status of the QueueUnit.",
	"Unschedulable":                "Read the events of the pods: no node takes them. Correct selectors or size.",
	"IdleReservation":              "Read the events of the job: nothing creates its pods.",
	"PodsChargedElsewhere":         "Put the quota label on the pod template, and delete the pods that lack it.",
	"PodsHeldBySuspension":         "Ask the operator whether jobqueue-controller runs.",
	"QuotaChanged":                 "Restore the former quota label, or suspend the job to wait for the other quota.",
	"NoHeartbeat":                  "Renew the annotation koord-queue/heartbeat of the QueueUnit.",
	"PodsReadyTimeout":             "Read the events of the pods: not all of them became ready in time.",
	"RecoveryTimeout":              "Read the events of the pods: not all of them became ready again in time.",
	"MaximumExecutionTimeExceeded": "Give the job more time, and ask an operator to activate the QueueUnit.",
	"CheckRetry":                   "Wait. The message has the words of the admission check.",
	"CheckRejected":                "Mend what the admission check says. Then an operator activates the QueueUnit.",
	"CheckConflict":                "Ask the operators of the admission checks: they want different values in the pods.",
	"CheckTimeout":                 "Ask the operator of the admission check that has not answered.",
	"CheckNotFound":                "Ask the operator of the queue: it names an admission check that does not exist.",
	"CheckInactive":                "Ask the operator of the queue: nothing answers one of its admission checks.",
	"WaitingForAdmissionChecks":    "Wait for the checks that are Pending.",
	"ChecksChanged":                "Wait. The checks are asked again.",
	"CheckNeeded":                  "Suspend the job to have it admitted with its new size. It keeps its old size.",
	"WaitingForGroup":              "Create the missing jobs of the gang group, or mend those that cannot be admitted.",
	"RestoringTemplates":           "Wait until the former pods of the job are gone.",
	"RequeueLimitReached":          "Mend what keeps the pods from running. Then an operator activates the QueueUnit.",
	// Written by the controller.
	"HeldByOwner":             "Remove the annotation koord-queue/hold from the job.",
	"SuspendedByOwner":        "Set spec.suspend of the job to false.",
	"EstimateChanged":         "Wait. The request of the job is estimated again.",
	"UnsupportedJob":          "Change the job as the message says.",
	"OtherScheduler":          "Name koord-scheduler in the pod templates of the job.",
	"QuotaMismatch":           "Name one quota: job and pod templates name different ones.",
	"OutsideOfQueueNamespace": "Create the Queue in the queue namespace.",
}

// whatHelps returns "" for a reason of another version.
func whatHelps(reason string) string { return helps[reason] }
