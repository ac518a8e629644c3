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

package engine

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/intern"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// maxPodSets bounds the pod sets and the admissions of a unit that are added up. The CRD allows fewer.
const maxPodSets = 64

// maxMessage bounds what is written into a status and what is kept of an error, in bytes.
const maxMessage = 1024

// quotaKeys are the labels that name a quota.
var quotaKeys = v1alpha1.QuotaLabels

// unitObject is what is kept of a QueueUnit. It is immutable once it was made. There may be very many: what most of them
// have in common is shared, what few of them have is elsewhere.
type unitObject struct {
	objectMeta
	path string // namespace/name; the name is a part of it
	// quota that a label names, and the label; empty when none does.
	quota, quotaKey string
	// queue that is named explicitly; empty means the default queue of the quota.
	queue    string
	priority *int32
	class    string

	request        resources.List
	sets           []podSetTotal
	pods           int64
	nonPreemptible bool
	inactive       bool
	// parked by the controller, which writes the reason itself.
	parked bool
	// adopted: the unit stands for a job that ran before.
	adopted bool

	consumer     admission.Consumer
	consumerKind unique.Handle[schema.GroupVersionKind] // if there is a consumer
	hasConsumer  bool
	owned        bool

	phase    admission.Phase
	attempts int64
	*unitHistory
}

// unitHistory is what a unit has to which something happened.
type unitHistory struct {
	message    string
	held       resources.List
	requeueAt  time.Time
	allocated  time.Time
	conditions []metav1.Condition

	invalid        admission.Reason
	invalidMessage string
	panicked       bool // while it was read
}

// noHistory is shared and never written.
var noHistory = &unitHistory{}

func (h *unitHistory) empty() bool {
	return h.message == "" && h.held.Len() == 0 && h.requeueAt.IsZero() && h.allocated.IsZero() && len(h.conditions) == 0 &&
		h.invalid == "" && h.invalidMessage == "" && !h.panicked
}

// objectMeta is what the engine needs of the metadata of an object. An informer can store what has it.
type objectMeta struct {
	Namespace, Name   string
	UID               types.UID
	ResourceVersion   string
	Generation        int64
	CreationTimestamp metav1.Time
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (m *objectMeta) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp,
	}
}

// podSetTotal is what all pods of a pod set ask for together.
type podSetTotal struct {
	name  string
	count int64
	total resources.List
}

func (u *unitObject) key() string { return u.path }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (u *unitObject) GetObjectMeta() metav1.Object {
	return &storedMeta{noMeta, u.path, u.UID, u.ResourceVersion}
}

// storedMeta is the metadata of an object by which an informer stores it, under namespace/name. With all of that as the
// name the store's key is the string that the object has already, rather than one more. An informer asks for it half a
// dozen times for each event, so it is small.
type storedMeta struct {
	metav1.Object // empty
	path          string
	uid           types.UID
	version       string
}

// noMeta is never changed.
var noMeta = &metav1.ObjectMeta{}

// GetNamespace is a part of the name.
func (m *storedMeta) GetNamespace() string { return "" }

// GetName with the namespace.
func (m *storedMeta) GetName() string { return m.path }

// GetUID of the object.
func (m *storedMeta) GetUID() types.UID { return m.uid }

// GetResourceVersion of the object.
func (m *storedMeta) GetResourceVersion() string { return m.version }

// quotaLabels are the labels that decide about the quota.
func (u *unitObject) quotaLabels() map[string]string {
	if u.quota == "" {
		return nil
	}
	return map[string]string{u.quotaKey: u.quota}
}

// ranAfter is how long after an admission the pods of a unit that now says so began to run. It says so some seconds later,
// with the time in whole seconds, of which half a one has passed on average. A time from before is of an earlier run.
func (u *unitObject) ranAfter(admitted, now time.Time) time.Duration {
	ready := u.condition(v1alpha1.ConditionPodsReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || admitted.Sub(ready.LastTransitionTime.Time) > time.Second {
		return now.Sub(admitted)
	}
	return min(max(ready.LastTransitionTime.Add(time.Second/2).Sub(admitted), 0), now.Sub(admitted))
}

// condition returns the condition of this type, or nil.
func (u *unitObject) condition(conditionType string) *metav1.Condition {
	for i := range u.conditions {
		if u.conditions[i].Type == conditionType {
			return &u.conditions[i]
		}
	}
	return nil
}

// decodeUnit never fails: an object that cannot be read, in part or at all, becomes a unit that is parked with a reason.
// It does not change the object.
func decodeUnit(obj *unstructured.Unstructured) (u *unitObject) {
	u = &unitObject{objectMeta: metaOf(obj), path: obj.GetNamespace() + "/" + obj.GetName(), unitHistory: &unitHistory{}}
	u.Name = u.path[len(u.Namespace)+1:]
	defer func() {
		if r := recover(); r != nil {
			u.panicked = true
			u.refuse(admission.ReasonInternalError, fmt.Errorf("the object cannot be read: %v", r))
		}
		u.share()
	}()
	u.decodeMeta(obj)
	u.decodeStatus(obj)
	u.decodeSpec(obj)
	if len(u.held.Items()) == 0 && u.phase.Holds() {
		// Somebody set the phase alone. Counting too much is safe, counting nothing is not.
		u.held = u.request
	}
	return u
}

// refuse keeps the first reason.
func (u *unitObject) refuse(reason admission.Reason, err error) {
	if u.invalid == "" {
		u.invalid, u.invalidMessage = reason, shorten(err.Error())
	}
}

// share lets go of what the unit has in common with others.
func (u *unitObject) share() {
	u.shareAmounts()
	if u.unitHistory.empty() {
		u.unitHistory = noHistory
	}
}

func (u *unitObject) shareAmounts() {
	u.request, u.held = sharedLists.Of(u.request), sharedLists.Of(u.held)
	for i := range u.sets {
		u.sets[i].total = sharedLists.Of(u.sets[i].total)
	}
	u.sets = sharedSets.Of(u.sets)
}

// metaOf keeps what the engine needs of the metadata.
func metaOf(obj metav1.Object) objectMeta {
	return objectMeta{
		Namespace: sharedText(obj.GetNamespace()), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(),
	}
}

func (u *unitObject) decodeMeta(obj *unstructured.Unstructured) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	for _, key := range quotaKeys {
		if value := labels[key]; value != "" {
			u.quota, u.quotaKey = sharedText(value), key
			break
		}
	}
	u.queue = annotations[v1alpha1.QueueNameKey]
	if u.queue == "" {
		u.queue = labels[v1alpha1.QueueNameKey]
	}
	u.nonPreemptible = labels[v1alpha1.LabelPreemptible] == "false"
	u.parked = annotations[v1alpha1.AnnotationParkedReason] != ""
	_, u.adopted = annotations[v1alpha1.AnnotationAdopted]
}

// unitSpec is the spec without pod sets, which are read on their own.
type unitSpec struct {
	ConsumerRef       *corev1.ObjectReference `json:"consumerRef,omitempty"`
	Priority          *int32                  `json:"priority,omitempty"`
	Queue             string                  `json:"queue,omitempty"`
	PriorityClassName string                  `json:"priorityClassName,omitempty"`
	Request           corev1.ResourceList     `json:"request,omitempty"`
	Resource          corev1.ResourceList     `json:"resource,omitempty"`
	Active            *bool                   `json:"active,omitempty"`
}

// convert reads fields into a typed value. Amounts that would take minutes to read are refused before that: this runs in
// the informer of all units.
func convert(fields map[string]any, into any) error {
	if err := jobs.CheckQuantities(fields); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
}

func (u *unitObject) decodeSpec(obj *unstructured.Unstructured) {
	fields, _ := obj.Object["spec"].(map[string]any)
	rest := maps.Clone(fields)
	delete(rest, "podSet")
	var spec unitSpec
	if err := convert(rest, &spec); err != nil {
		u.refuse(admission.ReasonInvalidRequest, fmt.Errorf("spec: %w", err))
		// Which amounts were read before the one that cannot be is a matter of chance (I13).
		spec.Request, spec.Resource = nil, nil
	}
	if spec.Queue != "" {
		u.queue = spec.Queue
	}
	u.queue = sharedText(u.queue)
	u.priority, u.class = spec.Priority, sharedText(spec.PriorityClassName)
	u.inactive = spec.Active != nil && !*spec.Active
	u.decodeConsumer(obj, spec.ConsumerRef)
	request := spec.Request
	if request == nil {
		request = spec.Resource
	}
	if err := u.decodeRequest(request, fields["podSet"]); err != nil {
		u.refuse(admission.ReasonInvalidRequest, err)
	}
}

func (u *unitObject) decodeConsumer(obj *unstructured.Unstructured, ref *corev1.ObjectReference) {
	if ref == nil {
		return
	}
	u.hasConsumer = true
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	u.consumer = admission.Consumer{
		Kind: sharedText(jobs.KindString(kind)), Namespace: sharedText(ref.Namespace), Name: ref.Name, UID: string(ref.UID),
	}
	u.consumerKind = unique.Make(kind)
	if u.consumer.Namespace == "" {
		u.consumer.Namespace = u.Namespace
	}
	owner := metav1.GetControllerOfNoCopy(obj)
	u.owned = owner != nil && ref.UID != "" && owner.UID == ref.UID
}

// podSet is read without its template, which is decoded only where its requests are needed.
type podSet struct {
	Name  string `json:"name"`
	Count *int32 `json:"count,omitempty"`
}

func (u *unitObject) decodeRequest(explicit corev1.ResourceList, value any) error {
	items, ok := value.([]any)
	if !ok && value != nil {
		return fmt.Errorf("spec.podSet is not a list")
	}
	if len(items) > maxPodSets {
		return fmt.Errorf("spec.podSet has %d items, at most %d are read", len(items), maxPodSets)
	}
	templates := make([]any, 0, len(items))
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("spec.podSet[%d] is not an object", i)
		}
		head := maps.Clone(fields)
		delete(head, "template")
		delete(head, "topologyRequest")
		set := podSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(head, &set); err != nil {
			return fmt.Errorf("spec.podSet[%d]: %w", i, err)
		}
		count := int64(1)
		if set.Count != nil {
			count = int64(*set.Count)
		}
		if count < 0 {
			return fmt.Errorf("spec.podSet[%d].count is negative", i)
		}
		u.pods += count
		u.sets = append(u.sets, podSetTotal{name: sharedText(set.Name), count: count})
		templates = append(templates, fields["template"])
	}
	if explicit != nil {
		list, err := listOf(explicit)
		if err != nil {
			return fmt.Errorf("spec.request: %w", err)
		}
		u.request = list
		if len(u.sets) == 1 {
			u.sets[0].total = list
			return nil
		}
	}
	return u.addTemplates(explicit == nil, templates)
}

// listOf reads amounts. All that is done about a unit costs as much as it names resources.
func listOf(amounts corev1.ResourceList) (resources.List, error) {
	if n := len(amounts); n > jobs.MaxResources {
		return resources.List{}, fmt.Errorf("%d resources, at most %d are counted", n, jobs.MaxResources)
	}
	return resources.FromQuantities(amounts)
}

// addTemplates reads what the pods of every pod set ask for. Where the request is given explicitly the sets only name
// what is held, so a template that cannot be read then costs its name and nothing else.
func (u *unitObject) addTemplates(needed bool, templates []any) error {
	sum := resources.List{}
	for i, template := range templates {
		total, err := templateTotal(template, u.sets[i].count)
		if err != nil {
			if !needed {
				u.sets = nil
				return nil
			}
			return fmt.Errorf("pod set %q: %w", u.sets[i].name, err)
		}
		u.sets[i].total = total
		sum = sum.Add(total)
	}
	if n := sum.Len(); needed && n > jobs.MaxResources {
		return fmt.Errorf("the pod sets name %d resources, at most %d are counted", n, jobs.MaxResources)
	}
	if needed {
		u.request = sum
	} else if !sum.Equal(u.request) {
		u.sets = nil
	}
	return nil
}

// templateTotal takes a template as json.RawMessage or decoded.
func templateTotal(value any, count int64) (resources.List, error) {
	if value == nil {
		return resources.List{}, nil
	}
	raw, ok := value.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(value); err != nil {
			return resources.List{}, fmt.Errorf("template: %w", err)
		}
	}
	template, err := jobs.DecodeTemplate(raw)
	if err != nil {
		return resources.List{}, fmt.Errorf("template: %w", err)
	}
	one, err := jobs.PodRequest(template)
	if err != nil {
		return resources.List{}, fmt.Errorf("template: %w", err)
	}
	all, err := jobs.Times(one, count)
	if err != nil {
		return resources.List{}, err
	}
	return resources.FromQuantities(all)
}

// unitStatus is what is read of the status.
type unitStatus struct {
	Phase            string               `json:"phase,omitempty"`
	Attempts         int64                `json:"attempts,omitempty"`
	Message          string               `json:"message,omitempty"`
	Admissions       []v1alpha1.Admission `json:"admissions,omitempty"`
	LastAllocateTime *metav1.Time         `json:"lastAllocateTime,omitempty"`
	Conditions       []metav1.Condition   `json:"conditions,omitempty"`
	RequeueState     *struct {
		RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
	} `json:"requeueState,omitempty"`
}

// decodeStatus keeps the phase even if the rest cannot be read: whether a unit holds quota must not depend on it.
func (u *unitObject) decodeStatus(obj *unstructured.Unstructured) {
	fields, _ := obj.Object["status"].(map[string]any)
	phase, _ := fields["phase"].(string)
	u.phase = admission.Phase(sharedText(phase))
	var status unitStatus
	if err := convert(fields, &status); err != nil {
		u.refuse(admission.ReasonInvalidRequest, fmt.Errorf("status: %w", err))
		return
	}
	u.attempts, u.message, u.conditions = status.Attempts, status.Message, status.Conditions
	if status.LastAllocateTime != nil {
		u.allocated = status.LastAllocateTime.Time
	}
	if status.RequeueState != nil && status.RequeueState.RequeueAt != nil {
		u.requeueAt = status.RequeueState.RequeueAt.Time
	}
	if n := len(status.Admissions); n > maxPodSets {
		u.refuse(admission.ReasonInvalidRequest, fmt.Errorf("status.admissions has %d items, at most %d are read", n, maxPodSets))
		return
	}
	for i := range status.Admissions {
		list, err := listOf(status.Admissions[i].Resources)
		if err != nil {
			u.refuse(admission.ReasonInvalidRequest, fmt.Errorf("status.admissions[%d]: %w", i, err))
			continue
		}
		u.held = u.held.Add(list)
	}
}

// uid of the consumer, or "".
func (u *unitObject) consumerUID() types.UID { return types.UID(u.consumer.UID) }

// adopting says that the unit was made for a job that ran already, and that its maker has not written so yet.
func (u *unitObject) adopting() bool {
	return u.adopted && u.phase.Waits() && u.attempts == 0 && u.condition(v1alpha1.ConditionEvicted) == nil
}

// sharedText shares the memory of strings that many units have in common.
func sharedText(text string) string { return unique.Make(text).Value() }

func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "..."
}

var (
	sharedLists = intern.NewPool(hashList, resources.List.Same)
	sharedSets  = intern.NewPool(hashSets, sameSets)
)

func hashList(h *maphash.Hash, list resources.List) {
	for _, it := range list.Items() {
		_, _ = h.WriteString(it.Name)
		maphash.WriteComparable(h, it.Amount)
	}
}

func hashSets(h *maphash.Hash, sets []podSetTotal) {
	for i := range sets {
		_, _ = h.WriteString(sets[i].name)
		maphash.WriteComparable(h, sets[i].count)
		hashList(h, sets[i].total)
	}
}

func sameSets(a, b []podSetTotal) bool {
	return slices.EqualFunc(a, b, func(x, y podSetTotal) bool {
		return x.name == y.name && x.count == y.count && x.total.Same(y.total)
	})
}
