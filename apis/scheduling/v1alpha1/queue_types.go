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

package v1alpha1

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// QueuePolicy names the order of units of a queue, and the rule for units behind one that does not fit. It is one of
// the names below, or one that the builder of the scheduler has registered.
//
// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
// +kubebuilder:validation:MaxLength=63
type QueuePolicy string

// policyName is the pattern above; a name is also the value of a label.
var policyName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// WellFormed says whether the API server would accept the name.
func (p QueuePolicy) WellFormed() bool {
	return len(p) <= validation.LabelValueMaxLength && policyName.MatchString(string(p))
}

// The policies that every scheduler knows.
const (
	// PolicyPriority orders by priority, then enqueue time; units behind one that does not fit may pass.
	PolicyPriority QueuePolicy = "Priority"
	// PolicyFIFO orders by enqueue time; nothing passes the head on capacity that it waits for.
	PolicyFIFO QueuePolicy = "FIFO"
	// PolicyBlock orders as Priority and blocks as FIFO.
	PolicyBlock QueuePolicy = "Block"
	// PolicyIntelligent orders as Priority; units at or above the threshold of
	// AnnotationPriorityThreshold block, units below may be passed.
	PolicyIntelligent QueuePolicy = "Intelligent"
)

// StopPolicy stops a queue.
//
// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
type StopPolicy string

const (
	// StopNone lets the queue admit.
	StopNone StopPolicy = "None"
	// StopHold admits nothing new; what is admitted goes on.
	StopHold StopPolicy = "Hold"
	// StopHoldAndDrain admits nothing new and evicts admitted units, the last admitted first. Their jobs are suspended and
	// wait at their positions. Pods that nobody can remove stay: those of Deployments, StatefulSets and LeaderWorkerSets,
	// and those without an owner.
	StopHoldAndDrain StopPolicy = "HoldAndDrain"
)

// OwnerSuspendPolicy is what becomes of a job that somebody else than the queue suspends while it is admitted.
//
// +kubebuilder:validation:Enum=Hold;Requeue
type OwnerSuspendPolicy string

const (
	// OwnerSuspendHold has it wait at its place and hold nothing, until its owner lets it go on.
	OwnerSuspendHold OwnerSuspendPolicy = "Hold"
	// OwnerSuspendRequeue has it wait in its turn: for tools that apply spec.suspend: true again and again.
	OwnerSuspendRequeue OwnerSuspendPolicy = "Requeue"
)

// QueueAdmissionCheck names an admission check and the units that it applies to.
type QueueAdmissionCheck struct {
	// name of the AdmissionCheck.
	// +kubebuilder:validation:MaxLength=316
	Name string `json:"name"`
	// labelSelector selects the QueueUnits, by their labels, that the check applies to; absent selects all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// timeoutSeconds is the time in seconds for which a unit waits for the answer with its quota reserved. After that the
	// unit gives the quota back and is retried after a minute, later each time, at its position. 0: without limit.
	// Absent: the time in spec.timeouts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// QueueQuota is a quota in which jobs of a queue may be admitted.
type QueueQuota struct {
	// name of the ElasticQuota.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// nodeSelector is added to pods of jobs that are admitted in the quota. It names the nodes that the quota is for.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// QueueSpec is what the owner of a queue asks for.
type QueueSpec struct {
	// queuePolicy orders the queue: Priority (default), FIFO, Block, Intelligent, or one that the scheduler was built
	// with. The condition Active is False with reason UnknownPolicy while the scheduler does not know it, and units wait.
	// +optional
	// +kubebuilder:default=Priority
	QueuePolicy QueuePolicy `json:"queuePolicy,omitempty"`
	// priority of this queue against others; a higher one is served first.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// priorityClassName gives the priority when priority is absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// quotas in which jobs may be admitted, in order, that list none and whose quota is the first of these. The queue
	// accepts each.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Quotas []QueueQuota `json:"quotas,omitempty"`
	// admissionChecks that units must pass after their quota is reserved and before their pods may go. Each is an
	// AdmissionCheck of Kueue's API whose controller answers QueueUnits. While one does not exist or is not active,
	// nothing new is reserved in the queue.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	AdmissionChecks []QueueAdmissionCheck `json:"admissionChecks,omitempty"`
	// stopPolicy holds the queue: None; Hold, which admits nothing new; or HoldAndDrain, which also takes back what is
	// admitted and can be suspended.
	// +optional
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`
	// onOwnerSuspend is the rule for an admitted job that its owner suspends. In both cases it gives its quota back.
	// Hold (default): it stays on hold until the owner sets suspend to false or the annotation koord-queue/hold=false.
	// Requeue: it waits at its position.
	// +optional
	OnOwnerSuspend *OwnerSuspendPolicy `json:"onOwnerSuspend,omitempty"`
	// maxPending is the greatest number of units that are in line, of those that perNamespace lets there. Those beyond it,
	// in the order of the queue, wait outside with reason QueueOverflow, and come into line at their places.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxPending *int32 `json:"maxPending,omitempty"`
	// maxAdmitted is the greatest number of units that may be admitted at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxAdmitted *int32 `json:"maxAdmitted,omitempty"`
	// heartbeatTimeoutSeconds is the time in seconds for which a unit keeps its quota without a sign of life. It is for
	// units without a job of a managed kind. Signs are the time in the annotation koord-queue/heartbeat, the admission
	// and the last pod. A unit with pods on nodes keeps its quota. Absent: no heartbeat is expected.
	// +optional
	// +kubebuilder:validation:Minimum=10
	HeartbeatTimeoutSeconds *int32 `json:"heartbeatTimeoutSeconds,omitempty"`
	// timeouts of the queue's units; one that is absent is as the scheduler is configured.
	// +optional
	Timeouts *QueueTimeouts `json:"timeouts,omitempty"`
	// backoffLimit is how often in a row a unit that lost its admission to a time-out is tried again. The next time it is
	// made inactive, with reason RequeueLimitReached. Absent is no bound: an outage must not deactivate jobs.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// waitObjectiveSeconds is the longest time in seconds that a unit should wait, such as 3600. It serves the alert
	// JobqueueWaitTooLong alone.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	WaitObjectiveSeconds *int32 `json:"waitObjectiveSeconds,omitempty"`
	// executionTime bounds for how long jobs of the queue run.
	// +optional
	ExecutionTime *ExecutionTime `json:"executionTime,omitempty"`
	// preemption is from whom units of the queue take quota, and when they lose it to others.
	// +optional
	Preemption *QueuePreemption `json:"preemption,omitempty"`
	// perNamespace bounds the units of each namespace, so that none fills a queue that several share.
	// +optional
	PerNamespace *NamespaceBounds `json:"perNamespace,omitempty"`
}

// PreemptionPolicy says which jobs are suspended so that another one can be admitted.
type PreemptionPolicy string

// Policies of preemption.
const (
	// PreemptNever suspends nobody: units wait until others give back what they hold.
	PreemptNever PreemptionPolicy = "Never"
	// PreemptLowerPriority suspends jobs of lower priority. Priorities count up to AnnotationMaxPriority of the namespace,
	// and up to 0 without.
	PreemptLowerPriority PreemptionPolicy = "LowerPriority"
	// PreemptAny suspends jobs whatever their priority.
	PreemptAny PreemptionPolicy = "Any"
)

// QueuePreemption is from whom units of a queue take quota, and when they lose it to others.
type QueuePreemption struct {
	// reclaim is of the min of a quota from borrowers, which are suspended. Never (default), LowerPriority (counted up to
	// koord-queue/max-priority of the namespace), or Any.
	// +optional
	// +kubebuilder:validation:Enum=Never;LowerPriority;Any
	Reclaim *PreemptionPolicy `json:"reclaim,omitempty"`
	// withinQueue is of what jobs of the same queue and quota hold. Never (default), or LowerPriority: those of lower
	// priority are suspended, counted as for reclaim.
	// +optional
	// +kubebuilder:validation:Enum=Never;LowerPriority
	WithinQueue *PreemptionPolicy `json:"withinQueue,omitempty"`
	// minRunTimeSeconds is for how long jobs of this queue run, from each admission, before they may be suspended for
	// others. Default 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	MinRunTimeSeconds *int32 `json:"minRunTimeSeconds,omitempty"`
	// preemptable false has jobs of this queue never be suspended for others: what they borrow is borrowed until they end.
	// Default true.
	// +optional
	Preemptable *bool `json:"preemptable,omitempty"`
	// allowUnpreemptable has the annotation koord-queue/preemptable "false" keep jobs of this queue from being suspended
	// for others. Default false: it has no effect. +optional
	AllowUnpreemptable bool `json:"allowUnpreemptable,omitempty"`
	// preemptAdopted has jobs of this queue be suspended for others also if they ran before they were queued.
	// +optional
	PreemptAdopted bool `json:"preemptAdopted,omitempty"`
	// dryRun has units of this queue take nothing. kubectl jobqueue preemptions --dry-run lists what they would take.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// maxGraceSeconds bounds the grace in seconds that jobs of this queue ask for by the annotation
	// koord-queue/grace-seconds. Default 0: no grace.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	MaxGraceSeconds *int32 `json:"maxGraceSeconds,omitempty"`
}

// QueueTimeouts are for how long an admitted unit of a managed job may go without using its quota. When one is over,
// the job is suspended and waits for a while before it is tried again at its place. Zero is no limit.
type QueueTimeouts struct {
	// podsReadySeconds is until all pods of the job are ready, from its admission.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsReadySeconds *int32 `json:"podsReadySeconds,omitempty"`
	// recoverySeconds is until all of them are ready again, from when they were not any more.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RecoverySeconds *int32 `json:"recoverySeconds,omitempty"`
	// unboundSeconds is while the job has pods and none of them is on a node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnboundSeconds *int32 `json:"unboundSeconds,omitempty"`
	// idleReservationSeconds is while the job makes no pod at all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IdleReservationSeconds *int32 `json:"idleReservationSeconds,omitempty"`
	// checkSeconds is until an admission check that names no timeoutSeconds has answered, from the reservation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CheckSeconds *int32 `json:"checkSeconds,omitempty"`
}

// ExecutionTime bounds for how long jobs of a queue run, from admission and in all their runs together. A job for which
// the time is over is suspended and made inactive. Kinds that cannot be suspended have no such bound.
//
// +kubebuilder:validation:XValidation:rule="!has(self.defaultSeconds) || !has(self.maximumSeconds) || self.defaultSeconds <= self.maximumSeconds",message="defaultSeconds must not be above maximumSeconds"
type ExecutionTime struct {
	// defaultSeconds is for units that name no maximumExecutionTimeSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DefaultSeconds *int32 `json:"defaultSeconds,omitempty"`
	// maximumSeconds is the most that a unit gets, whatever it names, and also if it names nothing.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaximumSeconds *int32 `json:"maximumSeconds,omitempty"`
}

// NamespaceBounds are for the units of one namespace in one queue.
type NamespaceBounds struct {
	// maxPending is the greatest number of units that are in line. Those beyond it, in the order of the queue, wait
	// outside with reason QueueOverflow, and come into line at their places.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxPending *int32 `json:"maxPending,omitempty"`
	// maxAdmitted is the greatest number of units that may be admitted at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxAdmitted *int32 `json:"maxAdmitted,omitempty"`
}

// QueueItemDetail is one waiting unit in the status of its queue.
type QueueItemDetail struct {
	// name of the QueueUnit.
	Name string `json:"name,omitempty"`
	// namespace of the QueueUnit.
	Namespace string `json:"namespace,omitempty"`
	// priority of the QueueUnit.
	Priority int32 `json:"priority,omitempty"`
	// position in the queue, from 1.
	Position int32 `json:"position,omitempty"`
}

// QueueStatus is what the scheduler saw of a queue at the last refresh.
type QueueStatus struct {
	// queueItemDetails lists the first waiting units under the key "active", bounded in number.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	QueueItemDetails map[string][]QueueItemDetail `json:"queueItemDetails,omitempty"`
	// pending is the number of units that wait.
	// +optional
	Pending *int32 `json:"pending,omitempty"`
	// admitted is the number of units that hold quota.
	// +optional
	Admitted *int32 `json:"admitted,omitempty"`
	// conditions of the queue; type Active says whether it admits.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Queue orders QueueUnits that wait for quota.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=queues
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.queuePolicy`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Stop",type=string,JSONPath=`.spec.stopPolicy`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Admitted",type=integer,JSONPath=`.status.admitted`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the owner of the queue asks for.
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`
	// status is what the scheduler saw.
	// +optional
	Status QueueStatus `json:"status,omitempty"`
}

// QueueList is a list of Queues.
//
// +kubebuilder:object:root=true
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Queue `json:"items"`
}
