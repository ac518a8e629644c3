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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// QueueUnitPhase is the state of a unit in its life; package admission holds the table of legal changes.
//
// +kubebuilder:validation:Enum="";Enqueued;Reserved;Dequeued;Running;Succeed;Failed;SchedReady;SchedSucceed;SchedFailed;TimeoutBackoff;Preempted
type QueueUnitPhase string

const (
	PhaseEnqueued       QueueUnitPhase = "Enqueued"
	PhaseReserved       QueueUnitPhase = "Reserved"
	PhaseDequeued       QueueUnitPhase = "Dequeued"
	PhaseRunning        QueueUnitPhase = "Running"
	PhaseSucceed        QueueUnitPhase = "Succeed"
	PhaseFailed         QueueUnitPhase = "Failed"
	PhaseSchedReady     QueueUnitPhase = "SchedReady"
	PhaseSchedSucceed   QueueUnitPhase = "SchedSucceed"
	PhaseSchedFailed    QueueUnitPhase = "SchedFailed"
	PhaseTimeoutBackoff QueueUnitPhase = "TimeoutBackoff"
)

// Condition types of a QueueUnit.
const (
	ConditionQuotaReserved = "QuotaReserved"
	ConditionAdmitted      = "Admitted"
	ConditionPodsReady     = "PodsReady"
	ConditionFinished      = "Finished"
	ConditionEvicted       = "Evicted"
	// ConditionResizePending says that an admitted unit waits for more than it holds, and why.
	ConditionResizePending = "ResizePending"
	// ConditionDeactivationTarget says that the scheduler wants the unit to be made inactive, and why. It counts until the
	// spec of the unit has changed since.
	ConditionDeactivationTarget = "DeactivationTarget"
	// ConditionCannotSuspend says that the unit lost its admission a while ago, that its job still runs, and why.
	ConditionCannotSuspend = "CannotSuspend"
)

// ReasonObserved of the condition Admitted says that the unit would be admitted, and that nobody acts on that.
const ReasonObserved = "Observed"

// Reasons of the condition CannotSuspend when it no longer holds.
const (
	ReasonSuspended     = "Suspended"
	ReasonAdmittedAgain = "AdmittedAgain"
)

// Reasons of the condition PodsReady.
const (
	// ReasonPodsRunning says that all pods of the job are ready, or have ended well.
	ReasonPodsRunning = "PodsRunning"
	// ReasonPodsStarting says that some are not yet.
	ReasonPodsStarting = "PodsStarting"
	// ReasonPodsLost says that all were, and some are not any more.
	ReasonPodsLost = "PodsLost"
)

// ReasonAdopted of the condition Admitted says that nobody admitted the unit: its job ran before. It holds what its
// admissions say, also where they say nothing.
const ReasonAdopted = "Adopted"

// PodSet is a group of pods that share a template: the PodSet of Kueue v1beta1 on the wire.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minCount) || self.minCount <= self.count",message="minCount must not be above count"
type PodSet struct {
	// name of the pod set, unique in the unit: letters, digits and '-'.
	// +kubebuilder:default=main
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Name string `json:"name"`
	// template of the pods. It is kept as written and decoded only where its requests are needed,
	// so that one malformed template cannot break the reading of all others.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template,omitempty"`
	// count is the number of pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=1
	Count int32 `json:"count"`
	// minCount is the least number of pods for partial admission.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCount *int32 `json:"minCount,omitempty"`
	// topologyRequest as Kueue defines it; kept, not read.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	TopologyRequest *runtime.RawExtension `json:"topologyRequest,omitempty"`
}

// QueueUnitMode is what the queue does about a unit.
//
// +kubebuilder:validation:Enum=Observe
type QueueUnitMode string

// ModeObserve has a unit be told when it would be admitted. Its job is neither suspended nor resumed, its pods run, and
// it holds nothing.
const ModeObserve QueueUnitMode = "Observe"

// QueueUnitSpec is what a job asks of its queue.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) == has(oldSelf.mode)",message="spec.mode must not change"
// +kubebuilder:validation:XValidation:rule="has(self.consumerRef) || !has(oldSelf.consumerRef) || !(has(oldSelf.consumerRef.kind) || has(oldSelf.consumerRef.name) || has(oldSelf.consumerRef.uid))",message="spec.consumerRef must not be taken away once it is set"
type QueueUnitSpec struct {
	// consumerRef names the job that waits; absent for a unit that stands for something outside.
	// Its namespace, if set, must equal the unit's (a rule cannot see the namespace; the scheduler parks the unit).
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.kind) || !has(oldSelf.kind)) && (has(self.name) || !has(oldSelf.name)) && (has(self.uid) || !has(oldSelf.uid))",message="kind, name and uid of spec.consumerRef must not be taken away once they are set"
	ConsumerRef *corev1.ObjectReference `json:"consumerRef,omitempty"`
	// priority of the unit; a higher one is served first.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// queue names the Queue; absent takes the annotation or label koord-queue/queue-name, else the default Queue of the
	// quota.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`
	// quotas in which the unit may be admitted, in order; absent is that of its label alone. The first is that of its
	// label.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Quotas []string `json:"quotas,omitempty"`
	// podSet lists the pods of the job, by role, in at most 20 pod sets.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || [self.map(p, p.name)].all(names, names.all(a, names.exists_one(b, a == b)))",message="names of pod sets must differ"
	PodSets []PodSet `json:"podSet,omitempty"`
	// priorityClassName gives the priority when priority is absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// request is what the whole job asks for; absent means the sum over podSet. Amounts must not be negative.
	// +optional
	Request corev1.ResourceList `json:"request,omitempty"`
	// resource is the former name of request, which the controller writes too. It counts where request is absent. Amounts
	// must not be negative.
	// Deprecated: use request.
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
	// active: false keeps the unit out of its queue and takes back what it holds.
	// +optional
	Active *bool `json:"active,omitempty"`
	// maximumExecutionTimeSeconds is for how long the job may run in all its runs together. A run counts from when all of
	// its pods are ready. In a queue with executionTime.maximumSeconds it counts from admission. Then the job is suspended
	// and made inactive. The queue may have a default, and a bound for it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`
	// mode Observe: the unit is told when it would be admitted, and the queue does nothing about its job. It does not
	// change.
	// +optional
	Mode QueueUnitMode `json:"mode,omitempty"`
}

// Observed says that nobody acts on what is decided about the unit.
func (u *QueueUnit) Observed() bool { return u.Spec.Mode == ModeObserve }

// Inactive says that the unit is on hold: spec.active is false. Without the field a unit is active.
func (u *QueueUnit) Inactive() bool { return u.Spec.Active != nil && !*u.Spec.Active }

// CheckState is the state of an admission check, as in Kueue v1beta1.
//
// +kubebuilder:validation:Enum=Pending;Ready;Retry;Rejected
type CheckState string

// PodSetUpdate holds what an admission check asks to write into the pods of a pod set, as in Kueue v1beta1.
type PodSetUpdate struct {
	// name of the pod set.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// labels to add.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// annotations to add.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
	// nodeSelector to add.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations to add.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// AdmissionCheckState is the state of one admission check of a unit, as in Kueue v1beta1.
type AdmissionCheckState struct {
	// name of the AdmissionCheck.
	// +kubebuilder:validation:MaxLength=316
	Name string `json:"name"`
	// state of the check.
	// +optional
	State CheckState `json:"state,omitempty"`
	// lastTransitionTime is when the state last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// message explains the state to a person.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// requeueAfterSeconds is the least time until the unit is tried again after Retry.
	// +optional
	RequeueAfterSeconds *int32 `json:"requeueAfterSeconds,omitempty"`
	// retryCount counts how often the check had the unit tried again, over all reservations until all pods of the job were
	// ready.
	// +optional
	RetryCount *int32 `json:"retryCount,omitempty"`
	// podSetUpdates is what the check asks to write into the pods.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// ReclaimState asks for pods of an admitted pod set back. Nothing acts on it yet.
type ReclaimState struct {
	// replicas to give back. Not acted on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int64 `json:"replicas,omitempty"`
}

// Admission is what one pod set of an admitted unit holds.
type Admission struct {
	// name of the pod set, or koord-queue/default-requirement for a unit that is admitted as a whole.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// replicas admitted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int64 `json:"replicas"`
	// resources held by all replicas of the pod set together. Amounts must not be negative.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// running replicas, as the controller last saw them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Running int64 `json:"running"`
	// reclaimState asks for replicas back. It is kept for readers of the stand-alone Koord-Queue: neither the scheduler
	// nor the controller reads or writes it.
	// +optional
	ReclaimState *ReclaimState `json:"reclaimState,omitempty"`
}

// PodState counts pods.
// Deprecated: kept for readers of the stand-alone Koord-Queue.
type PodState struct {
	// running pods.
	// +optional
	Running int `json:"running"`
	// pending pods.
	// +optional
	Pending int `json:"pending"`
}

// RequeueState counts evictions that led back into the queue.
type RequeueState struct {
	// count of the evictions by time-outs since all pods of the job were ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`
	// requeueAt is when the unit may be tried again.
	// +optional
	RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
}

// ReclaimablePod counts pods of a pod set that have ended and need no quota any more.
type ReclaimablePod struct {
	// name of the pod set.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// count of the pods that have ended.
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// Effective is what a unit came to, which its spec need not say. It is written along with other things, so a unit whose
// status was never written has none.
type Effective struct {
	// queue that the unit is in.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`
	// quota that it is charged to. A unit stays in the quota that it was admitted with while it holds quota, whatever its
	// label says since.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Quota string `json:"quota,omitempty"`
	// requested by the whole unit, in words.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Requested string `json:"requested,omitempty"`
	// held while it is admitted, in words.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Held string `json:"held,omitempty"`
	// preemptable is false if the unit is never suspended for others, as koord-queue/preemptable asked at its admission
	// and its queue allowed. +optional
	Preemptable *bool `json:"preemptable,omitempty"`
}

// QuotaChoice is the quota that a unit was admitted in, of those that it or its queue lists.
type QuotaChoice struct {
	// name of the quota. Pods of the unit bear it as their quota label.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// first is the quota for which the unit waited, and waits again after it loses its admission.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	First string `json:"first,omitempty"`
	// nodeSelector that the queue has for the quota. Pods of the unit have it.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// Preemption is a decision that units lose what they hold, for one that has a right to it.
type Preemption struct {
	// attempts is status.attempts of the unit when that was decided. The decision ends with the unit's next admission.
	// +kubebuilder:validation:Minimum=0
	Attempts int64 `json:"attempts"`
	// holds are what is taken, as UID/N: the N-th admission of the QueueUnit with that UID, and no later one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=64
	Holds []string `json:"holds,omitempty"`
}

// QueueUnitStatus is the state of a unit.
type QueueUnitStatus struct {
	// phase of the unit; empty reads as Enqueued.
	// +optional
	Phase QueueUnitPhase `json:"phase,omitempty"`
	// attempts counts admissions of this unit; it only grows.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="status.attempts must not become smaller"
	Attempts int64 `json:"attempts,omitempty"`
	// message explains the phase to a person.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// lastUpdateTime of the status by the scheduler or the controller.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// admissionChecks of the unit. Each reservation of quota sets all of them to Pending. The controller of a check
	// answers here. Its patch names the resource version that it has read, so that an answer about a former reservation
	// is refused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`
	// podState counts pods. Deprecated: it is kept for readers of the stand-alone Koord-Queue and never written. The
	// running pods are in admissions.
	// +optional
	PodState *PodState `json:"podState,omitempty"`
	// admissions is what the unit holds, by pod set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Admissions []Admission `json:"admissions,omitempty"`
	// lastAllocateTime is when the unit was last admitted.
	// +optional
	LastAllocateTime *metav1.Time `json:"lastAllocateTime,omitempty"`
	// effective is what the unit came to, for people who list units.
	// +optional
	// +structType=atomic
	Effective *Effective `json:"effective,omitempty"`
	// quotaChoice is the quota of the admission, where several are listed or the queue has a nodeSelector for it. The
	// scheduler writes it.
	// +optional
	QuotaChoice *QuotaChoice `json:"quotaChoice,omitempty"`
	// conditions: QuotaReserved, Admitted, PodsReady, Finished, Evicted, ResizePending, DeactivationTarget.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// requeueState counts evictions.
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`
	// reclaimablePods have ended well and do not come again: the unit asks for so much less, and its quota is free for
	// others. Written by the controller for kinds whose pod sets keep their count.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	ReclaimablePods []ReclaimablePod `json:"reclaimablePods,omitempty"`
	// preemption is what the unit takes back from others, so that it can be admitted. The scheduler writes it before any
	// of them loses anything.
	// +optional
	Preemption *Preemption `json:"preemption,omitempty"`
	// accumulatedPastExecutionTimeSeconds is for how long the job ran before its last eviction, where its time is bounded.
	// +optional
	AccumulatedPastExecutionTimeSeconds *int32 `json:"accumulatedPastExecutionTimeSeconds,omitempty"`
	// executionStartTime is when all pods of the job were ready for the first time since its last admission.
	// +optional
	ExecutionStartTime *metav1.Time `json:"executionStartTime,omitempty"`
}

// QueueUnit is one job in a queue.
// ---
// Rules that compare with the former object also look at absent fields, so that nobody can change a field by removing
// and adding it. Spec, status and attempts have defaults, so a removed one is compared as empty.
//
// All rules run at every status write, and each access to a field copies the schema of all its siblings. So a rule
// stands as deep as possible and begins with its most frequent case. Amounts have no rules: hack/generate writes their
// schema. A spec does not change together with the status, so pod sets are compared only if the phase stays.
//
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.phase.orValue('Enqueued') in ['Reserved','Dequeued','Running','SchedReady','SchedSucceed']) || self.?status.phase != oldSelf.?status.phase || (has(self.spec.podSet) == has(oldSelf.spec.podSet) && (!has(self.spec.podSet) || (self.spec.podSet.map(p, p.name) == oldSelf.spec.podSet.map(p, p.name) && self.spec.podSet.map(p, p.?template) == oldSelf.spec.podSet.map(p, p.?template))))",message="names and templates in spec.podSet must not change while the unit holds quota"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=queueunits,shortName=qu;qus
// +kubebuilder:selectablefield:JSONPath=`.spec.consumerRef.name`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.effective.queue`
// +kubebuilder:selectablefield:JSONPath=`.status.effective.quota`
// +kubebuilder:selectablefield:JSONPath=`.status.preemption.attempts`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.effective.queue`
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.effective.quota`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="QuotaReserved")].reason`
// +kubebuilder:printcolumn:name="Asked",type=string,JSONPath=`.status.effective.requested`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.status.effective.held`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.consumerRef.kind`,priority=1
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.attempts`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type QueueUnit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the job asks of its queue.
	// +optional
	// +kubebuilder:default={}
	Spec QueueUnitSpec `json:"spec,omitempty"`
	// status defaults to phase Enqueued when read, so that a unit that waits costs no write.
	// +optional
	// +kubebuilder:default={phase: Enqueued}
	Status QueueUnitStatus `json:"status,omitempty"`
}

// QueueUnitList is a list of QueueUnits.
//
// +kubebuilder:object:root=true
type QueueUnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QueueUnit `json:"items"`
}
