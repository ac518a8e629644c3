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

package elasticquota

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koordinator-sh/koordinator/apis/extension"
)

// MappedIndex finds ElasticQuotas by the namespaces whose pods Koordinator charges to them without a label.
const MappedIndex = "jobqueue/mapped-namespaces"

// MappedNamespaces of an ElasticQuota are its own, if that has its name, and those of its annotation. Jobs are queued
// in none of Koordinator's own quotas by that alone.
func MappedNamespaces(quota client.Object) []string {
	if name := quota.GetName(); name == extension.DefaultQuotaName || name == extension.SystemQuotaName ||
		name == extension.RootQuotaName {
		return nil
	}
	var namespaces []string
	if json.Unmarshal([]byte(quota.GetAnnotations()[extension.AnnotationQuotaNamespaces]), &namespaces) != nil {
		namespaces = nil // Koordinator takes none of them either
	}
	if quota.GetName() == quota.GetNamespace() {
		namespaces = append(namespaces, quota.GetNamespace())
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// OfNamespace is the one of its takers that Koordinator charges its pods to: its own before any other. Of several
// others nobody knows which, and it is empty.
func OfNamespace(namespace string, takers []metav1.PartialObjectMetadata) string {
	for i := range takers {
		if takers[i].Namespace == namespace && takers[i].Name == namespace {
			return namespace
		}
	}
	if len(takers) == 1 {
		return takers[0].Name
	}
	return ""
}

// Changed: what is used of a quota is written into it all the time, and is nothing to us.
var Changed = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(MappedNamespaces(e.ObjectOld), MappedNamespaces(e.ObjectNew)) ||
		ParentOf(e.ObjectOld) != ParentOf(e.ObjectNew)
}}
