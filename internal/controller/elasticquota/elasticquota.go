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

// Package elasticquota reads the metadata of Koordinator's quotas.
package elasticquota

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Kind of Koordinator's quotas.
var Kind = schema.GroupVersionKind{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Kind: "ElasticQuota"}

// NameIndex finds ElasticQuotas by name in all namespaces. API servers select by this field as well.
const NameIndex = "metadata.name"

// IndexByName is what the index has of one.
func IndexByName(quota client.Object) []string { return []string{quota.GetName()} }

// ParentOf is the name of the quota above one, as Koordinator reads it: its root quota if the quota names none.
func ParentOf(quota client.Object) string {
	if parent := quota.GetLabels()[v1alpha1.LabelQuotaParent]; parent != "" || quota.GetName() == extension.RootQuotaName {
		return parent
	}
	return extension.RootQuotaName
}

// New is an object to read the metadata of one into.
func New() *metav1.PartialObjectMetadata {
	quota := &metav1.PartialObjectMetadata{}
	quota.SetGroupVersionKind(Kind)
	return quota
}

// List those that the option selects.
func List(ctx context.Context, from client.Reader, which client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(Kind.GroupVersion().WithKind(Kind.Kind + "List"))
	err := from.List(ctx, list, which)
	return list.Items, err
}
