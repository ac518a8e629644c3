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

// SnapshotNow is the name of the only snapshot that there is to read.
const SnapshotNow = "now"

// Snapshot has all facts by which a scheduler decides, and past runs. Programs read it: `kubectl jobqueue simulate`
// plays what would happen with other facts.
//
// +kubebuilder:object:root=true
type Snapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	// document is JSON with a version of its own, compressed by gzip.
	Document []byte `json:"document"`
}
