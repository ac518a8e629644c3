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

package quotaplan

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Right is the verb use on ElasticQuotas.
type Right struct {
	// Name of role and binding.
	Name string
	// Namespace in which the right holds; empty is all namespaces.
	Namespace string
	// Quotas are the names of the ElasticQuotas.
	Quotas []string
	// Subjects that have the right.
	Subjects []rbacv1.Subject
}

// Everybody in a namespace: its default service account, which the tenancy policies take for the whole namespace.
func Everybody(namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: namespace}}
}

// Objects are a role and its binding.
func (r Right) Objects() []*unstructured.Unstructured {
	quotas := slices.Sorted(slices.Values(r.Quotas))
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{"scheduling.sigs.k8s.io"}, Resources: []string{"elasticquotas"}, ResourceNames: quotas,
		Verbs: []string{"use"},
	}}
	meta := metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace}
	version := rbacv1.SchemeGroupVersion.String()
	if r.Namespace == "" {
		return []*unstructured.Unstructured{
			Object(&rbacv1.ClusterRole{
				TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules,
			}),
			Object(&rbacv1.ClusterRoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
				Subjects: r.Subjects,
			}),
		}
	}
	return []*unstructured.Unstructured{
		Object(&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: meta, Rules: rules}),
		Object(&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.Name},
			Subjects: r.Subjects,
		}),
	}
}

// Object is a typed object without the fields that only the API server writes. Types of Kubernetes always convert.
func Object(typed runtime.Object) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(fmt.Sprintf("%T: %v", typed, err))
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return &unstructured.Unstructured{Object: content}
}
