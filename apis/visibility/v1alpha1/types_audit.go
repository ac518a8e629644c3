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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastAudit is the name of the only audit that there is to read.
const LastAudit = "last"

// Audit is the last comparison of ledger and queues with the API objects and Koordinator's used. To read it starts
// none; to create one has another made soon, at most once a minute.
//
// +kubebuilder:object:root=true
type Audit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	// status is absent before the first audit.
	Status *AuditStatus `json:"status,omitempty"`
}

// AuditList has the last audit, if there was one.
//
// +kubebuilder:object:root=true
type AuditList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []Audit `json:"items"`
}

// AuditStatus is what an audit found.
type AuditStatus struct {
	// at is when it began.
	At metav1.Time `json:"at"`
	// took is how long it was.
	Took metav1.Duration `json:"took"`
	// units that were compared.
	Units int32 `json:"units"`
	// pods that were compared.
	Pods int32 `json:"pods"`
	// levels of the quota tree that were compared.
	Levels int32 `json:"levels"`
	// found is the number of differences.
	Found int32 `json:"found"`
	// differences are the first of them.
	Differences []Difference `json:"differences,omitempty"`
	// rebuilt says that the state was rebuilt because of them.
	Rebuilt bool `json:"rebuilt,omitempty"`
}

// Difference is one fact about which the scheduler and the expectation disagreed.
type Difference struct {
	// kind of the difference.
	Kind string `json:"kind"`
	// object that it is about.
	Object string `json:"object"`
	// field of that object.
	Field string `json:"field"`
	// engine is what the scheduler went by.
	Engine string `json:"engine"`
	// source is what it should have been.
	Source string `json:"source"`
}
