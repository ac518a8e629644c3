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

// Queue is the state of one queue.
//
// +kubebuilder:object:root=true
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	Status            QueueStatus `json:"status"`
}

// QueueList is a list of queues.
//
// +kubebuilder:object:root=true
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []Queue `json:"items"`
}

// LocalQueue is the state of a queue that units of a namespace are in, for those who may read that namespace.
//
// +kubebuilder:object:root=true
type LocalQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	Status            QueueStatus `json:"status"`
}

// LocalQueueList is a list of the queues of a namespace.
//
// +kubebuilder:object:root=true
type LocalQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []LocalQueue `json:"items"`
}

// QueueStatus is what there is to say about a queue.
type QueueStatus struct {
	// exists is false for a queue that units name and that nobody made.
	Exists bool `json:"exists"`
	// policy orders its units.
	Policy string `json:"policy,omitempty"`
	// priority among queues.
	Priority int32 `json:"priority"`
	// quotas that the queue accepts; "*" is all of them. A reader of a namespace learns those that its units use.
	Quotas []string `json:"quotas,omitempty"`
	// stopPolicy of the queue: None, Hold or HoldAndDrain.
	StopPolicy string `json:"stopPolicy,omitempty"`
	// held says that the queue admits nothing new.
	Held bool `json:"held,omitempty"`
	// first is the unit at the front of the line, as namespace/name, if the reader may know of it.
	First string `json:"first,omitempty"`
	// firstKind is the kind of the job of that unit, for example Job.v1.batch.
	FirstKind string `json:"firstKind,omitempty"`
	// firstJob is the name of that job.
	FirstJob string `json:"firstJob,omitempty"`
	// pending is the number of units in line.
	Pending int32 `json:"pending"`
	// parked is the number of units that cannot be admitted as they are.
	Parked int32 `json:"parked"`
	// admitted is the number of units that hold quota.
	Admitted int32 `json:"admitted"`
}

// WaitingUnitList is a part of the line of one queue, in its order. To a reader of one namespace, it shows only the
// position and the request of units of other namespaces.
//
// +kubebuilder:object:root=true
type WaitingUnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []WaitingUnit `json:"items"`
}

// WaitingUnit is one unit in line.
type WaitingUnit struct {
	// position in the queue, from 1.
	Position int32 `json:"position"`
	// namespace of the unit.
	Namespace string `json:"namespace,omitempty"`
	// name of the unit.
	Name string `json:"name,omitempty"`
	// kind of the job, for example Job.v1.batch; absent for a unit without a job.
	Kind string `json:"kind,omitempty"`
	// job is the name of the job.
	Job string `json:"job,omitempty"`
	// quota that it asks.
	Quota string `json:"quota,omitempty"`
	// priority by which the policy may order it.
	Priority *int32 `json:"priority,omitempty"`
	// queuedAt is when the unit was made.
	QueuedAt *metav1.Time `json:"queuedAt,omitempty"`
	// reason why it waits, as the last decision found it for the first unit that asks for the same.
	Reason string `json:"reason,omitempty"`
	// message is the reason in words. The unit itself says it with all numbers.
	Message string `json:"message,omitempty"`
	// requested is what it waits for.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// holding says that the unit is admitted and waits for more than it holds.
	Holding bool `json:"holding,omitempty"`
}
