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

package quotatree

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

var elasticQuotaKind = schema.GroupVersionKind{
	Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Kind: "ElasticQuota",
}

// live is an ElasticQuota as it is. It is read without a Go type, field by field, so that one that somebody broke is
// still an ElasticQuota with a name.
type live struct {
	object *unstructured.Unstructured
}

func (l live) name() string { return l.object.GetName() }

func (l live) where() string { return l.object.GetNamespace() + "/" + l.object.GetName() }

func (l live) ending() bool { return l.object.GetDeletionTimestamp() != nil }

func (l live) parent() string { return l.object.GetLabels()[v1alpha1.LabelQuotaParent] }

// ownership of an ElasticQuota, as a tree sees it.
type ownership int

const (
	// foreign: a person, or another tree, made it.
	foreign ownership = iota
	// former: it was made of a tree of the same name that is gone, and goes with it.
	former
	// own: it was made of the tree.
	own
)

func (l live) ownedBy(tree *v1beta1.ElasticQuotaTree) ownership {
	if l.object.GetNamespace() != tree.Namespace || l.object.GetLabels()[LabelTree] != tree.Name {
		return foreign
	}
	owner := metav1.GetControllerOfNoCopy(l.object)
	switch {
	case owner == nil || owner.UID == tree.UID:
		// Without an owner it was left behind on purpose, and is taken up again.
		return own
	case owner.Kind == v1beta1.ElasticQuotaTreeKind.Kind && owner.Name == tree.Name:
		return former
	default:
		return foreign
	}
}

func (l live) owned() bool { return metav1.GetControllerOfNoCopy(l.object) != nil }

func (l live) namespaces() []string {
	var names []string
	_ = json.Unmarshal([]byte(l.object.GetAnnotations()[annotationNamespaces]), &names)
	return names
}

// amounts of a field of the object; not ok if it cannot be read.
func (l live) amounts(fields ...string) (corev1.ResourceList, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(l.object.Object, fields...)
	if !found || err != nil {
		return nil, err == nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	list, err := parseAmounts(string(raw))
	return list, err == nil
}

// checkAmounts finds amounts that would take long to read.
func checkAmounts(fields map[string]any) error {
	if err := podtemplate.CheckQuantities(fields); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), podtemplate.ErrMalformed.Error()+": "))
	}
	return nil
}

// parseAmounts reads a JSON map of resources, unless it is one that would take long to read.
func parseAmounts(text string) (corev1.ResourceList, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	if err := checkAmounts(map[string]any{"max": value}); err != nil {
		return nil, err
	}
	var list corev1.ResourceList
	err := json.Unmarshal([]byte(text), &list)
	return list, err
}

// inUse says what pods use of the quota.
func (l live) inUse() string {
	used, _ := l.amounts("status", "used")
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if amount := used[name]; !amount.IsZero() {
			parts = append(parts, string(name)+": "+amount.String())
		}
	}
	return strings.Join(parts, ", ")
}

// desired is the object with the values of the quota, and all its other fields unchanged.
func (l live) desired(q *Quota, owner metav1.OwnerReference) *unstructured.Unstructured {
	next := l.object.DeepCopy()
	labels, annotations := orEmpty(next.GetLabels()), orEmpty(next.GetAnnotations())
	carried := strings.Split(annotations[annotationCarried], ",")
	for _, key := range slices.Concat(carried, []string{
		v1alpha1.LabelQueuePolicy, labelAllowLent, annotationNamespaces, annotationCarried, v1alpha1.AnnotationMaxJobs,
	}) {
		delete(labels, key)
		delete(annotations, key)
	}
	maps.Copy(labels, q.Labels)
	maps.Copy(annotations, q.Annotations)
	if len(q.Namespaces) > 0 {
		annotations[annotationNamespaces] = encode(q.Namespaces)
	}
	next.SetLabels(labels)
	next.SetAnnotations(annotations)
	l.setAmounts(next, q.Max, "spec", "max")
	l.setAmounts(next, q.Min, "spec", "min")
	if !l.owned() {
		next.SetOwnerReferences(append(next.GetOwnerReferences(), owner))
	}
	return next
}

// setAmounts leaves alone what says the same in other words.
func (l live) setAmounts(next *unstructured.Unstructured, want corev1.ResourceList, fields ...string) {
	if have, ok := l.amounts(fields...); ok && apiequality.Semantic.DeepEqual(have, want) ||
		len(have) == 0 && ok && len(want) == 0 {
		return
	}
	// The path is that of an object that was an ElasticQuota before.
	_ = unstructured.SetNestedMap(next.Object, amountsOf(want), fields...)
}

func amountsOf(list corev1.ResourceList) map[string]any {
	out := make(map[string]any, len(list))
	for name, amount := range list {
		out[string(name)] = amount.String()
	}
	return out
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// newQuota is the ElasticQuota of a node that has none.
func newQuota(q *Quota, namespace string, owner metav1.OwnerReference) *unstructured.Unstructured {
	object := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"max": map[string]any{}, "min": map[string]any{}}},
	}
	object.SetGroupVersionKind(elasticQuotaKind)
	object.SetNamespace(namespace)
	object.SetName(q.Name)
	return live{object}.desired(q, owner)
}

// strip keeps of an ElasticQuota what is read here. Koordinator writes the rest every second.
func strip(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok || object.GetKind() != elasticQuotaKind.Kind {
		return obj, nil
	}
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, koordinatorPrefix) && key != annotationNamespaces && key != annotationWeight &&
			key != annotationStrict {
			delete(annotations, key)
		}
	}
	object.SetAnnotations(annotations)
	if used, found, err := unstructured.NestedFieldNoCopy(object.Object, "status", "used"); found && err == nil {
		object.Object["status"] = map[string]any{"used": used}
	} else {
		delete(object.Object, "status")
	}
	return object, nil
}
