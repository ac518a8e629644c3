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

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Parameter of a provisioning class.
// +kubebuilder:validation:MaxLength=255
type Parameter string

// ProvisioningRequestConfigSpec says how capacity is asked for.
type ProvisioningRequestConfigSpec struct {
	// provisioningClassName of the requests.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:MaxLength=253
	ProvisioningClassName string `json:"provisioningClassName"`
	// parameters of the class.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]Parameter `json:"parameters,omitempty"`
	// managedResources are resources that the autoscaler manages. Capacity is requested for pod sets that ask for one of
	// them, or for all pod sets if the list is empty. A job without such a pod set passes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	ManagedResources []corev1.ResourceName `json:"managedResources,omitempty"`
	// retryStrategy says how often it is asked for again.
	// +optional
	RetryStrategy *ProvisioningRequestRetryStrategy `json:"retryStrategy,omitempty"`
	// podSetUpdates are updates of pods from the answer of the autoscaler.
	// +optional
	PodSetUpdates *ProvisioningRequestPodSetUpdates `json:"podSetUpdates,omitempty"`
}

// ProvisioningRequestRetryStrategy says how often capacity is asked for again.
type ProvisioningRequestRetryStrategy struct {
	// backoffLimitCount is how often it is asked for again before the job is rejected.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	BackoffLimitCount *int32 `json:"backoffLimitCount,omitempty"`
	// backoffBaseSeconds until it is asked for again the first time; each time twice as long.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	BackoffBaseSeconds *int32 `json:"backoffBaseSeconds,omitempty"`
	// backoffMaxSeconds is the longest of these times.
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=0
	BackoffMaxSeconds *int32 `json:"backoffMaxSeconds,omitempty"`
}

// ProvisioningRequestPodSetUpdates are updates of pods from the answer of the autoscaler.
type ProvisioningRequestPodSetUpdates struct {
	// nodeSelector of the pods.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=8
	NodeSelector []ProvisioningRequestNodeSelector `json:"nodeSelector,omitempty"`
}

// ProvisioningRequestNodeSelector is one label of nodes.
type ProvisioningRequestNodeSelector struct {
	// key of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// valueFromProvisioningClassDetail names the detail of the request's status that is the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	ValueFromProvisioningClassDetail string `json:"valueFromProvisioningClassDetail"`
}

// ProvisioningRequestConfig are the parameters of an AdmissionCheck that asks a cluster autoscaler for capacity.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.provisioningClassName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProvisioningRequestConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ProvisioningRequestConfigSpec `json:"spec,omitempty"`
}

// ProvisioningRequestConfigList is a list of ProvisioningRequestConfigs.
//
// +kubebuilder:object:root=true
type ProvisioningRequestConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProvisioningRequestConfig `json:"items"`
}
