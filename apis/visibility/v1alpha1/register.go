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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of what a scheduler says about its queues.
const GroupName = "visibility.koord-queue.x-k8s.io"

var (
	// SchemeGroupVersion is the group and version of the types in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder registers the types of this package with a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds are the types of this package that are answers, and those that ask for a page.
func Kinds() []runtime.Object {
	return []runtime.Object{
		&Queue{}, &QueueList{}, &LocalQueue{}, &LocalQueueList{}, &WaitingUnitList{}, &Quota{}, &QuotaList{},
		&LocalQuota{}, &LocalQuotaList{}, &Unit{}, &UnitList{}, &Audit{}, &AuditList{}, &PageOptions{},
		&Record{}, &RecordList{}, &Forecast{}, &ForecastList{}, &Snapshot{},
	}
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, Kinds()...)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
