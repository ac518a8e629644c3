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

// Quota is the state of one level of the quota tree, as the scheduler goes by it.
//
// +kubebuilder:object:root=true
type Quota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	Status            QuotaStatus `json:"status"`
}

// QuotaList is a list of quotas.
//
// +kubebuilder:object:root=true
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []Quota `json:"items"`
}

// LocalQuota is the state of a quota that units of a namespace use, for those who may read that namespace.
//
// +kubebuilder:object:root=true
type LocalQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	Status            QuotaStatus `json:"status"`
}

// LocalQuotaList is a list of the quotas of a namespace.
//
// +kubebuilder:object:root=true
type LocalQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []LocalQuota `json:"items"`
}

// QuotaStatus is what there is to say about a quota. A resource that a list does not name is not limited there.
type QuotaStatus struct {
	// exists is false for a quota that units name and that is not there.
	Exists bool `json:"exists"`
	// parent is the level above; absent at the top.
	Parent string `json:"parent,omitempty"`
	// limit of used and reserved together: max, or the fair share of this moment.
	Limit corev1.ResourceList `json:"limit,omitempty"`
	// max that the quota may ever use.
	Max corev1.ResourceList `json:"max,omitempty"`
	// min that it is guaranteed.
	Min corev1.ResourceList `json:"min,omitempty"`
	// used by pods on nodes, of queued jobs or not.
	Used corev1.ResourceList `json:"used,omitempty"`
	// reserved for admitted units beyond their pods on nodes.
	Reserved corev1.ResourceList `json:"reserved,omitempty"`
	// pending is the request of its waiting units, and of admitted ones that wait for more than they hold. Parents of
	// quotas have none: add that of the quotas below.
	Pending corev1.ResourceList `json:"pending,omitempty"`
	// holding is the number of units that hold something of this quota itself.
	Holding int32 `json:"holding"`
	// waiting is the number of its units that hold nothing and are not over.
	Waiting int32 `json:"waiting"`
}
