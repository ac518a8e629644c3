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

package jobs

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// systemNamespaces are never managed: a queue must not hold up what the cluster itself runs on.
var systemNamespaces = sets.New("kube-system", "kube-public", "kube-node-lease", "koordinator-system",
	v1alpha1.DefaultQueueNamespace)

// Predicate decides which jobs are managed. It is immutable and safe for concurrent use.
type Predicate struct {
	kinds            map[schema.GroupVersionKind]Kind
	names            []schema.GroupVersionKind
	namespaces       labels.Selector
	requireQueueName bool
	otherQueueLabels []string
	unmanaged        UnmanagedJobs
	hash             string
}

// NewPredicate compiles a configuration; it fails for an unknown kind and for a malformed selector.
func NewPredicate(m ManagedJobs) (*Predicate, error) { return NewPredicateOf(Builtin(), m) }

// NewPredicateOf is NewPredicate where these kinds are known.
func NewPredicateOf(known []Kind, m ManagedJobs) (*Predicate, error) {
	m = m.withDefaults()
	selector, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("%s.namespaceSelector: %w", ManagedJobsKey, err)
	}
	p := &Predicate{
		kinds:            make(map[schema.GroupVersionKind]Kind, len(m.Kinds)),
		namespaces:       selector,
		requireQueueName: m.RequireQueueName,
		otherQueueLabels: m.OtherQueueLabels,
		unmanaged:        m.UnmanagedJobs,
		hash:             m.Hash(),
	}
	for _, name := range m.Kinds {
		at := slices.IndexFunc(known, func(k Kind) bool { return k.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("%s.kinds: %q is not known", ManagedJobsKey, name)
		}
		p.kinds[known[at].GVK] = known[at]
		p.names = append(p.names, known[at].GVK)
	}
	return p, nil
}

// Kinds returns the managed kinds in a fixed order.
func (p *Predicate) Kinds() []Kind {
	kinds := make([]Kind, 0, len(p.names))
	for _, gvk := range p.names {
		kinds = append(kinds, p.kinds[gvk])
	}
	return kinds
}

// Hash of the configuration that the predicate was made from.
func (p *Predicate) Hash() string { return p.hash }

// ManagesKind says whether jobs of this kind are managed at all.
func (p *Predicate) ManagesKind(gvk schema.GroupVersionKind) bool {
	_, ok := p.kinds[gvk]
	return ok
}

// UnitName is the name of the unit of a job; false where jobs of this kind are not managed.
func (p *Predicate) UnitName(gvk schema.GroupVersionKind, job string) (string, bool) {
	kind, ok := p.kinds[gvk]
	return kind.UnitName(job), ok
}

// ManagesOwner says whether an owner reference names a job of a managed kind.
func (p *Predicate) ManagesOwner(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && p.ManagesKind(gv.WithKind(ref.Kind))
}

// ManagesNamespace says whether jobs of this namespace are managed at all.
func (p *Predicate) ManagesNamespace(namespace string, namespaceLabels map[string]string) bool {
	return !systemNamespaces.Has(namespace) && p.namespaces.Matches(labels.Set(namespaceLabels))
}

// ManagesLabels decides by the namespace and by what is known of a job: any number of sets, such as the labels
// of the job, of its pod templates or of a pod, and QueueAnnotation of the job. One set with a quota or
// queue name is enough; one with another queue system's label is too many.
func (p *Predicate) ManagesLabels(
	namespace string, namespaceLabels map[string]string, labelSets ...map[string]string,
) bool {
	if !p.ManagesNamespace(namespace, namespaceLabels) {
		return false
	}
	asked := false
	for _, set := range labelSets {
		if hasAny(set, p.otherQueueLabels...) {
			return false
		}
		asked = asked || hasAny(set, v1alpha1.QueueNameKey) || !p.requireQueueName && hasAny(set, v1alpha1.QuotaLabels[:]...)
	}
	return asked
}

// Unmanaged is what becomes of a job that asks for no queue, by what ManagesLabels decides by: UnmanagedPass as well
// for one that is managed, that another queue system has, or whose namespace is not selected.
func (p *Predicate) Unmanaged(
	namespace string, namespaceLabels map[string]string, labelSets ...map[string]string,
) UnmanagedJobs {
	other := func(set map[string]string) bool { return hasAny(set, p.otherQueueLabels...) }
	if !p.ManagesNamespace(namespace, namespaceLabels) || slices.ContainsFunc(labelSets, other) ||
		p.ManagesLabels(namespace, namespaceLabels, labelSets...) {
		return UnmanagedPass
	}
	return p.unmanaged
}

// LabelKeys are the keys of all labels that ManagesLabels looks at.
func (p *Predicate) LabelKeys() []string {
	return slices.Concat([]string{v1alpha1.QueueNameKey}, v1alpha1.QuotaLabels[:], p.otherQueueLabels)
}

// QueueAnnotation reduces annotations to a set for ManagesLabels: the one annotation that names a queue.
func QueueAnnotation(annotations map[string]string) map[string]string {
	if name := annotations[v1alpha1.QueueNameKey]; name != "" {
		return map[string]string{v1alpha1.QueueNameKey: name}
	}
	return nil
}

// ManagesJob is the whole predicate: kind, namespace, labels, owners and other managers of one object. podLabels are
// those that its pods will have beside their templates' own; the scheduler judges pods by them too.
func (p *Predicate) ManagesJob(
	job *unstructured.Unstructured, namespaceLabels map[string]string, podLabels ...map[string]string,
) bool {
	sets, ok := p.labelsOf(job, podLabels)
	return ok && p.ManagesLabels(job.GetNamespace(), namespaceLabels, sets...)
}

// UnmanagedJob is Unmanaged of one object.
func (p *Predicate) UnmanagedJob(
	job *unstructured.Unstructured, namespaceLabels map[string]string, podLabels ...map[string]string,
) UnmanagedJobs {
	sets, ok := p.labelsOf(job, podLabels)
	if !ok {
		return UnmanagedPass
	}
	return p.Unmanaged(job.GetNamespace(), namespaceLabels, sets...)
}

// labelsOf are the sets of labels that a job is judged by; false if it is not managed whatever they say.
func (p *Predicate) labelsOf(
	job *unstructured.Unstructured, podLabels []map[string]string,
) ([]map[string]string, bool) {
	kind, ok := p.kinds[job.GroupVersionKind()]
	if !ok || kind.ManagedByOther(job) {
		return nil, false
	}
	if owner := metav1.GetControllerOfNoCopy(job); owner != nil && p.ManagesOwner(*owner) {
		return nil, false // it is part of a job that waits as a whole
	}
	sets := append(kind.templateLabels(job), job.GetLabels(), QueueAnnotation(job.GetAnnotations()))
	return append(sets, podLabels...), true
}

// hasAny says whether the set names a non-empty value for one of the keys.
func hasAny(set map[string]string, keys ...string) bool {
	for _, key := range keys {
		if set[key] != "" {
			return true
		}
	}
	return false
}

// QueuedElsewhere says whether somebody else decides when the job runs: another controller, or another queue system.
func (p *Predicate) QueuedElsewhere(job *unstructured.Unstructured) bool {
	kind, ok := p.kinds[job.GroupVersionKind()]
	if !ok {
		return false
	}
	sets := append(kind.templateLabels(job), job.GetLabels())
	return kind.ManagedByOther(job) || slices.ContainsFunc(sets, func(set map[string]string) bool {
		return hasAny(set, p.otherQueueLabels...)
	})
}
