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

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnknownJobsPolicy says what becomes of pods of a managed job for which no QueueUnit appears.
type UnknownJobsPolicy string

const (
	// UnknownJobsGate keeps such pods out of scheduling until their unit is admitted.
	UnknownJobsGate UnknownJobsPolicy = "Gate"
	// UnknownJobsPass lets such pods go on under ElasticQuota alone once the grace period is over.
	UnknownJobsPass UnknownJobsPolicy = "Pass"
)

// ObjectName names a namespaced object.
type ObjectName struct {
	Namespace string
	Name      string
}

// Visibility says where the aggregated API is served.
type Visibility struct {
	BindAddress string
	Port        int32
	CertDir     string
}

// History bounds the record of transitions of units.
type History struct {
	Records   int32
	Path      string
	MaxSizeMB int32
	MaxFiles  int32
}

// JobQueueArgs are the arguments of the JobQueue plugin, defaulted and complete. The fields are described in package
// v1.
//
// +kubebuilder:object:root=true
type JobQueueArgs struct {
	metav1.TypeMeta

	QueueNamespace         string
	DefaultQueuePolicy     string
	ClientQPS              float32
	ClientBurst            int32
	WriteConcurrency       int32
	StatusRefreshInterval  metav1.Duration
	ItemsInStatus          int32
	ExplainAfter           metav1.Duration
	ExplainEvery           metav1.Duration
	ReasonsPerSecond       int32
	ResyncInterval         metav1.Duration
	AuditInterval          metav1.Duration
	UnknownJobs            UnknownJobsPolicy
	UnknownJobsGracePeriod metav1.Duration
	ProtectReservedQuota   bool
	AllowBuiltinQuotas     bool
	UnboundTimeout         metav1.Duration
	IdleReservationTimeout metav1.Duration
	PodsReadyTimeout       metav1.Duration
	RecoveryTimeout        metav1.Duration
	CheckTimeout           metav1.Duration
	ProvisioningTimeout    metav1.Duration
	ClaimAfter             metav1.Duration
	ClaimTimeout           metav1.Duration
	ManagedJobsConfigMap   ObjectName
	Visibility             Visibility
	History                History
	FeatureGates           map[string]bool
}
