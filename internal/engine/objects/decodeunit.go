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

package objects

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intern"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/labeltext"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/choice"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/victims"
)

// maxPodSets bounds the pod sets and the admissions of a unit that are added up. The CRD allows fewer.
const maxPodSets = 64

// DecodeUnit never fails: an object that cannot be read, in part or at all, becomes a parked unit with a reason.
func DecodeUnit(w *WireUnit) (u *Unit) {
	m := &w.Metadata
	u = &Unit{Meta: metaOf(m), Path: m.Namespace + "/" + m.Name, History: &History{}}
	u.Name = u.Path[len(u.Namespace)+1:]
	defer func() {
		if r := recover(); r != nil {
			u.Panicked = true
			u.refuse(unit.ReasonInternalError, fmt.Errorf("the object cannot be read: %v", r))
		}
		u.share()
	}()
	if m.unread != nil {
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("metadata: %w", m.unread))
	}
	u.readMeta(m.Labels, m.Annotations)
	status := u.readStatus(w.Status)
	u.readChecks(status.Checks, u.readSpec(w.Spec, metav1.GetControllerOfNoCopy(m)))
	u.reclaim(status.Reclaimable)
	u.readSizes(status.Admissions)
	return u
}

// Read reads a part of an object, if it exists. In valid JSON only fields with methods of their own, like amounts and
// times, stop the fields after them from being read. A field that must survive others is read without such.
func Read(text json.RawMessage, into any) error {
	if len(text) == 0 {
		return nil
	}
	return utiljson.Unmarshal(text, into)
}

// says tells a value from none.
func says(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }

// refuse keeps the first reason.
func (u *Unit) refuse(reason unit.Reason, err error) {
	if u.Invalid == "" {
		u.Invalid, u.InvalidMessage = reason, Shorten(err.Error())
	}
}

// metaOf keeps what the engine needs of the metadata.
func metaOf(obj metav1.Object) Meta {
	return Meta{
		Namespace: sharedText(obj.GetNamespace()), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(),
	}
}

// conditionReason is what the API takes for the reason of a condition, of the length of ours.
var conditionReason = regexp.MustCompile(`^[A-Z][A-Za-z]{0,63}$`)

func (u *Unit) readMeta(labels, annotations map[string]string) {
	for _, key := range v1alpha1.QuotaLabels {
		if value := labels[key]; value != "" {
			u.Quota, u.QuotaKey = sharedText(value), key
			break
		}
	}
	u.Queue = cmp.Or(annotations[v1alpha1.QueueNameKey], labels[v1alpha1.QueueNameKey])
	if u.Labels = labeltext.Of(labels); len(u.Labels) > labeltext.Max {
		u.refuse(unit.ReasonInvalidRequest,
			fmt.Errorf("its labels have %d bytes, at most %d are read", len(u.Labels), labeltext.Max))
		u.Labels = ""
	}
	u.Labels = sharedText(u.Labels)
	u.NonPreemptible = cmp.Or(labels[v1alpha1.LabelPreemptible], labels[v1alpha1.LabelPreemptibleFallback]) == "false"
	if reason := annotations[v1alpha1.AnnotationParkedReason]; conditionReason.MatchString(reason) {
		u.ParkedFor = unit.Reason(reason)
	}
	u.readGangs(annotations[v1alpha1.AnnotationGangGroup], annotations[v1alpha1.AnnotationGangs])
	_, u.adopted = annotations[v1alpha1.AnnotationAdopted]
	_, u.Unsuspendable = annotations[v1alpha1.AnnotationUnsuspendable]
	u.Unpreemptable = annotations[v1alpha1.AnnotationPreemptable] == "false"
	if text := annotations[v1alpha1.AnnotationHeartbeat]; text != "" {
		u.Heartbeat, _ = time.Parse(time.RFC3339, text) // an unreadable time is no heartbeat
	}
}

// readGangs takes at most as many gangs as a group may have, in the one form that two units of a group have in common.
// Other forms are refused: the author of a unit is not trusted.
func (u *Unit) readGangs(group, own string) {
	if group == "" {
		return
	}
	all, gangs := strings.SplitN(group, ",", jobkind.MaxGangs+1), strings.SplitN(own, ",", jobkind.MaxGangs+1)
	inOrder := func(names []string) bool {
		for i, name := range names {
			if len(validation.IsDNS1123Subdomain(name)) > 0 || i > 0 && names[i-1] >= name {
				return false
			}
		}
		return len(names) <= jobkind.MaxGangs
	}
	if !inOrder(all) || !inOrder(gangs) ||
		slices.ContainsFunc(gangs, func(name string) bool { return !slices.Contains(all, name) }) {
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf(
			"annotation %s or %s is no sorted list of at most %d names, of which the second has some of the first",
			v1alpha1.AnnotationGangGroup, v1alpha1.AnnotationGangs, jobkind.MaxGangs))
		return
	}
	u.GangGroup, u.Gangs = sharedText(group), sharedText(own)
}

// unitSpec is what is read of the spec.
type unitSpec struct {
	ConsumerRef       *corev1.ObjectReference `json:"consumerRef"`
	Priority          *int32                  `json:"priority"`
	Queue             string                  `json:"queue"`
	Quotas            []string                `json:"quotas"`
	PriorityClassName string                  `json:"priorityClassName"`
	Request           json.RawMessage         `json:"request"`
	Resource          json.RawMessage         `json:"resource"`
	Active            *bool                   `json:"active"`
	Mode              string                  `json:"mode"`
	MaximumExecution  int64                   `json:"maximumExecutionTimeSeconds"`
	PodSet            []struct {
		Name     string          `json:"name"`
		Count    *int32          `json:"count"`
		MinCount *int32          `json:"minCount"`
		Template json.RawMessage `json:"template"`
	} `json:"podSet"`
}

func (u *Unit) readSpec(text json.RawMessage, owner *metav1.OwnerReference) (sets []string) {
	var spec unitSpec
	if err := Read(text, &spec); err != nil {
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("spec: %w", err))
	}
	if spec.Queue != "" {
		u.Queue = spec.Queue
	}
	u.Queue = sharedText(u.Queue)
	readQuotas(u, spec.Quotas)
	u.Priority, u.Class = sharedPriority(spec.Priority), sharedText(spec.PriorityClassName)
	u.Inactive = spec.Active != nil && !*spec.Active
	u.Observed = spec.Mode == string(v1alpha1.ModeObserve)
	u.MaximumExecution = secondsOf(spec.MaximumExecution)
	if spec.ConsumerRef != nil {
		u.readConsumer(spec.ConsumerRef, owner)
	}
	if err := u.readRequest(&spec); err != nil {
		u.refuse(unit.ReasonInvalidRequest, err)
	}
	for i := range min(len(spec.PodSet), maxPodSets) {
		sets = append(sets, spec.PodSet[i].Name)
		u.OneQuota = u.OneQuota || namesQuota(spec.PodSet[i].Template)
	}
	return sets
}

// readQuotas reads the list of quotas. Its first one is that of the label: a unit that has none waits for that.
func readQuotas(u *Unit, names []string) {
	if len(names) == 0 {
		return
	}
	if err := choice.Check(names); err != nil {
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("spec.quotas: %w", err))
		return
	}
	if u.Quota == "" {
		u.Quota, u.QuotaKey = sharedText(names[0]), v1alpha1.LabelQuotaName
	}
	if u.Quota != names[0] {
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("spec.quotas begins with %q, and the label names quota %q",
			names[0], u.Quota))
		return
	}
	u.Quotas = sharedText(choice.Join(names))
}

// namesQuota says whether a pod template names a quota.
func namesQuota(template json.RawMessage) bool {
	return slices.ContainsFunc(v1alpha1.QuotaLabels[:], func(key string) bool {
		return bytes.Contains(template, []byte(strconv.Quote(key)))
	})
}

// secondsOf is a time that an object names in seconds, none where it is absurd.
func secondsOf(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), math.MaxInt32)) * time.Second
}

func (u *Unit) readConsumer(ref *corev1.ObjectReference, owner *metav1.OwnerReference) {
	u.HasConsumer = true
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	u.Consumer = unit.Consumer{
		Kind: sharedText(jobkind.KindString(gvk)), Namespace: sharedText(ref.Namespace), Name: ref.Name, UID: string(ref.UID),
	}
	u.ConsumerKind = unique.Make(gvk)
	if u.Consumer.Namespace == "" {
		u.Consumer.Namespace = u.Namespace
	}
	if strings.HasSuffix(u.Path, ref.Name) { // which it mostly is a part of
		u.Consumer.Name = u.Path[len(u.Path)-len(ref.Name):]
	}
	u.Owned = owner != nil && ref.UID != "" && owner.UID == ref.UID
}

func (u *Unit) readRequest(spec *unitSpec) error {
	if n := len(spec.PodSet); n > maxPodSets {
		return fmt.Errorf("spec.podSet has %d items, at most %d are read", n, maxPodSets)
	}
	templates := make([]json.RawMessage, 0, 1)
	for i, set := range spec.PodSet {
		count := int64(1)
		if set.Count != nil {
			count = int64(*set.Count)
		}
		if count < 0 {
			return fmt.Errorf("spec.podSet[%d].count is negative", i)
		}
		u.Pods += count
		least := count
		if set.MinCount != nil {
			least = min(max(int64(*set.MinCount), 0), count)
		}
		u.Sets = append(u.Sets, PodSet{Name: sharedText(set.Name), Count: count, least: least})
		templates = append(templates, set.Template)
	}
	explicit := spec.Request
	if !says(explicit) {
		explicit = spec.Resource
	}
	if !says(explicit) {
		return u.addTemplates(true, templates)
	}
	list, err := amounts.Of(explicit)
	if err != nil { // the unit is parked for that, and its templates say how much it may hold
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("spec.request: %w", err))
		return u.addTemplates(true, templates)
	}
	if u.Request = list; len(u.Sets) == 1 {
		u.Sets[0].Total = list
		return nil
	}
	return u.addTemplates(false, templates)
}

// amounts are what the same text says in very many units. Amounts that would take minutes to read are refused before
// that: this runs in the informer of all units. All that is done about a unit costs as much as it names resources.
var amounts = intern.NewTexts(func(text string) (list resources.List, err error) {
	var fields map[string]any
	if err := utiljson.Unmarshal([]byte(text), &fields); err != nil {
		return list, err
	}
	if n := len(fields); n > podrequest.MaxResources {
		return list, fmt.Errorf("%d resources, at most %d are counted", n, podrequest.MaxResources)
	}
	fields = map[string]any{"resources": fields}
	if err := podtemplate.CheckQuantities(fields); err != nil {
		return list, err
	}
	var typed struct {
		Resources corev1.ResourceList `json:"resources"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &typed); err != nil {
		return list, err
	}
	list, err = resources.FromQuantities(typed.Resources)
	return sharedLists.Of(list), err
})

// addTemplates reads the requests of the pods of every pod set. If the request of the unit is given explicitly, the
// sets only name its parts, so an unreadable template costs only its name.
func (u *Unit) addTemplates(needed bool, templates []json.RawMessage) error {
	sum := resources.List{}
	for i, template := range templates {
		total, err := templateTotal(template, u.Sets[i].Count)
		if err != nil {
			if !needed {
				u.Sets = nil
				return nil
			}
			return fmt.Errorf("pod set %q: %w", u.Sets[i].Name, err)
		}
		u.Sets[i].Total = total
		sum = sum.Add(total)
	}
	if n := sum.Len(); needed && n > podrequest.MaxResources {
		return fmt.Errorf("the pod sets name %d resources, at most %d are counted", n, podrequest.MaxResources)
	}
	if needed {
		u.Request = sum
	} else if !sum.Equal(u.Request) {
		u.Sets = nil
	}
	return nil
}

// decodeTemplate is replaced by tests.
var decodeTemplate = podtemplate.Decode

func templateTotal(text json.RawMessage, count int64) (resources.List, error) {
	if !says(text) {
		return resources.List{}, nil
	}
	template, err := decodeTemplate(text)
	if err != nil {
		return resources.List{}, fmt.Errorf("template: %w", err)
	}
	one, err := podrequest.Of(template)
	if err != nil {
		return resources.List{}, fmt.Errorf("template: %w", err)
	}
	all, err := podrequest.Times(one, count)
	if err != nil {
		return resources.List{}, err
	}
	return resources.FromQuantities(all)
}

// unitHolding decides whether a unit holds quota, and what. It can be read whatever else the status says.
type unitHolding struct {
	Phase      string    `json:"phase"`
	Attempts   int64     `json:"attempts"`
	Admissions []heldSet `json:"admissions"`
	Effective  struct {
		Quota       string `json:"quota"`
		Preemptable *bool  `json:"preemptable"`
	} `json:"effective"`
	QuotaChoice *v1alpha1.QuotaChoice `json:"quotaChoice"`
}

// heldSet is what is held for a pod set.
type heldSet struct {
	Name      string          `json:"name"`
	Replicas  int64           `json:"replicas"`
	Running   int64           `json:"running"`
	Resources json.RawMessage `json:"resources"`
}

// unitStatus is what is read of the status.
type unitStatus struct {
	unitHolding
	Message          string             `json:"message"`
	LastAllocateTime metav1.Time        `json:"lastAllocateTime"`
	Conditions       []metav1.Condition `json:"conditions"`
	RequeueState     struct {
		RequeueAt metav1.Time `json:"requeueAt"`
		Count     int32       `json:"count"`
	} `json:"requeueState"`
	Executed    int64             `json:"accumulatedPastExecutionTimeSeconds"`
	RanSince    metav1.Time       `json:"executionStartTime"`
	Reclaimable []reclaimablePods `json:"reclaimablePods"`
	Checks      json.RawMessage   `json:"admissionChecks"`
	Preemption  json.RawMessage   `json:"preemption"`
	PodState    json.RawMessage   `json:"podState"`
}

// reclaimablePods of a pod set have ended well and do not come again.
type reclaimablePods struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

func (u *Unit) readStatus(text json.RawMessage) (status unitStatus) {
	if err := Read(text, &status); err != nil {
		u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("status: %w", err))
		status = unitStatus{}
		_ = Read(text, &status.unitHolding) // as far as it goes (I1)
	}
	if u.Phase = unit.Phase(sharedText(status.Phase)); u.Phase.Holds() {
		u.HeldIn, u.Kept = sharedText(status.Effective.Quota), !ptr.Deref(status.Effective.Preemptable, true)
	}
	u.Choice = status.QuotaChoice
	u.Attempts, u.Message, u.Conditions = status.Attempts, status.Message, status.Conditions
	u.Admitted, u.RequeueAt = status.LastAllocateTime.Time, status.RequeueState.RequeueAt.Time
	u.Requeues, u.Executed = int64(max(status.RequeueState.Count, 0)), secondsOf(status.Executed)
	if u.RanSince = status.RanSince.Time; u.RanSince.IsZero() {
		u.RanSince = readySince(u) // as the stand-alone Koord-Queue says it
	}
	u.Preempts = takesFrom(status.Preemption, status.Attempts)
	if n := len(status.Admissions); n > maxPodSets {
		u.refuse(unit.ReasonInvalidRequest,
			fmt.Errorf("status.admissions has %d items, at most %d are read", n, maxPodSets))
		return unitStatus{}
	}
	u.Recorded = len(status.Admissions) > 0
	for i, admitted := range status.Admissions {
		u.HeldPods += min(max(admitted.Replicas, 0), math.MaxInt32)
		if !says(admitted.Resources) {
			continue
		}
		list, err := amounts.Of(admitted.Resources)
		if err != nil {
			u.refuse(unit.ReasonInvalidRequest, fmt.Errorf("status.admissions[%d]: %w", i, err))
			u.Recorded = false
			continue
		}
		u.Held = u.Held.Add(list)
	}
	if status.ofPodsOnNodes() {
		u.Held, u.Recorded = resources.List{}, false // so that it holds its request
	}
	return status
}

// ofPodsOnNodes says whether amounts are missing. The stand-alone Koord-Queue, which always writes podState, gives
// amounts of pods on nodes only. Its unit holds what all admitted pods ask for. A quota in the status says that the
// scheduler has written since.
func (s *unitStatus) ofPodsOnNodes() bool {
	return len(s.PodState) > 0 && s.Effective.Quota == "" &&
		slices.ContainsFunc(s.Admissions, func(set heldSet) bool { return set.Running < set.Replicas })
}

// takesFrom reads what a unit takes back. A decision that cannot be read, or was made before the last admission, takes
// nothing.
func takesFrom(text json.RawMessage, attempts int64) string {
	var p v1alpha1.Preemption
	if err := Read(text, &p); err != nil || len(p.Holds) > reclaim.MostHolds || p.Attempts != attempts {
		return ""
	}
	return victims.Join(p.Holds)
}

// reclaim subtracts pods that have ended for good from the request of the unit, and so from held quota (I7). The API
// server has checked that a list names each pod set at most once. If pod sets do not add up to the request, the part of
// their pods is unknown, and the request stays.
func (u *Unit) reclaim(ended []reclaimablePods) {
	if len(ended) == 0 || len(ended) > maxPodSets || len(u.Sets) == 0 {
		return
	}
	u.Request, u.Pods = resources.List{}, 0
	for i := range u.Sets {
		s := &u.Sets[i]
		for _, of := range ended {
			if of.Name == s.Name {
				left := s.Count - min(max(of.Count, 0), s.Count)
				s.shrink(left)
			}
		}
		u.Request, u.Pods = u.Request.Add(s.Total), u.Pods+s.Count
	}
}

// readSizes reads the least numbers of pods with which the unit may be admitted. If pod sets do not add up to the
// request, smaller sizes have no known request, and there is one size. A unit that was admitted in part asks for that
// part. Held quota is read elsewhere, whatever is found here (I1).
func (u *Unit) readSizes(admitted []heldSet) {
	sets := make([]unit.PodSetSize, 0, len(u.Sets))
	for i := range u.Sets {
		s := &u.Sets[i]
		sets = append(sets, unit.PodSetSize{Count: s.Count, Least: s.least, Request: sharedLists.Of(s.Total)})
	}
	if u.Sizes = unit.NewSizes(sets); u.Sizes == nil || !u.Phase.Holds() || !u.Recorded || u.WasAdopted() ||
		len(admitted) != len(u.Sets) {
		return
	}
	for i := range admitted { // in the order in which they were written, or somebody else wrote them
		whole := len(admitted) == 1 && admitted[i].Name == v1alpha1.DefaultRequirementPodSet
		if admitted[i].Name != u.Sets[i].Name && !whole {
			return
		}
	}
	u.Request, u.Pods = resources.List{}, 0
	for i := range u.Sets {
		s := &u.Sets[i]
		if s.least < s.Count {
			s.shrink(min(max(admitted[i].Replicas, 0), s.Count))
		}
		u.Request, u.Pods = u.Request.Add(s.Total), u.Pods+s.Count
	}
}

// readChecks reads what admission checks have answered. Answers about a former reservation stay in the status for a
// person to read; they are none.
func (u *Unit) readChecks(text json.RawMessage, sets []string) {
	u.WasAsked = says(text)
	var states []v1alpha1.AdmissionCheckState
	unread := Read(text, &states) != nil || len(states) > maxPodSets
	if unread {
		states = nil // nothing was answered
	}
	all := podupdate.With(states, u.Choice, sets)
	u.AskedWrites = len(podupdate.All(all)) > 0
	u.countRetries(states)
	if !u.Phase.Holds() {
		return
	}
	if u.Updates = podupdate.Read(all, sets); unread || !u.WasAsked {
		return
	}
	u.Checks = &unit.CheckAnswers{}
	for i := range states {
		s := &states[i]
		answer := unit.CheckAnswer{
			Name: sharedText(s.Name), State: unit.CheckState(sharedText(string(s.State))), Message: Shorten(s.Message),
		}
		if s.RequeueAfterSeconds != nil {
			answer.RetryAfter = secondsOf(int64(*s.RequeueAfterSeconds))
		}
		u.Checks.Answers = append(u.Checks.Answers, answer)
	}
}

// countRetries reads how often each check had the unit tried again: in all attempts since its pods were ready.
func (u *Unit) countRetries(states []v1alpha1.AdmissionCheckState) {
	for i := range states {
		if n := ptr.Deref(states[i].RetryCount, 0); n > 0 && u.Requeues > 0 {
			if u.Retried == nil {
				u.Retried = map[string]int32{}
			}
			u.Retried[states[i].Name] = n
		}
	}
}
