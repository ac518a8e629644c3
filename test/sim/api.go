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

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// kind of objects, by its resource.
type kind string

const (
	units      kind = "queueunits"
	queues     kind = "queues"
	jobKind    kind = "jobs"
	jobSets    kind = "jobsets"
	pods       kind = "pods"
	nodes      kind = "nodes"
	quotas     kind = "elasticquotas"
	namespaces kind = "namespaces"
	classes    kind = "priorityclasses"
	checks     kind = "admissionchecks"
)

var groupKinds = map[kind]schema.GroupVersionKind{
	units:      {Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "QueueUnit"},
	queues:     {Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "Queue"},
	jobKind:    {Group: "batch", Version: "v1", Kind: "Job"},
	jobSets:    {Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	pods:       {Version: "v1", Kind: "Pod"},
	nodes:      {Version: "v1", Kind: "Node"},
	quotas:     {Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Kind: "ElasticQuota"},
	namespaces: {Version: "v1", Kind: "Namespace"},
	classes:    {Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
	checks:     {Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "AdmissionCheck"},
}

// hasStatus are the kinds with a status of its own.
var hasStatus = map[kind]bool{units: true, jobKind: true, jobSets: true, queues: true}

func (k kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: groupKinds[k].Group, Resource: string(k)}
}

// object is one version of an object. It is never changed.
type object struct {
	kind  kind
	key   string // namespace/name, or the name
	rv    int64
	u     *unstructured.Unstructured
	typed any
}

func (o *object) uid() types.UID { return o.u.GetUID() }

// as reads the object into a Go type, once.
func as[T any](o *object) *T {
	if o == nil {
		return nil
	}
	if typed, ok := o.typed.(*T); ok {
		return typed
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.u.Object, typed); err != nil {
		panic(fmt.Sprintf("%s %s: %v", o.kind, o.key, err)) // the world made it
	}
	o.typed = typed
	return typed
}

func podOf(o *object) *corev1.Pod                     { return as[corev1.Pod](o) }
func nodeOf(o *object) *corev1.Node                   { return as[corev1.Node](o) }
func quotaOf(o *object) *eqv1alpha1.ElasticQuota      { return as[eqv1alpha1.ElasticQuota](o) }
func unitOf(o *object) *v1alpha1.QueueUnit            { return as[v1alpha1.QueueUnit](o) }
func keyOf(namespace, name string) string             { return strings.TrimPrefix(namespace+"/"+name, "/") }
func nested(o *object, path ...string) map[string]any { return mapAt(o.u.Object, path...) }

// owner that has made an object. A forged owner made nothing.
func owner(o *object) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(o.u)
	if ref != nil && strings.HasPrefix(ref.Name, decoy) {
		return nil
	}
	return ref
}

func mapAt(fields map[string]any, path ...string) map[string]any {
	for _, key := range path {
		fields, _ = fields[key].(map[string]any)
	}
	return fields
}

// writer is who changes objects. decision is what a scheduler had seen when it decided on the write.
type writer struct {
	role     string // scheduler, controller, or another name
	process  string
	decision *decision
}

// change is one entry of the history; before is nil for a creation, after for a deletion.
type change struct {
	rv            int64
	at            time.Time
	kind          kind
	key           string
	before, after *object
	by            writer
}

// api is the API server: objects under one resource version, and their history.
type api struct {
	loop      *loop
	version   int64
	uids      int64
	objects   map[kind]map[string]*object
	history   map[kind][]*change
	compacted int64 // watches that have seen less are told that they are too old
	watchers  map[kind][]func()
	onChange  []func(*change)
	careless  bool // broken on purpose: no write is compared with the version that it was made on
	validate  map[kind]func(before, after *unstructured.Unstructured) error
}

func newAPI(l *loop) *api {
	a := &api{
		loop: l, version: 1000, objects: map[kind]map[string]*object{}, history: map[kind][]*change{},
		watchers: map[kind][]func(){},
	}
	for k := range groupKinds {
		a.objects[k] = map[string]*object{}
	}
	a.validate = map[kind]func(before, after *unstructured.Unstructured) error{units: validUnit, jobKind: validJob}
	return a
}

func (a *api) get(k kind, key string) *object { return a.objects[k][key] }

// list is sorted by key.
func (a *api) list(k kind) []*object { return sorted(a.objects[k]) }

func sorted(objects map[string]*object) []*object {
	out := make([]*object, 0, len(objects))
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		out = append(out, objects[key])
	}
	return out
}

// at is what a kind was at a version that is not compacted.
func (a *api) at(k kind, version int64) map[string]*object {
	state := maps.Clone(a.objects[k])
	for _, c := range slices.Backward(a.history[k]) {
		if c.rv <= version {
			break
		}
		if c.before == nil {
			delete(state, c.key)
		} else {
			state[c.key] = c.before
		}
	}
	return state
}

// since lists the changes of a kind after a version.
func (a *api) since(k kind, version int64) []*change {
	history := a.history[k]
	i, _ := slices.BinarySearchFunc(history, version+1, func(c *change, v int64) int { return cmp.Compare(c.rv, v) })
	return history[i:]
}

func (a *api) commit(by writer, k kind, key string, before *object, after *unstructured.Unstructured) *object {
	a.version++
	c := &change{rv: a.version, at: a.loop.now, kind: k, key: key, before: before, by: by}
	if after == nil {
		delete(a.objects[k], key)
	} else {
		after.SetResourceVersion(strconv.FormatInt(a.version, 10))
		c.after = &object{kind: k, key: key, rv: a.version, u: after}
		a.objects[k][key] = c.after
	}
	a.history[k] = append(a.history[k], c)
	for _, f := range a.onChange {
		f(c)
	}
	for _, f := range a.watchers[k] {
		f()
	}
	return c.after
}

func (a *api) create(by writer, k kind, u *unstructured.Unstructured) (*object, error) {
	key := keyOf(u.GetNamespace(), u.GetName())
	if a.objects[k][key] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), u.GetName())
	}
	u = normal(u)
	u.SetGroupVersionKind(groupKinds[k])
	a.uids++
	u.SetUID(types.UID(fmt.Sprintf("%s-%d", strings.TrimSuffix(string(k), "s"), a.uids)))
	u.SetCreationTimestamp(metav1.NewTime(a.loop.now.Truncate(time.Second)))
	u.SetGeneration(1)
	if hasStatus[k] {
		unstructured.RemoveNestedField(u.Object, "status")
	}
	if check := a.validate[k]; check != nil {
		if err := check(nil, u); err != nil {
			return nil, invalid(k, u.GetName(), err)
		}
	}
	return a.commit(by, k, key, nil, u), nil
}

func invalid(k kind, name string, err error) error {
	e := apierrors.NewInvalid(groupKinds[k].GroupKind(), name, nil)
	e.ErrStatus.Message += err.Error()
	return e
}

// patch is a merge patch of the object, or of its status alone.
func (a *api) patch(by writer, k kind, key string, data []byte, status bool) (*object, error) {
	before := a.objects[k][key]
	name := key[strings.LastIndex(key, "/")+1:]
	if before == nil {
		return nil, apierrors.NewNotFound(k.resource(), name)
	}
	var sent struct {
		Metadata struct{ ResourceVersion, UID string }
	}
	if err := json.Unmarshal(data, &sent); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if uid := sent.Metadata.UID; uid != "" && uid != string(before.uid()) {
		return nil, apierrors.NewConflict(k.resource(), name,
			fmt.Errorf("uid in precondition: %s, in object: %s", uid, before.uid()))
	}
	if version := sent.Metadata.ResourceVersion; !a.careless && version != "" && version != before.u.GetResourceVersion() {
		return nil, apierrors.NewConflict(k.resource(), name, fmt.Errorf("the object has been modified"))
	}
	old, err := json.Marshal(before.u.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	merged, err := jsonpatch.MergePatch(old, data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(merged); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return a.replace(by, before, after, status)
}

// edit is what one of the world's own actors does, at once and to the newest version. It is false if there is no such
// object, or the change is refused.
func (a *api) edit(by writer, k kind, key string, status bool, change func(u *unstructured.Unstructured)) bool {
	before := a.objects[k][key]
	if before == nil {
		return false
	}
	after := before.u.DeepCopy()
	change(after)
	_, err := a.replace(by, before, normal(after), status)
	return err == nil
}

// replace takes from after what a write of the object, or of its status, may change. A write that changes nothing makes
// no new version.
func (a *api) replace(by writer, before *object, after *unstructured.Unstructured, status bool) (*object, error) {
	next := before.u.DeepCopy()
	subresource := hasStatus[before.kind]
	switch {
	case status:
		setField(next, "status", after.Object["status"])
	default:
		for _, field := range []string{"spec", "value", "globalDefault"} {
			setField(next, field, after.Object[field])
		}
		if !subresource {
			setField(next, "status", after.Object["status"])
		}
		next.SetLabels(after.GetLabels())
		next.SetAnnotations(after.GetAnnotations())
		next.SetOwnerReferences(after.GetOwnerReferences())
		next.SetDeletionTimestamp(after.GetDeletionTimestamp())
		next.SetDeletionGracePeriodSeconds(after.GetDeletionGracePeriodSeconds())
	}
	tidy(next)
	if reflect.DeepEqual(next.Object, before.u.Object) {
		return before, nil
	}
	if !reflect.DeepEqual(next.Object["spec"], before.u.Object["spec"]) {
		next.SetGeneration(before.u.GetGeneration() + 1)
	}
	if check := a.validate[before.kind]; check != nil {
		if err := check(before.u, next); err != nil {
			return nil, invalid(before.kind, next.GetName(), err)
		}
	}
	return a.commit(by, before.kind, before.key, before, next), nil
}

func setField(u *unstructured.Unstructured, field string, value any) {
	if value == nil {
		delete(u.Object, field)
		return
	}
	u.Object[field] = value
}

func (a *api) delete(by writer, k kind, key string, uid types.UID) error {
	return a.deleteAt(by, k, key, uid, "")
}

// deleteAt is delete with the version as a further precondition, if it is not empty.
func (a *api) deleteAt(by writer, k kind, key string, uid types.UID, version string) error {
	before := a.objects[k][key]
	name := key[strings.LastIndex(key, "/")+1:]
	switch {
	case before == nil:
		return apierrors.NewNotFound(k.resource(), name)
	case uid != "" && uid != before.uid():
		return apierrors.NewConflict(k.resource(), name,
			fmt.Errorf("uid in precondition: %s, in object: %s", uid, before.uid()))
	case version != "" && version != before.u.GetResourceVersion():
		return apierrors.NewConflict(k.resource(), name,
			fmt.Errorf("version in precondition: %s, in object: %s", version, before.u.GetResourceVersion()))
	}
	a.commit(by, k, key, before, nil)
	return nil
}

// normal gives values the types that JSON has, and shares nothing with u.
func normal(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.GetKind() == "" {
		u.SetKind("unknown")
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		panic(err) // the world made it
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(raw); err != nil {
		panic(err)
	}
	tidy(out)
	return out
}

// tidy drops what metadata has without a meaning.
func tidy(u *unstructured.Unstructured) {
	metadata := mapAt(u.Object, "metadata")
	for _, field := range []string{"labels", "annotations"} {
		if m, ok := metadata[field].(map[string]any); ok && len(m) == 0 {
			delete(metadata, field)
		}
	}
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
}

// validUnit is what the definition of QueueUnits refuses, as far as anybody here could try it.
func validUnit(before, after *unstructured.Unstructured) error {
	if before == nil {
		return nil
	}
	attempts := func(u *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", "attempts")
		return n
	}
	if attempts(after) < attempts(before) {
		return fmt.Errorf("status.attempts must not become smaller")
	}
	phase := func(u *unstructured.Unstructured) string {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase
	}
	if rulebook.Holds(phase(before)) && phase(after) == phase(before) &&
		!reflect.DeepEqual(withoutCounts(before), withoutCounts(after)) {
		return fmt.Errorf("names and templates in spec.podSet must not change while the unit holds quota")
	}
	for _, field := range []string{"kind", "name", "uid"} {
		old := mapAt(before.Object, "spec", "consumerRef")[field]
		if old != nil && mapAt(after.Object, "spec", "consumerRef")[field] != old {
			return fmt.Errorf("spec.consumerRef is immutable")
		}
	}
	return nil
}

// withoutCounts are the names and templates of the pod sets of a unit.
func withoutCounts(u *unstructured.Unstructured) (sets [][2]any) {
	list, _ := mapAt(u.Object, "spec")["podSet"].([]any)
	for _, item := range list {
		set, _ := item.(map[string]any)
		sets = append(sets, [2]any{set["name"], set["template"]})
	}
	return sets
}

// validJob returns the error of the API server for a job. Its template may change only in its metadata, while the job
// is suspended and has not begun. Completions may change only in an Indexed job, to its parallelism. Annotations are
// bounded.
func validJob(before, after *unstructured.Unstructured) error {
	if n := lengthOf(after.GetAnnotations()); n > mostAnnotations {
		return fmt.Errorf("metadata.annotations: Too long: may not be more than %d bytes", mostAnnotations)
	}
	if before == nil {
		return nil
	}
	old, next := mapAt(before.Object, "spec"), mapAt(after.Object, "spec")
	if !reflect.DeepEqual(old["completions"], next["completions"]) {
		if next["completionMode"] != indexed {
			return fmt.Errorf("spec.completions is immutable")
		}
		if !reflect.DeepEqual(next["completions"], next["parallelism"]) {
			return fmt.Errorf("spec.completions can only be modified in tandem with spec.parallelism")
		}
	}
	suspended, _ := old["suspend"].(bool)
	started := mapAt(before.Object, "status")["startTime"] != nil
	same := reflect.DeepEqual(mapAt(old, "template"), mapAt(next, "template"))
	if suspended && !started {
		same = reflect.DeepEqual(mapAt(old, "template", "spec"), mapAt(next, "template", "spec"))
	}
	if !same {
		return fmt.Errorf("spec.template is immutable")
	}
	if started && !suspended && mapAt(after.Object, "status")["startTime"] == nil {
		return fmt.Errorf("status.startTime cannot be removed of a job that is not suspended")
	}
	return nil
}
