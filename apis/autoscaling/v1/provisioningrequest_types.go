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

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of a ProvisioningRequest.
const (
	// Accepted: the autoscaler works on it.
	Accepted = "Accepted"
	// Provisioned: what is asked for is there.
	Provisioned = "Provisioned"
	// Failed: what is asked for cannot be had.
	Failed = "Failed"
	// BookingExpired: what was provisioned is kept for nobody any more.
	BookingExpired = "BookingExpired"
	// CapacityRevoked: what was provisioned is gone.
	CapacityRevoked = "CapacityRevoked"
)

// Annotations of pods that use what was provisioned.
const (
	AnnotationConsume = "autoscaling.x-k8s.io/consume-provisioning-request"
	AnnotationClass   = "autoscaling.x-k8s.io/provisioning-class-name"
)

// Parameter of a provisioning class.
// +kubebuilder:validation:MaxLength=255
type Parameter string

// Detail is what a provisioning class says of a request.
// +kubebuilder:validation:MaxLength=32768
type Detail string

// Reference names an object of the same namespace.
type Reference struct {
	// name of the object.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// PodSet is a number of equal pods.
type PodSet struct {
	// podTemplateRef names the PodTemplate of the pods.
	PodTemplateRef Reference `json:"podTemplateRef"`
	// count of the pods.
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
}

// ProvisioningRequestSpec is what capacity is asked for. It cannot change.
type ProvisioningRequestSpec struct {
	// podSets for which there has to be room.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="Value is immutable"
	PodSets []PodSet `json:"podSets"`
	// provisioningClassName says how it is provided.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="Value is immutable"
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:MaxLength=253
	ProvisioningClassName string `json:"provisioningClassName"`
	// parameters of the class.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="Value is immutable"
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]Parameter `json:"parameters,omitempty"`
}

// ProvisioningRequestStatus is what the autoscaler says.
type ProvisioningRequestStatus struct {
	// conditions: Accepted, Provisioned, Failed, BookingExpired, CapacityRevoked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// provisioningClassDetails is what the class says beyond them.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	ProvisioningClassDetails map[string]Detail `json:"provisioningClassDetails,omitempty"`
}

// ProvisioningRequest asks a cluster autoscaler for capacity before there are pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes/autoscaler/pull/5848"
type ProvisioningRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProvisioningRequestSpec `json:"spec"`
	// +optional
	Status ProvisioningRequestStatus `json:"status,omitempty"`
}

// ProvisioningRequestList is a list of ProvisioningRequests.
//
// +kubebuilder:object:root=true
type ProvisioningRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProvisioningRequest `json:"items"`
}
