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

// Names that a tree may use, of the stand-alone Koord-Queue and of its first version.
const (
	// ResourceMaxJobs among the resources of a node's max is how many jobs may be admitted in it and below.
	ResourceMaxJobs corev1.ResourceName = "koord-queue/max-jobs"
	// ResourceMaxJobsFormer is the former name of ResourceMaxJobs.
	ResourceMaxJobsFormer corev1.ResourceName = "kube-queue/max-jobs"
	// AttributeLendLimit says how much of a node's min may be lent to others: a JSON map of resources.
	AttributeLendLimit = "alibabacloud.com/lendlimit"
)

// ConditionReady says whether every node of the tree has its ElasticQuota.
const ConditionReady = "Ready"

// ElasticQuotaNode is one quota of the tree and all below it.
type ElasticQuotaNode struct {
	// name of the quota, unique in the tree. The ElasticQuota of the node has this name, in lower case and with '-' for
	// what an object's name cannot have.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// namespaces whose pods and jobs without a quota label belong to this quota; only for a node without children.
	// +optional
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`
	// max is the limit of this quota and of all quotas below it together. The resource koord-queue/max-jobs limits the
	// number of admitted jobs. A resource that max does not name is limited by the nodes above.
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
	// min is what is guaranteed to this quota and those below it together.
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`
	// attributes of the quota; they become labels and annotations of its ElasticQuota.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Attributes map[string]string `json:"attributes,omitempty"`
	// children are the quotas directly below.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Children []ElasticQuotaNode `json:"children,omitempty"`
}

// ElasticQuotaTreeSpec is the tree.
type ElasticQuotaTreeSpec struct {
	// root of the tree; its ElasticQuota lies directly below the root of all quotas.
	// +optional
	Root ElasticQuotaNode `json:"root,omitzero"`
}

// ElasticQuotaTreeStatus says what became of the tree.
type ElasticQuotaTreeStatus struct {
	// observedGeneration of the spec that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// quotas is the number of nodes that have their ElasticQuota.
	// +optional
	Quotas int32 `json:"quotas"`
	// parked is the number of nodes that have none, or not the one that they ask for.
	// +optional
	Parked int32 `json:"parked"`
	// conditions: Ready.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ElasticQuotaTree describes a tree of quotas in one object. The controller makes an ElasticQuota of each node and
// keeps it in step.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the API of the stand-alone Koord-Queue"
// +kubebuilder:resource:shortName=eqtree
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name is written into a label: it may have 63 characters"
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="QUOTAS",type=integer,JSONPath=`.status.quotas`
// +kubebuilder:printcolumn:name="PARKED",type=integer,JSONPath=`.status.parked`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ElasticQuotaTree struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ElasticQuotaTreeSpec `json:"spec,omitempty"`
	// +optional
	Status ElasticQuotaTreeStatus `json:"status,omitempty"`
}

// ElasticQuotaTreeList is a list of trees.
//
// +kubebuilder:object:root=true
type ElasticQuotaTreeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElasticQuotaTree `json:"items"`
}
