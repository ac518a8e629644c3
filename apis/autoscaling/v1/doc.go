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

// Package v1 has the ProvisioningRequest of cluster-autoscaler, group autoscaling.x-k8s.io, with the fields that this
// project reads and writes. The API of cluster-autoscaler has no module of its own to import. Clusters install the
// definition of cluster-autoscaler. The definition that is generated from these types is for tests only.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.x-k8s.io
package v1
