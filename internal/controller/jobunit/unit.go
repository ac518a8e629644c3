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

// Package jobunit computes the unit that a job should have: requests, pod sets, queue, quota and priority. It must not
// use a client or a clock.
package jobunit

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/override"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// copiedAnnotations are the prefixes of annotations that a unit takes over from its job.
var copiedAnnotations = []string{"koord-queue/", "scheduling.x-k8s.io/", "quota.scheduling.koordinator.sh/"}

// ownAnnotations are bookkeeping of the controller on the job; a unit never has them.
var ownAnnotations = []string{
	v1alpha1.AnnotationSuspendedBy, v1alpha1.AnnotationTemplateAdditions,
	v1alpha1.AnnotationAdopted, v1alpha1.AnnotationParkedReason, v1alpha1.AnnotationResumed,
	v1alpha1.AnnotationGangGroup, v1alpha1.AnnotationGangs, v1alpha1.AnnotationWholeCounts,
	v1alpha1.AnnotationJobDefaults, v1alpha1.AnnotationUnsuspendable, v1alpha1.AnnotationDoubts,
}

// Of is the unit that the job should have, with this priority. The job is read as its demand was.
func Of(job *jobs.Job, d Demand, priority *int32) *v1alpha1.QueueUnit {
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{
		Namespace:   job.Object.GetNamespace(),
		Name:        job.UnitName(),
		Labels:      unitLabels(job.Object, d),
		Annotations: unitAnnotations(job.Object),
	}}
	u.OwnerReferences = ownersOf(job)
	u.Spec = v1alpha1.QueueUnitSpec{
		ConsumerRef:       consumerOf(job),
		Priority:          priority,
		PriorityClassName: d.Priority.Class,
		Queue:             d.queueName(),
		Quotas:            d.quotas,
		PodSets:           d.UnitSets,
		Request:           d.Request,
		Resource:          d.Request,

		MaximumExecutionTimeSeconds: d.maximumTime,
	}
	if d.maximumTime != nil { // which a label of another system may say
		Annotate(u, v1alpha1.AnnotationMaxExecutionTime, strconv.Itoa(int(*d.maximumTime)))
	}
	if d.Gangs != nil {
		Annotate(u, v1alpha1.AnnotationGangGroup, strings.Join(d.Gangs.All, ","))
		Annotate(u, v1alpha1.AnnotationGangs, strings.Join(d.Gangs.Own, ","))
	}
	if job.Kind.CanBeSuspended() && !jobs.CanBeSuspended(job) {
		Annotate(u, v1alpha1.AnnotationUnsuspendable, "true")
	}
	if d.Problem != nil {
		Park(u, d.Problem)
	}
	return u
}

// Park makes a unit inactive and says that it was the controller who did.
func Park(u *v1alpha1.QueueUnit, p *Problem) {
	inactive := false
	u.Spec.Active = &inactive
	Annotate(u, v1alpha1.AnnotationParkedReason, p.Reason)
}

// Parked is a copy of the unit that is.
func Parked(u *v1alpha1.QueueUnit, p *Problem) *v1alpha1.QueueUnit {
	u = u.DeepCopy()
	Park(u, p)
	return u
}

// Annotate gives a unit an annotation.
func Annotate(u *v1alpha1.QueueUnit, key, value string) {
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[key] = value
}

func unitLabels(job *unstructured.Unstructured, d Demand) map[string]string {
	labels := maps.Clone(job.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	for _, key := range v1alpha1.QuotaLabels { // a unit carries the first of them only
		delete(labels, key)
	}
	delete(labels, v1alpha1.LabelPreemptibleFallback)
	Set(labels, v1alpha1.LabelQuotaName, d.Quota)
	Set(labels, v1alpha1.LabelPreemptible, d.preemptible)
	labels[v1alpha1.LabelCreatedBy] = v1alpha1.CreatedByController
	return labels
}

// Set gives a map a value; one that is empty is taken away.
func Set(m map[string]string, key, value string) {
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}

func unitAnnotations(job *unstructured.Unstructured) map[string]string {
	var copied map[string]string
	for key, value := range job.GetAnnotations() {
		if !copiesAnnotation(key) {
			continue
		}
		if copied == nil {
			copied = map[string]string{}
		}
		copied[key] = value
	}
	return copied
}

func copiesAnnotation(key string) bool {
	if slices.Contains(ownAnnotations, key) || override.Is(key) {
		return false
	}
	for _, prefix := range copiedAnnotations {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// ownersOf a unit: its job, so that it goes with that. The unit of a group of pods is deleted once there are none.
func ownersOf(job *jobs.Job) []metav1.OwnerReference {
	if job.Kind.OfPods() {
		return nil
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(job.Object, job.Kind.GVK)}
}

// consumerOf is what a unit names as its job: no object is a group of pods.
func consumerOf(job *jobs.Job) *corev1.ObjectReference {
	if job.Kind.OfPods() {
		return nil
	}
	version, name := job.Kind.GVK.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: name,
		Namespace: job.Object.GetNamespace(), Name: job.Object.GetName(), UID: job.Object.GetUID(),
	}
}

// podSetsOf are the pod sets as a unit has them, with whole templates or with what scheduling needs of them.
func podSetsOf(of []jobs.PodSet, whole bool) ([]v1alpha1.PodSet, error) {
	sets := make([]v1alpha1.PodSet, 0, len(of))
	for i := range of {
		raw := of[i].Raw
		if !whole {
			var err error
			if raw, err = podtemplate.Reduce(raw); err != nil {
				return nil, err
			}
		}
		sets = append(sets, v1alpha1.PodSet{
			Name: of[i].Name, Count: of[i].Count, MinCount: of[i].Least, Template: runtime.RawExtension{Raw: raw},
		})
	}
	return sets, nil
}

// Relation of the unit that has a job's unit name to that job.
type Relation int

const (
	// Absent: there is no such unit.
	Absent Relation = iota
	// Own: its consumer is the job.
	Own
	// Stale: its consumer is a job of that kind and name which is not this one: an earlier one, or one of another
	// namespace.
	Stale
	// Foreign: it stands for something else, or for nothing.
	Foreign
)

// Relate compares by UID: a job that was created again under its name is another job.
func Relate(job *jobs.Job, u *v1alpha1.QueueUnit) Relation {
	if u == nil {
		return Absent
	}
	ref := u.Spec.ConsumerRef
	switch {
	case ref == nil && job.Kind.OfPods() && CreatedByUs(u):
		return Own
	case ref == nil || !RefersTo(job.Kind, ref):
		return Foreign
	case ref.Namespace != "" && ref.Namespace != job.Object.GetNamespace():
		return Stale // no unit stands for a job of another namespace
	case ref.Name != job.Object.GetName():
		return Foreign
	case ref.UID != "" && ref.UID != job.Object.GetUID():
		return Stale
	default:
		return Own
	}
}

// CreatedByUs says whether the unit was made for a job.
func CreatedByUs(u *v1alpha1.QueueUnit) bool {
	return u.Labels[v1alpha1.LabelCreatedBy] == v1alpha1.CreatedByController
}

// RefersTo says whether a reference is to a job of the kind.
func RefersTo(kind *jobkind.Kind, ref *corev1.ObjectReference) bool {
	return ref.GroupVersionKind() == kind.GVK
}

// Corrected returns the unit with all fields that follow from its job, or nil if nothing differs. It leaves fields that
// other people may set and the job says nothing about. These are spec.active, spec.queue if the job names no queue, and
// further labels and annotations.
func Corrected(have, want *v1alpha1.QueueUnit) *v1alpha1.QueueUnit {
	u := have.DeepCopy()
	correctMeta(u, want)
	if u.Spec.ConsumerRef == nil || u.Spec.ConsumerRef.UID == "" {
		u.Spec.ConsumerRef = want.Spec.ConsumerRef
	}
	correctActive(u, have, want)
	CorrectTime(u, want)
	u.Spec.Priority = want.Spec.Priority
	u.Spec.PriorityClassName = want.Spec.PriorityClassName
	if want.Spec.Queue != "" {
		u.Spec.Queue = want.Spec.Queue
	}
	u.Spec.Quotas = want.Spec.Quotas
	CorrectRequest(u, want.Spec.Request)
	if !enoughPodSets(u.Spec.PodSets, want.Spec.PodSets) {
		u.Spec.PodSets = want.Spec.PodSets
	}
	if equality.Semantic.DeepEqual(u, have) {
		return nil
	}
	if u.Annotations[v1alpha1.AnnotationDoubts] != "" && !heldOrLetGo(u, have) {
		delete(u.Annotations, v1alpha1.AnnotationDoubts) // the doubts were about the former job
	}
	return u
}

// heldOrLetGo says that two states of a unit differ in whether its owner wants it to wait, and in nothing else.
func heldOrLetGo(u, have *v1alpha1.QueueUnit) bool {
	plain := u.DeepCopy()
	plain.Spec.Active = have.Spec.Active
	for _, key := range []string{v1alpha1.AnnotationParkedReason, v1alpha1.AnnotationHold, v1alpha1.AnnotationActive} {
		Set(plain.Annotations, key, have.Annotations[key])
	}
	return equality.Semantic.DeepEqual(plain, have)
}

// TakenOver is the unit of another controller with the job that it stands for, its owner and its labels as want has
// them. The quota stays the one that the unit names.
func TakenOver(have, want *v1alpha1.QueueUnit) *v1alpha1.QueueUnit {
	u := have.DeepCopy()
	u.Spec.ConsumerRef, u.OwnerReferences = want.Spec.ConsumerRef, want.OwnerReferences
	if u.Labels == nil {
		u.Labels = map[string]string{}
	}
	for _, key := range v1alpha1.QuotaLabels {
		if u.Labels[v1alpha1.LabelQuotaName] == "" {
			Set(u.Labels, v1alpha1.LabelQuotaName, u.Labels[key])
		}
	}
	for _, key := range v1alpha1.QuotaLabels[1:] {
		delete(u.Labels, key)
	}
	Set(u.Labels, v1alpha1.LabelPreemptible,
		cmp.Or(u.Labels[v1alpha1.LabelPreemptible], u.Labels[v1alpha1.LabelPreemptibleFallback]))
	delete(u.Labels, v1alpha1.LabelPreemptibleFallback)
	u.Labels[v1alpha1.LabelCreatedBy] = v1alpha1.CreatedByController
	return u
}

// CorrectRequest has the unit ask for this, under the former name too. A unit of an earlier release has nothing under
// the former name. It stays so until its request changes, or an upgrade would write every unit of a backlog.
func CorrectRequest(u *v1alpha1.QueueUnit, request corev1.ResourceList) {
	same := equality.Semantic.DeepEqual(u.Spec.Request, request)
	if same && (u.Spec.Resource == nil || equality.Semantic.DeepEqual(u.Spec.Resource, request)) {
		return
	}
	u.Spec.Request, u.Spec.Resource = request, request
}

func correctMeta(u, want *v1alpha1.QueueUnit) {
	if u.Labels == nil {
		u.Labels = map[string]string{}
	}
	for _, key := range append([]string{
		v1alpha1.LabelPreemptible, v1alpha1.LabelPreemptibleFallback, v1alpha1.QueueNameKey,
	}, v1alpha1.QuotaLabels[:]...) {
		Set(u.Labels, key, want.Labels[key])
	}
	maps.Copy(u.Labels, want.Labels)
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	for _, key := range []string{
		v1alpha1.QueueNameKey, v1alpha1.AnnotationParkedReason, v1alpha1.AnnotationAdopted,
		v1alpha1.AnnotationGangGroup, v1alpha1.AnnotationGangs, v1alpha1.AnnotationJobDefaults, v1alpha1.QueuePathKey,
		v1alpha1.AnnotationUnsuspendable, v1alpha1.AnnotationPreemptable,
	} {
		Set(u.Annotations, key, want.Annotations[key])
	}
	maps.Copy(u.Annotations, want.Annotations)
	if len(u.Annotations) == 0 {
		u.Annotations = nil
	}
	if len(want.OwnerReferences) > 0 && !metav1.IsControlledBy(u, ownedBy(want)) {
		u.OwnerReferences = want.OwnerReferences
	}
}

// ownedBy is an object with the UID of the controlling owner, as IsControlledBy asks for.
func ownedBy(u *v1alpha1.QueueUnit) metav1.Object {
	return &metav1.ObjectMeta{UID: u.OwnerReferences[0].UID}
}

// correctActive leaves what a person made inactive: the owner of the job must not undo it.
func correctActive(u, have, want *v1alpha1.QueueUnit) {
	switch {
	case InactiveByHand(have):
		delete(u.Annotations, v1alpha1.AnnotationParkedReason)
	case want.Spec.Active != nil:
		u.Spec.Active = want.Spec.Active
	case have.Annotations[v1alpha1.AnnotationParkedReason] != "":
		u.Spec.Active = nil
	}
}

// CorrectTime sets for how long the job may run, if it says so or has said so. Else it is left to others.
func CorrectTime(u, want *v1alpha1.QueueUnit) {
	_, said := u.Annotations[v1alpha1.AnnotationMaxExecutionTime]
	if want.Spec.MaximumExecutionTimeSeconds == nil && !said {
		return
	}
	u.Spec.MaximumExecutionTimeSeconds = want.Spec.MaximumExecutionTimeSeconds
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	Set(u.Annotations, v1alpha1.AnnotationMaxExecutionTime, want.Annotations[v1alpha1.AnnotationMaxExecutionTime])
}

// InactiveByHand says that somebody made the unit inactive who is not the controller.
func InactiveByHand(u *v1alpha1.QueueUnit) bool {
	return u.Inactive() && u.Annotations[v1alpha1.AnnotationParkedReason] == ""
}

// enoughPodSets says whether have is want, or want and parts of templates that no scheduler reads. The release before
// wrote whole templates: they are left, or an upgrade would write every unit of a backlog.
func enoughPodSets(have, want []v1alpha1.PodSet) bool {
	return samePodSets(have, want) || samePodSets(reduced(have), want)
}

// SameScheduling says whether two lists of pod sets, whole or reduced, mean the same to a scheduler.
func SameScheduling(a, b []v1alpha1.PodSet) bool {
	return samePodSets(reduced(a), reduced(b))
}

func reduced(sets []v1alpha1.PodSet) []v1alpha1.PodSet {
	out := slices.Clone(sets)
	for i := range out {
		if raw, err := podtemplate.Reduce(out[i].Template.Raw); err == nil {
			out[i].Template.Raw = raw
		}
	}
	return out
}

// samePodSets compares by meaning; the order of keys in a template is not kept by the API server.
func samePodSets(a, b []v1alpha1.PodSet) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Count != b[i].Count || !equality.Semantic.DeepEqual(a[i].MinCount, b[i].MinCount) {
			return false
		}
		if !sameJSON(a[i].Template.Raw, b[i].Template.Raw) {
			return false
		}
	}
	return true
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(canonical(x), canonical(y))
}

// canonical drops what comes and goes on the way to the API server and back without a meaning: null fields, and
// metadata without any field.
func canonical(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			item = canonical(item)
			v[key] = item
			if fields, ok := item.(map[string]any); item == nil || key == "metadata" && ok && len(fields) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	}
	return value
}
