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
)

// RecordEvent names a transition of a unit.
type RecordEvent string

// The transitions.
const (
	// RecordEnqueued: the unit was created.
	RecordEnqueued RecordEvent = "Enqueued"
	// RecordChanged: queue, quota or priority of the unit changed. The record has the new ones.
	RecordChanged RecordEvent = "Changed"
	// RecordDeactivated: spec.active was set to false. A hold of the owner does that too.
	RecordDeactivated RecordEvent = "Deactivated"
	// RecordActivated: spec.active was set to true.
	RecordActivated RecordEvent = "Activated"
	// RecordReserved: quota was reserved. Admission checks are asked.
	RecordReserved RecordEvent = "Reserved"
	// RecordAdmitted: the job may run.
	RecordAdmitted RecordEvent = "Admitted"
	// RecordRunning: the job runs.
	RecordRunning RecordEvent = "Running"
	// RecordResized: the unit holds another amount.
	RecordResized RecordEvent = "Resized"
	// RecordEvicted: the unit lost its reservation or admission, and waits again.
	RecordEvicted RecordEvent = "Evicted"
	// RecordSucceeded: the job succeeded.
	RecordSucceeded RecordEvent = "Succeeded"
	// RecordFailed: the job failed.
	RecordFailed RecordEvent = "Failed"
	// RecordDeleted: the unit was deleted before the scheduler saw the end of its job.
	RecordDeleted RecordEvent = "Deleted"
)

// Record is one transition of a unit. The unit and its job may be gone.
//
// +kubebuilder:object:root=true
type Record struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the namespace of the unit. The name means nothing.
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// time of the transition, as the scheduler saw it.
	Time metav1.MicroTime `json:"time"`
	// event is the transition.
	Event RecordEvent `json:"event"`
	// unit is the name of the QueueUnit.
	Unit string `json:"unit"`
	// uid of the QueueUnit.
	UID string `json:"uid"`
	// kind of the job, for example Job.v1.batch.
	Kind string `json:"kind,omitempty"`
	// job is the name of the job; absent for a unit without a job.
	Job string `json:"job,omitempty"`
	// queue of the unit.
	Queue string `json:"queue,omitempty"`
	// quota that the unit is charged to.
	Quota string `json:"quota,omitempty"`
	// priority of the unit.
	Priority int32 `json:"priority"`
	// attempt counts the admissions of the unit. 0: never admitted, or adopted.
	Attempt int64 `json:"attempt"`
	// created is the time of creation of the unit.
	Created metav1.Time `json:"created"`
	// requested by the unit.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// held is the amount of quota that the unit holds. Records that end an admission have the amount until then.
	Held corev1.ResourceList `json:"held,omitempty"`
	// heldBefore is the amount before a resize.
	HeldBefore corev1.ResourceList `json:"heldBefore,omitempty"`
	// reason of an eviction, or of a deactivation by the controller.
	Reason string `json:"reason,omitempty"`
	// waited is the time until a reservation or admission, since the creation or the last eviction.
	Waited *metav1.Duration `json:"waited,omitempty"`
	// ran is the time since the admission, in records that end one.
	Ran *metav1.Duration `json:"ran,omitempty"`
	// observed: the queue did nothing about the job. waited is for how long it would have waited, and reason why at last.
	// Records of its end have both if it was not admitted until then.
	Observed bool `json:"observed,omitempty"`
}

// RecordList is a part of the record of transitions, the newest first. A page may be short, or empty, although more
// follows.
//
// +kubebuilder:object:root=true
type RecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	// completeSince is the time from which on no record was dropped. Transitions while no scheduler ran have no record.
	CompleteSince metav1.Time `json:"completeSince"`
	Items         []Record    `json:"items"`
}
