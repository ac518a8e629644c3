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
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intern"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// maxMessage bounds messages in a status and kept errors, in bytes.
const maxMessage = 1024

// Unit is the kept part of a QueueUnit. It is immutable. There may be very many, so common values are shared, and rare
// ones are elsewhere.
type Unit struct {
	Meta
	Path string // namespace/name; the name is a part of it
	// quota that a label names, and the label; empty when none does.
	Quota, QuotaKey string
	// Queue that is named explicitly; empty means the default queue of the quota.
	Queue    string
	Priority *int32
	Class    string

	// Labels of the object, as labeltext.Of makes them.
	Labels string

	Request        resources.List
	Sets           []PodSet
	Pods           int64
	NonPreemptible bool
	Inactive       bool
	Observed       bool
	// OneQuota: a pod template names a quota, so its pods cannot be charged to those that its queue lists.
	OneQuota bool
	// adopted: the unit stands for a job that ran before.
	adopted bool

	Consumer     unit.Consumer
	ConsumerKind unique.Handle[schema.GroupVersionKind] // if there is a consumer
	HasConsumer  bool
	Owned        bool

	Phase    unit.Phase
	Attempts int64
	// Message and Conditions are what it says to people. Most of those that wait say why.
	Message    string
	Conditions []metav1.Condition
	*History
}

// History has rare facts: events of the unit, and requests of few jobs.
type History struct {
	unit.Stated
	HeldIn string // the quota that it is held in, if the object says so
	// Choice is the quota of its list that it was admitted in, or was last; nil if it had none.
	Choice *v1alpha1.QuotaChoice
	// ParkedFor is why the controller made the unit inactive; empty if it did not. While the unit waits the controller
	// writes the reason itself.
	ParkedFor unit.Reason
	// wasAsked: the object has answers of admission checks. askedWrites: some asked to write into pods. retried is how
	// often they had the unit tried again. checks and updates are those of the present reservation.
	WasAsked, AskedWrites bool
	Checks                *unit.CheckAnswers
	Retried               map[string]int32
	Updates               *podupdate.Asked
	Panicked              bool // while it was read
	// Unsuspendable: the object says that its job cannot be suspended.
	Unsuspendable bool
}

// noHistory is shared and never written.
var noHistory = &History{}

// empty looks at all fields, so that a new one is not dropped.
func (h *History) empty() bool { return reflect.ValueOf(h).Elem().IsZero() }

// Meta is what the engine needs of the metadata of an object. An informer can store what has it.
type Meta struct {
	Namespace, Name   string
	UID               types.UID
	ResourceVersion   string
	Generation        int64
	CreationTimestamp metav1.Time
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (m *Meta) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp,
	}
}

// PodSet is what all pods of a pod set ask for together.
type PodSet struct {
	Name  string
	Count int64
	Total resources.List
	// least number of pods that the job can do with; count where it does not say.
	least int64
}

// shrink leaves so many of the pods.
func (s *PodSet) shrink(count int64) {
	if count < s.Count {
		s.Total, s.Count, s.least = s.Total.Part(count, s.Count), count, min(s.least, count)
	}
}

// Each is what one pod of the set is estimated to ask for, rounded up.
func (s *PodSet) Each() resources.List { return s.Total.Part(1, s.Count) }

func (u *Unit) Key() string { return u.Path }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (u *Unit) GetObjectMeta() metav1.Object {
	return StoredAs(u.Path, u.UID, u.ResourceVersion)
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

// StoredAs is the metadata of an object that an informer stores under its path: namespace/name, or the name alone.
func StoredAs(path string, uid types.UID, version string) metav1.Object {
	return &storedMeta{noMeta, path, uid, version}
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

// QuotaLabels are the labels that decide about the quota.
func (u *Unit) QuotaLabels() map[string]string {
	if u.Quota == "" {
		return nil
	}
	return map[string]string{u.QuotaKey: u.Quota}
}

// Chose says that the unit is admitted in another quota of its list than the first, which this is.
func Chose(u *Unit, first string) bool {
	return u.Choice != nil && u.HeldIn != "" && u.Choice.Name == u.HeldIn && u.Choice.First == first
}

// RanAfter is how long after an admission the pods of a unit that now says so began to run. It says so some seconds
// later, with the time in whole seconds, of which half a one has passed on average. A time from before is of an earlier
// run.
func (u *Unit) RanAfter(admitted, now time.Time) time.Duration {
	ready := u.Condition(v1alpha1.ConditionPodsReady)
	runs := ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == v1alpha1.ReasonPodsStarting)
	if !runs || admitted.Sub(ready.LastTransitionTime.Time) > time.Second {
		return now.Sub(admitted)
	}
	return min(max(ready.LastTransitionTime.Add(time.Second/2).Sub(admitted), 0), now.Sub(admitted))
}

// readySince is when all pods of the job of a unit became ready; zero if they are not.
func readySince(u *Unit) (since time.Time) {
	if c := u.Condition(v1alpha1.ConditionPodsReady); c != nil && c.Status == metav1.ConditionTrue {
		since = c.LastTransitionTime.Time
	}
	return since
}

// Condition returns the condition of this type, or nil.
func (u *Unit) Condition(conditionType string) *metav1.Condition {
	for i := range u.Conditions {
		if u.Conditions[i].Type == conditionType {
			return &u.Conditions[i]
		}
	}
	return nil
}

// WaitsSince is since when the unit has waited: its creation, or its last eviction. A unit that is reserved again does
// not say when it was evicted, so that it has waited since the reservation.
func WaitsSince(u *Unit) time.Time {
	if c := u.Condition(v1alpha1.ConditionEvicted); c != nil && c.LastTransitionTime.After(u.CreationTimestamp.Time) {
		return c.LastTransitionTime.Time
	}
	return u.CreationTimestamp.Time
}

// WouldHaveWaited says in words for how long an observed unit would have waited that is admitted now, and why at last.
func WouldHaveWaited(u *Unit, now time.Time) string {
	waited := now.Sub(WaitsSince(u)).Truncate(time.Second)
	c := u.Condition(v1alpha1.ConditionQuotaReserved)
	if c == nil || c.Status == metav1.ConditionTrue {
		return fmt.Sprintf("would have been admitted after %s", waited)
	}
	return Shorten(fmt.Sprintf("would have been admitted after %s; it would have waited for %s: %s", waited, c.Reason,
		strings.TrimPrefix(c.Message, "would wait: ")))
}

// Readiness says whether all pods of the job are ready, or since when they are not any more.
func (u *Unit) Readiness() (ready bool, notSince time.Time) {
	c := u.Condition(v1alpha1.ConditionPodsReady)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		return true, notSince
	case c.Reason == v1alpha1.ReasonPodsLost:
		return false, c.LastTransitionTime.Time
	}
	return false, notSince
}

// ResizePending is since when the unit has waited for more than it holds; zero if it does not.
func (u *Unit) ResizePending() ordered.Moment {
	c := u.Condition(v1alpha1.ConditionResizePending)
	if c == nil || c.Status != metav1.ConditionTrue || unit.Reason(c.Reason).Notice() {
		return 0
	}
	return ordered.MomentOf(c.LastTransitionTime.Time)
}

// Told is the reason that people see if the rules have found one. If the controller has deactivated the unit and said
// why, that is the reason: the rules only see that the unit is inactive.
func Told(u *Unit, found unit.Reason, text string) (reason unit.Reason, message string) {
	c := u.Condition(v1alpha1.ConditionQuotaReserved)
	if found != unit.ReasonInactive || u.ParkedFor == "" || c == nil {
		return found, text
	}
	if c.Reason == string(u.ParkedFor) {
		message = c.Message
	}
	return u.ParkedFor, message
}

// Stalled is why an admitted unit of a phase does not run, if its condition PodsReady says so.
func Stalled(phase unit.Phase, ready *metav1.Condition) unit.Reason {
	if ready == nil || ready.Status != metav1.ConditionFalse || !phase.Releases() ||
		!unitcondition.Stalled(ready.Reason) && ready.Reason != v1alpha1.ReasonPodsLost {
		return ""
	}
	return unit.Reason(ready.Reason)
}

// Deactivate is why the unit must be made inactive; empty once its spec has changed, as it does when somebody has done
// so. A unit that is then made active again begins from scratch.
func (u *Unit) Deactivate() *unit.Deactivation {
	c := u.Condition(v1alpha1.ConditionDeactivationTarget)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != u.Generation {
		return nil
	}
	return &unit.Deactivation{Reason: unit.Reason(c.Reason), Message: c.Message}
}

// share lets go of what the unit has in common with others.
func (u *Unit) share() {
	u.Request, u.Held = sharedLists.Of(u.Request), sharedLists.Of(u.Held)
	for i := range u.Sets {
		u.Sets[i].Total = sharedLists.Of(u.Sets[i].Total)
	}
	u.Sets = sharedSets.Of(u.Sets)
	u.Conditions = slices.Clone(u.Conditions) // without room for more
	for i := range u.Conditions {
		c := &u.Conditions[i]
		c.Type, c.Status = sharedText(c.Type), metav1.ConditionStatus(sharedText(string(c.Status)))
		c.Reason, c.Message = sharedText(c.Reason), sharedMessages.Of(c.Message)
	}
	u.Message = sharedMessages.Of(u.Message)
	if u.History.empty() {
		u.History = noHistory
	}
}

// uid of the consumer, or "".
func (u *Unit) ConsumerUID() types.UID { return types.UID(u.Consumer.UID) }

// Adopting says that the unit was made for a job that ran already, and that its maker has not written so yet.
func (u *Unit) Adopting() bool {
	return u.adopted && u.Phase.Waits() && u.Attempts == 0 && u.Condition(v1alpha1.ConditionEvicted) == nil
}

// sharedText shares the memory of strings that many units have in common.
func sharedText(text string) string { return unique.Make(text).Value() }

// Holds is what a unit in a phase that holds quota holds. Somebody may have set the phase alone: counting too much is
// safe, counting nothing is not.
func (u *Unit) Holds() resources.List {
	if u.Recorded || u.Held.Len() > 0 || u.WasAdopted() {
		return u.Held
	}
	return u.Request
}

// WasAdopted says that the unit was not admitted, because its job ran before. The creator of a unit cannot claim that.
func (u *Unit) WasAdopted() bool {
	admitted := u.Condition(v1alpha1.ConditionAdmitted)
	return admitted != nil && admitted.Status == metav1.ConditionTrue && admitted.Reason == v1alpha1.ReasonAdopted
}

// Expected is what is known of the pods of a unit. Pod sets of a unit that somebody else wrote are his word for what he
// does; those of a managed job are the job's.
func (u *Unit) Expected(managed bool) unit.Expected {
	if !managed {
		return unit.Expected{}
	}
	x := unit.Expected{Pods: u.Pods}
	for i := range u.Sets {
		x.Each = x.Each.Max(u.Sets[i].Each())
	}
	x.Each = sharedLists.Of(x.Each)
	return x
}

// SetOf is the pod set that a pod belongs to, nil where that is not known.
func (u *Unit) SetOf(pod *corev1.Pod) *PodSet {
	name := pod.Annotations[v1alpha1.AnnotationRelatedPodSet]
	for i := range u.Sets {
		if len(u.Sets) == 1 || u.Sets[i].Name == name {
			return &u.Sets[i]
		}
	}
	return nil
}

// AdmittedSets are the pod sets with so many pods each, or whole.
func (u *Unit) AdmittedSets(counts []int64) []PodSet {
	if len(counts) != len(u.Sets) {
		return u.Sets
	}
	sets := slices.Clone(u.Sets)
	for i := range sets {
		sets[i].shrink(counts[i])
	}
	return sets
}

func Shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "..."
}

// priorities that most units have need no memory of their own.
var priorities = func() (list [256]int32) {
	for i := range list {
		list[i] = int32(i)
	}
	return list
}()

func sharedPriority(n *int32) *int32 {
	if n != nil && *n >= 0 && int(*n) < len(priorities) {
		return &priorities[*n]
	}
	return n
}

var (
	// sharedMessages are those that were seen lately.
	sharedMessages = intern.NewPool(maphash.String, func(a, b string) bool { return a == b })
	sharedLists    = intern.NewPool(hashList, resources.List.Same)
	sharedSets     = intern.NewPool(hashSets, sameSets)
)

func hashList(seed maphash.Seed, list resources.List) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	addList(&h, list)
	return h.Sum64()
}

func hashSets(seed maphash.Seed, sets []PodSet) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range sets {
		_, _ = h.WriteString(sets[i].Name)
		maphash.WriteComparable(&h, [2]int64{sets[i].Count, sets[i].least})
		addList(&h, sets[i].Total)
	}
	return h.Sum64()
}

func addList(h *maphash.Hash, list resources.List) {
	for _, it := range list.Items() {
		_, _ = h.WriteString(it.Name)
		maphash.WriteComparable(h, it.Amount)
	}
}

func sameSets(a, b []PodSet) bool {
	return slices.EqualFunc(a, b, func(x, y PodSet) bool {
		return x.Name == y.Name && x.Count == y.Count && x.least == y.least && x.Total.Same(y.Total)
	})
}
