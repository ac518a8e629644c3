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

// Observation says when an answer was made, and by whom.
type Observation struct {
	// asOf is the time of the answer.
	AsOf metav1.Time `json:"asOf"`
	// leader says whether the replica that answered is the one that decides. Another one answers from its own copy of the
	// objects, which may lag behind by a moment.
	Leader bool `json:"leader"`
}

// PageOptions ask for a part of a long list.
//
// +kubebuilder:object:root=true
type PageOptions struct {
	metav1.TypeMeta `json:",inline"`
	// limit is how many units are listed at most: 100 if it is absent, and never more than 500.
	Limit int64 `json:"limit,omitempty"`
	// offset is how many units are left out before them.
	Offset int64 `json:"offset,omitempty"`
	// continue is what the page before said; with it offset is ignored.
	Continue string `json:"continue,omitempty"`
}
