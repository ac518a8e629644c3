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

package controller

import (
	"bytes"
	"errors"
	"fmt"
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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/override"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/podupdate"
)

// reasonQuotaMismatch parks units of jobs that name more than one quota.
const reasonQuotaMismatch = "QuotaMismatch"

// reasonUnsupportedJob parks units of jobs that their kind says cannot be queued.
const reasonUnsupportedJob = "UnsupportedJob"

// reasonOtherScheduler parks units of jobs whose pods go to a scheduler that no queue holds them back from.
const reasonOtherScheduler = "OtherScheduler"

// reasonEstimateChanged parks units that were admitted with an estimate that is no more, until they wait again.
const reasonEstimateChanged = "EstimateChanged"

// reasonHeldByOwner parks units of jobs whose owner does not want them to run now.
const reasonHeldByOwner = "HeldByOwner"

// reasonSuspendedByOwner parks units of jobs that somebody has suspended since they were admitted.
const reasonSuspendedByOwner = "SuspendedByOwner"

// copiedAnnotations are the prefixes of annotations that a unit takes over from its job.
var copiedAnnotations = []string{"koord-queue/", "scheduling.x-k8s.io/", "quota.scheduling.koordinator.sh/"}

// ownAnnotations are bookkeeping of the controller on the job; a unit never has them.
var ownAnnotations = []string{
	v1alpha1.AnnotationSuspendedBy, v1alpha1.AnnotationTemplateAdditions,
	v1alpha1.AnnotationAdopted, v1alpha1.AnnotationParkedReason, v1alpha1.AnnotationResumed,
	v1alpha1.AnnotationGangGroup, v1alpha1.AnnotationGangs, v1alpha1.AnnotationWholeCounts,
}

// problem is why a job cannot wait in a queue as it is.
type problem struct{ Reason, Message string }

// demand is what a job asks for, read from the job and from what the cluster does to its pods.
type demand struct {
	// own are the labels that the job names itself; its pods get them where their templates lack them.
	own ownLabels
	// quota and preemptible are those labels as its pods will have them: a ClusterColocationProfile may set others.
	quota, preemptible string
	queue              string
	priority           jobs.Priority
	// priorityFromProfile: a ClusterColocationProfile gives the priority, not the job.
	priorityFromProfile bool
	// maximumTime is for how many seconds the job may run; nil if it does not say.
	maximumTime *int32
	podSets     []jobs.PodSet
	// unitSets are the pod sets as the unit has them.
	unitSets []v1alpha1.PodSet
	// request is that of the whole job, requests of each pod set.
	request  corev1.ResourceList
	requests []corev1.ResourceList
	// gangs are those that are admitted with those of the job; nil if it is admitted without others.
	gangs   *jobs.GangGroup
	problem *problem
}

type ownLabels struct{ quota, preemptible string }

// addTo are the labels that pods of a template get when the job is resumed.
func (o ownLabels) addTo(template *corev1.PodTemplateSpec) map[string]string {
	added := map[string]string{}
	if o.quota != "" && template.Labels[v1alpha1.LabelQuotaName] == "" {
		added[v1alpha1.LabelQuotaName] = o.quota
	}
	if o.preemptible != "" && template.Labels[v1alpha1.LabelPreemptible] == "" {
		added[v1alpha1.LabelPreemptible] = o.preemptible
	}
	return added
}

// demandOf reads the job as it is without what resuming added to it, and checks asked for. One that does not run asks
// for all of its pods, however many it was resumed with. What cannot be read is left out and named in the problem.
func demandOf(
	kind *jobs.Kind, job *unstructured.Unstructured, creation *jobs.Creation, asked map[string][]podupdate.Update,
	wholeTemplates bool,
) demand {
	plain := job.DeepCopy()
	kind.Edit(plain).RestoreTemplates(asked)
	if kind.Open(plain).Suspended() {
		kind.Edit(plain).RestoreCounts()
	}
	d := demand{queue: kind.Open(plain).Queue(), own: ownLabels{preemptible: kind.Open(plain).Preemptible()}}
	var errQuota, errPriority, errSets, errReduced, errRequest, errTime error
	if d.own.quota, errQuota = kind.Open(plain).Quota(); errQuota == nil {
		errQuota = kind.Open(plain).Chargeable(d.own.quota, creation.Quota)
	}
	d.quota, d.preemptible = d.own.quota, d.own.preemptible
	d.priority, errPriority = kind.Open(plain).Priority()
	d.maximumTime, errTime = maximumTimeOf(plain)
	d.podSets, errSets = kind.Open(plain).PodSets()
	d.unitSets, errReduced = podSetsOf(d.podSets, wholeTemplates)
	templates := d.templates()
	if errSets == nil {
		errRequest = d.count(templates, creation)
	}
	if errQuota == nil && errSets == nil && creation.HasProfiles() {
		errQuota = d.followProfiles(templates, creation, d.priority.OfPods)
	}
	switch err := errors.Join(errQuota, errSets, errReduced, errRequest, errPriority, errTime); {
	case kind.Open(plain).Invalid() != "":
		d.problem = &problem{Reason: reasonUnsupportedJob, Message: kind.Open(plain).Invalid()}
	case err == nil:
	case errQuota != nil:
		d.problem = &problem{Reason: reasonQuotaMismatch, Message: event.Short(err.Error())}
	default:
		d.problem = &problem{Reason: string(unit.ReasonInvalidRequest), Message: event.Short(err.Error())}
	}
	return d
}

// maximumTimeOf reads for how many seconds a job may run.
func maximumTimeOf(job *unstructured.Unstructured) (*int32, error) {
	text, said := job.GetAnnotations()[v1alpha1.AnnotationMaxExecutionTime]
	if !said {
		return nil, nil // nothing is said, and nothing is wrong
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("annotation %s: %q is not a whole number of seconds, at least 1",
			v1alpha1.AnnotationMaxExecutionTime, event.Short(text))
	}
	seconds := int32(n)
	return &seconds, nil
}

// joinGangs reads with which jobs this one is admitted.
func (d *demand) joinGangs(
	kind *jobs.Kind, job *unstructured.Unstructured, everyJob bool, asked map[string][]podupdate.Update,
) {
	if !jobs.NamesGangGroup(kind.Open(job)) {
		return
	}
	plain := job.DeepCopy()
	kind.Edit(plain).RestoreTemplates(asked)
	var err error
	if d.gangs, err = jobs.GangGroupOf(kind.Open(plain), everyJob, kind.UnitName(job.GetName())); err != nil && d.problem == nil {
		d.problem = &problem{Reason: string(unit.ReasonInvalidRequest), Message: event.Short(err.Error())}
	}
}

// queueName is the queue that the job names, else the default queue of the quota that it names. It is written down so
// that a person sees it; where the namespace decides about the quota, only the scheduler knows.
func (d demand) queueName() string {
	if d.queue != "" {
		return d.queue
	}
	return d.quota
}

// unitOf is the unit that the job should have, with this priority.
func unitOf(kind *jobs.Kind, job *unstructured.Unstructured, d demand, priority *int32) *v1alpha1.QueueUnit {
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{
		Namespace:   job.GetNamespace(),
		Name:        kind.UnitName(job.GetName()),
		Labels:      unitLabels(job, d),
		Annotations: unitAnnotations(job),
	}}
	u.OwnerReferences = ownersOf(kind, job)
	u.Spec = v1alpha1.QueueUnitSpec{
		ConsumerRef:       consumerOf(kind, job),
		Priority:          priority,
		PriorityClassName: d.priority.Class,
		Queue:             d.queueName(),
		PodSets:           d.unitSets,
		Request:           d.request,

		MaximumExecutionTimeSeconds: d.maximumTime,
	}
	if d.gangs != nil {
		if u.Annotations == nil {
			u.Annotations = map[string]string{}
		}
		u.Annotations[v1alpha1.AnnotationGangGroup] = strings.Join(d.gangs.All, ",")
		u.Annotations[v1alpha1.AnnotationGangs] = strings.Join(d.gangs.Own, ",")
	}
	if d.problem != nil {
		park(u, d.problem)
	}
	return u
}

// park makes a unit inactive and says that it was the controller who did.
func park(u *v1alpha1.QueueUnit, p *problem) {
	inactive := false
	u.Spec.Active = &inactive
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[v1alpha1.AnnotationParkedReason] = p.Reason
}

func unitLabels(job *unstructured.Unstructured, d demand) map[string]string {
	labels := maps.Clone(job.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	for _, key := range v1alpha1.QuotaLabels { // a unit carries the first of them only
		delete(labels, key)
	}
	set(labels, v1alpha1.LabelQuotaName, d.quota)
	set(labels, v1alpha1.LabelPreemptible, d.preemptible)
	labels[v1alpha1.LabelCreatedBy] = v1alpha1.CreatedByController
	return labels
}

func set(m map[string]string, key, value string) {
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
func ownersOf(kind *jobs.Kind, job *unstructured.Unstructured) []metav1.OwnerReference {
	if kind.OfPods() {
		return nil
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(job, kind.GVK)}
}

// consumerOf is what a unit names as its job: no object is a group of pods.
func consumerOf(kind *jobs.Kind, job *unstructured.Unstructured) *corev1.ObjectReference {
	if kind.OfPods() {
		return nil
	}
	version, name := kind.GVK.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: version, Kind: name,
		Namespace: job.GetNamespace(), Name: job.GetName(), UID: job.GetUID(),
	}
}

// podSetsOf are the pod sets as a unit has them, with whole templates or with what scheduling needs of them.
func podSetsOf(of []jobs.PodSet, whole bool) ([]v1alpha1.PodSet, error) {
	sets := make([]v1alpha1.PodSet, 0, len(of))
	for i := range of {
		raw := of[i].Raw
		if !whole {
			var err error
			if raw, err = jobs.ReduceTemplate(raw); err != nil {
				return nil, err
			}
		}
		sets = append(sets, v1alpha1.PodSet{
			Name: of[i].Name, Count: of[i].Count, MinCount: of[i].Least, Template: runtime.RawExtension{Raw: raw},
		})
	}
	return sets, nil
}

// relation of the unit that bears a job's unit name to that job.
type relation int

const (
	// absent: there is no such unit.
	absent relation = iota
	// own: its consumer is the job.
	own
	// stale: its consumer is a job of that kind and name which is not this one: an earlier one, or one of another
	// namespace.
	stale
	// foreign: it stands for something else, or for nothing.
	foreign
)

// relate compares by UID: a job that was created anew under its name is another job.
func relate(kind *jobs.Kind, job *unstructured.Unstructured, u *v1alpha1.QueueUnit) relation {
	if u == nil {
		return absent
	}
	ref := u.Spec.ConsumerRef
	switch {
	case ref == nil && kind.OfPods() && createdByUs(u):
		return own
	case ref == nil || !refersTo(kind, ref):
		return foreign
	case ref.Namespace != "" && ref.Namespace != job.GetNamespace():
		return stale // no unit stands for a job of another namespace
	case ref.Name != job.GetName():
		return foreign
	case ref.UID != "" && ref.UID != job.GetUID():
		return stale
	default:
		return own
	}
}

func refersTo(kind *jobs.Kind, ref *corev1.ObjectReference) bool {
	return ref.GroupVersionKind() == kind.GVK
}

// corrected returns the unit with everything set right that follows from its job, or nil when nothing differs.
// What other people may set and the job does not say is left alone: spec.active, spec.queue when the job names none,
// further labels and annotations.
func corrected(have, want *v1alpha1.QueueUnit) *v1alpha1.QueueUnit {
	u := have.DeepCopy()
	correctMeta(u, want)
	if u.Spec.ConsumerRef == nil || u.Spec.ConsumerRef.UID == "" {
		u.Spec.ConsumerRef = want.Spec.ConsumerRef
	}
	correctActive(u, have, want)
	correctTime(u, want)
	u.Spec.Priority = want.Spec.Priority
	u.Spec.PriorityClassName = want.Spec.PriorityClassName
	if want.Spec.Queue != "" {
		u.Spec.Queue = want.Spec.Queue
	}
	if !equality.Semantic.DeepEqual(u.Spec.Request, want.Spec.Request) {
		u.Spec.Request = want.Spec.Request
	}
	u.Spec.Resource = nil
	if !enoughPodSets(u.Spec.PodSets, want.Spec.PodSets) {
		u.Spec.PodSets = want.Spec.PodSets
	}
	if equality.Semantic.DeepEqual(u, have) {
		return nil
	}
	return u
}

func correctMeta(u, want *v1alpha1.QueueUnit) {
	if u.Labels == nil {
		u.Labels = map[string]string{}
	}
	for _, key := range append([]string{v1alpha1.LabelPreemptible, v1alpha1.QueueNameKey}, v1alpha1.QuotaLabels[:]...) {
		set(u.Labels, key, want.Labels[key])
	}
	maps.Copy(u.Labels, want.Labels)
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	for _, key := range []string{
		v1alpha1.QueueNameKey, v1alpha1.AnnotationParkedReason, v1alpha1.AnnotationAdopted,
		v1alpha1.AnnotationGangGroup, v1alpha1.AnnotationGangs,
	} {
		set(u.Annotations, key, want.Annotations[key])
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
	case inactiveByHand(have):
		delete(u.Annotations, v1alpha1.AnnotationParkedReason)
	case want.Spec.Active != nil:
		u.Spec.Active = want.Spec.Active
	case have.Annotations[v1alpha1.AnnotationParkedReason] != "":
		u.Spec.Active = nil
	}
}

// correctTime sets for how long the job may run, if it says so or has said so. Else it is left to others.
func correctTime(u, want *v1alpha1.QueueUnit) {
	_, said := u.Annotations[v1alpha1.AnnotationMaxExecutionTime]
	if want.Spec.MaximumExecutionTimeSeconds == nil && !said {
		return
	}
	u.Spec.MaximumExecutionTimeSeconds = want.Spec.MaximumExecutionTimeSeconds
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	set(u.Annotations, v1alpha1.AnnotationMaxExecutionTime, want.Annotations[v1alpha1.AnnotationMaxExecutionTime])
}

// inactiveByHand says that somebody made the unit inactive who is not the controller.
func inactiveByHand(u *v1alpha1.QueueUnit) bool {
	return u.Spec.Active != nil && !*u.Spec.Active && u.Annotations[v1alpha1.AnnotationParkedReason] == ""
}

// enoughPodSets says whether have is want, or want and parts of templates that no scheduler reads. The release before
// wrote whole templates: they are left, or an upgrade would write every unit of a backlog.
func enoughPodSets(have, want []v1alpha1.PodSet) bool {
	return samePodSets(have, want) || samePodSets(reduced(have), want)
}

// sameScheduling says whether two lists of pod sets mean the same to whoever schedules them, whole or reduced.
func sameScheduling(a, b []v1alpha1.PodSet) bool {
	return samePodSets(reduced(a), reduced(b))
}

func reduced(sets []v1alpha1.PodSet) []v1alpha1.PodSet {
	out := slices.Clone(sets)
	for i := range out {
		if raw, err := jobs.ReduceTemplate(out[i].Template.Raw); err == nil {
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
