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

package managedjobs

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobdefaults"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

// systemNamespaces are never managed: a queue must not hold up what the cluster itself runs on.
var systemNamespaces = sets.New("kube-system", "kube-public", "kube-node-lease", "koordinator-system",
	v1alpha1.DefaultQueueNamespace)

// queueKeys are those by which a job asks for a queue, or for that of the quota at a path.
var queueKeys = []string{v1alpha1.QueueNameKey, v1alpha1.QueuePathKey}

// NamesNoQueue is why most jobs that are not managed are not.
const NamesNoQueue = "it names neither a quota nor a queue in its labels"

// Predicate decides which jobs are managed. It is immutable and safe for concurrent use.
type Predicate struct {
	kinds map[schema.GroupVersionKind]jobkind.Kind
	names []schema.GroupVersionKind
	parts parts
	// followed are the managed kinds, and those that stand between their jobs and the pods of these.
	managed, between map[schema.GroupKind]bool
	followed         []jobkind.Object
	namespaces       labels.Selector
	requireQueueName bool
	mapped           MappedNamespaces
	otherQueueLabels []string
	schedulerNames   []string
	aliases          alias.Table
	placement        quotapath.Rules
	gangs            []string
	defaults         []jobdefaults.Entry
	unmanaged        UnmanagedJobs
	observes         bool
	endsLeftPods     bool
	hash             string
}

// NewPredicate compiles a configuration; it fails for an unknown kind and for a malformed selector.
func NewPredicate(m Jobs) (*Predicate, error) {
	m = m.withDefaults()
	selector, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("%s.namespaceSelector: %w", Key, err)
	}
	kinds, err := m.compiled()
	if err != nil {
		return nil, err
	}
	aliases, err := alias.Compile(m.Aliases)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", Key, err)
	}
	placement, err := quotapath.Compile(m.Placement)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", Key, err)
	}
	p := &Predicate{
		kinds:            make(map[schema.GroupVersionKind]jobkind.Kind, len(kinds)),
		parts:            partsOf(append(jobkind.Builtin(), kinds...)),
		managed:          map[schema.GroupKind]bool{},
		between:          map[schema.GroupKind]bool{},
		namespaces:       selector,
		requireQueueName: m.RequireQueueName,
		mapped:           m.ManageMappedNamespaces,
		otherQueueLabels: m.OtherQueueLabels,
		schedulerNames:   m.SchedulerNames,
		aliases:          aliases,
		placement:        placement,
		gangs:            m.Gangs,
		defaults:         m.JobDefaults,
		unmanaged:        m.UnmanagedJobs,
		observes:         m.Mode == ModeObserve,
		endsLeftPods:     m.LeftPods == LeftPodsEnd,
		hash:             m.Hash(),
	}
	for i := range kinds {
		p.manage(&kinds[i])
	}
	return p, nil
}

func (p *Predicate) manage(kind *jobkind.Kind) {
	p.kinds[kind.GVK] = *kind
	p.names = append(p.names, kind.GVK)
	if kind.OfPods() {
		return // objects of such a pod are no part of the job
	}
	p.managed[kind.GVK.GroupKind()] = true
	p.follow(jobkind.Object{GVK: kind.GVK, GVR: kind.GVR})
	for _, child := range kind.Children {
		p.between[child.GVK.GroupKind()] = true
		p.follow(child)
	}
}

func (p *Predicate) follow(o jobkind.Object) {
	if o.GVK == jobkind.PodKind {
		return
	}
	if !slices.ContainsFunc(p.followed, func(other jobkind.Object) bool { return other.GVR == o.GVR }) {
		p.followed = append(p.followed, o)
	}
}

// PodsOwnPods says whether pods of managed jobs may be owned by other pods of them.
func (p *Predicate) PodsOwnPods() bool { return p.between[jobkind.PodKind.GroupKind()] }

// Followed are the managed kinds and those of objects between managed jobs and their pods, but for pods.
func (p *Predicate) Followed() []jobkind.Object { return p.followed }

// Kinds returns the managed kinds in a fixed order.
func (p *Predicate) Kinds() []jobkind.Kind {
	kinds := make([]jobkind.Kind, 0, len(p.names))
	for _, gvk := range p.names {
		kinds = append(kinds, p.kinds[gvk])
	}
	return kinds
}

// Schedulers are those whose pods the queue holds.
func (p *Predicate) Schedulers() []string { return p.schedulerNames }

// EveryJobIsGang says whether jobs of the kind are gangs whether they ask for it or not.
func (p *Predicate) EveryJobIsGang(kind *jobkind.Kind) bool {
	return slices.Contains(p.gangs, kind.String())
}

// Hash of the configuration that the predicate was made from.
func (p *Predicate) Hash() string { return p.hash }

// ManagesKind says whether jobs of this kind are managed at all.
func (p *Predicate) ManagesKind(gvk schema.GroupVersionKind) bool {
	_, ok := p.kinds[gvk]
	return ok
}

// ManagesKindNamed says whether jobs of the kind that String of it names so are managed.
func (p *Predicate) ManagesKindNamed(name string) bool {
	return slices.ContainsFunc(p.names, func(gvk schema.GroupVersionKind) bool { return jobkind.KindString(gvk) == name })
}

// UnitName is the name of the unit of a job; false where jobs of this kind are not managed.
func (p *Predicate) UnitName(gvk schema.GroupVersionKind, job string) (string, bool) {
	kind, ok := p.kinds[gvk]
	return kind.UnitName(job), ok
}

// Unsuspendable says whether jobs of a kind are managed and cannot be suspended. said is the word of a unit for its own
// job, which counts for kinds with such jobs only: units can be forged.
func (p *Predicate) Unsuspendable(gvk schema.GroupVersionKind, said bool) bool {
	kind, ok := p.kinds[gvk]
	return ok && (!kind.CanBeSuspended() || said && kind.SuspendUnless != nil)
}

// ManagesOwner says whether an owner reference names a job of a managed kind.
func (p *Predicate) ManagesOwner(ref metav1.OwnerReference) bool { return p.managed[GroupKind(ref)] }

// KindOf is the kind that an owner reference names, in the version in which jobs of it are managed, and says whether
// they are. Without a predicate nothing is managed.
func (p *Predicate) KindOf(ref metav1.OwnerReference) (kind string, managed bool) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if p == nil || !p.managed[gvk.GroupKind()] {
		return jobkind.KindString(gvk), false
	}
	if _, exact := p.kinds[gvk]; !exact {
		for _, known := range p.names {
			if known.GroupKind() == gvk.GroupKind() {
				gvk = known
			}
		}
	}
	return jobkind.KindString(gvk), true
}

// FollowsOwner says whether an owner reference names an object that may be, or belong to, a managed job.
func (p *Predicate) FollowsOwner(ref metav1.OwnerReference) bool {
	return p.ManagesOwner(ref) || p.between[GroupKind(ref)]
}

// GatesUnmanaged says whether jobs that ask for no queue do not run in the namespaces of the queues.
func (p *Predicate) GatesUnmanaged() bool { return p.unmanaged == UnmanagedGate }

// PartsOfUnmanaged is what becomes of pods of a job that is a part of one of a kind that is not managed.
func (p *Predicate) PartsOfUnmanaged(namespace string, namespaceLabels map[string]string) UnmanagedJobs {
	if !p.ManagesNamespace(namespace, namespaceLabels) {
		return UnmanagedPass
	}
	return p.unmanaged
}

// GroupKind that an owner reference names.
func GroupKind(ref metav1.OwnerReference) schema.GroupKind {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return schema.GroupKind{}
	}
	return schema.GroupKind{Group: gv.Group, Kind: ref.Kind}
}

// ManagesNamespace says whether jobs of this namespace are managed at all.
func (p *Predicate) ManagesNamespace(namespace string, namespaceLabels map[string]string) bool {
	return !systemNamespaces.Has(namespace) && p.namespaces.Matches(labels.Set(namespaceLabels))
}

// ManagesLabels decides by the namespace and by sets of labels. These are the labels of the job, of its pod templates
// or of a pod, and QueueAnnotation of the job. One set with a quota, path or queue name is enough. A set with a label
// of another queue system excludes the job.
func (p *Predicate) ManagesLabels(
	namespace string, namespaceLabels map[string]string, labelSets ...map[string]string,
) bool {
	if !p.ManagesNamespace(namespace, namespaceLabels) {
		return false
	}
	asked := false
	for _, set := range labelSets {
		if jobkind.FirstOf(set, p.otherQueueLabels...) != "" {
			return false
		}
		asked = asked || jobkind.FirstOf(set, queueKeys...) != "" ||
			!p.requireQueueName && jobkind.FirstOf(set, v1alpha1.QuotaLabels[:]...) != ""
	}
	return asked
}

// Unmanaged is the treatment of a job that asks for no queue, by the same data as ManagesLabels. It is UnmanagedPass
// for a managed job, for a job of another queue system, and in a namespace that is not selected.
func (p *Predicate) Unmanaged(
	namespace string, namespaceLabels map[string]string, labelSets ...map[string]string,
) UnmanagedJobs {
	other := func(set map[string]string) bool { return jobkind.FirstOf(set, p.otherQueueLabels...) != "" }
	if !p.ManagesNamespace(namespace, namespaceLabels) || slices.ContainsFunc(labelSets, other) ||
		p.ManagesLabels(namespace, namespaceLabels, labelSets...) {
		return UnmanagedPass
	}
	return p.unmanaged
}

// AsksForMapping says whether it matters that a quota takes a namespace with these labels.
func (p *Predicate) AsksForMapping(namespaceLabels map[string]string) bool {
	switch p.mapped {
	case MappedNever:
		return false
	case MappedAlways:
		return true
	default:
		return namespaceLabels[v1alpha1.LabelManaged] == "true"
	}
}

// MappedNamespace is a set for ManagesLabels: that of a job whose namespace a quota takes, where it matters.
func MappedNamespace(mapped bool) map[string]string {
	if !mapped {
		return nil
	}
	return map[string]string{v1alpha1.LabelQuotaName: "of the namespace"}
}

// LabelKeys are the keys of all labels that ManagesLabels and Aliased look at.
func (p *Predicate) LabelKeys() []string {
	return slices.Concat(queueKeys, v1alpha1.QuotaLabels[:], p.otherQueueLabels, p.aliases.Keys())
}

// QueueAnnotation reduces annotations to a set for ManagesLabels and Aliased: those that name a queue.
func QueueAnnotation(annotations map[string]string) map[string]string {
	set := alias.Annotations(annotations)
	for _, key := range queueKeys {
		if name := annotations[key]; name != "" {
			if set == nil {
				set = map[string]string{}
			}
			set[key] = name
		}
	}
	return set
}

// ManagesJob is the whole predicate: kind, namespace, labels, owners and other managers of one object. podLabels are
// those that its pods will have in addition to their templates' own; the scheduler judges pods by them too.
func (p *Predicate) ManagesJob(
	job *jobs.Job, namespaceLabels map[string]string, podLabels ...map[string]string,
) bool {
	sets, ok := labelsOf(p, job, namespaceLabels, podLabels)
	return ok && p.ManagesLabels(job.Object.GetNamespace(), namespaceLabels, sets...)
}

// UnmanagedJob is Unmanaged of one object.
func (p *Predicate) UnmanagedJob(
	job *jobs.Job, namespaceLabels map[string]string, podLabels ...map[string]string,
) UnmanagedJobs {
	sets, ok := labelsOf(p, job, namespaceLabels, podLabels)
	if !ok {
		return UnmanagedPass
	}
	return p.Unmanaged(job.Object.GetNamespace(), namespaceLabels, sets...)
}

// labelsOf are the sets of labels that a job is judged by; false if it is not managed whatever they say.
func labelsOf(
	p *Predicate, job *jobs.Job, namespaceLabels map[string]string, podLabels []map[string]string,
) ([]map[string]string, bool) {
	if !p.ManagesKind(job.Kind.GVK) || job.ManagedByOther() {
		return nil, false
	}
	if p.IsPart(job.Kind.GVK.GroupKind(), metav1.GetControllerOfNoCopy(job.Object)) {
		return nil, false
	}
	sets := append(setsOf(job), podLabels...)
	return append(sets, Aliased(p, namespaceLabels, sets...), Placed(p, namespaceLabels)), true
}

// QueuedElsewhere says whether somebody else decides when the job runs: another controller, or another queue system.
func (p *Predicate) QueuedElsewhere(job *jobs.Job) bool {
	if !p.ManagesKind(job.Kind.GVK) {
		return false
	}
	sets := append(job.TemplateLabels(), job.Object.GetLabels())
	return job.ManagedByOther() || slices.ContainsFunc(sets, func(set map[string]string) bool {
		return jobkind.FirstOf(set, p.otherQueueLabels...) != ""
	})
}

// QueuesPods says whether pods that nobody owns are queued at all.
func (p *Predicate) QueuesPods() bool {
	_, manages := p.kinds[jobkind.PodKind]
	return manages
}

// QueuesPod says whether a pod waits as one of a group: nobody controls it, and it names a quota or a queue.
func (p *Predicate) QueuesPod(pod metav1.Object) bool {
	labels := pod.GetLabels()
	return p.QueuesPods() && metav1.GetControllerOfNoCopy(pod) == nil &&
		(jobkind.FirstOf(labels, queueKeys...) != "" || jobkind.FirstOf(labels, v1alpha1.QuotaLabels[:]...) != "")
}

// UnitNamedBy is the unit, as namespace/name, that a pod itself names, by its annotation or by its group. It is empty
// for other pods.
func (p *Predicate) UnitNamedBy(pod *corev1.Pod) string {
	if key := pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]; key != "" {
		return key
	}
	if p == nil || !p.QueuesPod(pod) {
		return ""
	}
	kind := p.kinds[jobkind.PodKind]
	return pod.Namespace + "/" + kind.UnitName(podgroup.NameOf(pod))
}
