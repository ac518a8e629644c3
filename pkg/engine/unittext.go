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
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/intern"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// A QueueUnit comes several times in its life, and most of its text is not for us: managed fields, templates. So it is read
// from its bytes in one pass. unitText knows units that are in order; what it does not know, decodeUnit says, as ever.

// readUnit reads a unit from its JSON.
func readUnit(raw []byte) (*unitObject, error) {
	r := newUnitText(raw)
	if u := r.unit(); u != nil && r.atEnd() {
		return u, nil
	}
	return readOddUnit(raw)
}

// readOddUnit reads a unit that unitText does not know.
func readOddUnit(raw []byte) (*unitObject, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return decodeUnit(obj), nil
}

// unitText reads one unit. It fails at whatever is not as the API server writes units that are in order; a unit that it
// returns is the same that decodeUnit makes.
type unitText struct {
	textLexer
	u *unitObject

	hasMeta         bool
	name, namespace []byte
	quotas          [3][]byte // by quotaKeys
	labelledQueue   []byte
	annotatedQueue  []byte
	queue           []byte
	controller      []byte // UID of the owner that controls
	hasController   bool
	owner           struct {
		uid      []byte
		controls bool
	}

	consumer struct {
		apiVersion, kind, namespace, name, uid []byte
	}
	request, resource []byte
	hasSet            bool
	set               podSetText // that is being read
	first             podSetText
	sets              []podSetText // all, if there are several
}

func newUnitText(text []byte) unitText { return unitText{textLexer: newTextLexer(text)} }

// reset, object and odd implement objectText.
func (r *unitText) reset(text []byte) *textLexer {
	*r = newUnitText(text)
	return &r.textLexer
}

func (r *unitText) object() runtime.Object {
	if u := r.unit(); u != nil {
		return u
	}
	return nil
}

func (*unitText) odd(raw []byte) (runtime.Object, error) {
	u, err := readUnit(raw)
	if err != nil {
		return nil, err
	}
	return u, nil
}

type podSetText struct {
	name, template []byte
	count          int64
}

// unit is nil when decodeUnit has to read it.
func (r *unitText) unit() *unitObject {
	r.u = &unitObject{unitHistory: &unitHistory{}}
	readObject(r, unitFields, (*unitText).pass)
	if !r.Ok() || !r.hasMeta {
		return nil
	}
	if err := r.finish(); err != nil {
		return nil
	}
	if r.u.unitHistory.empty() {
		r.u.unitHistory = noHistory
	}
	return r.u
}

// shared are the texts that many units have in common.
var shared = intern.NewTexts(func(text string) (string, error) { return sharedText(text), nil })

func textOf(text []byte) string {
	value, _ := shared.Of(text)
	return value
}

// messages are those that were seen lately.
var messages = intern.NewTexts(func(text string) (string, error) { return text, nil })

func messageOf(text []byte) string {
	value, _ := messages.Of(text)
	return value
}

// priorities that most units have need no memory of their own.
var priorities = func() (list [256]int32) {
	for i := range list {
		list[i] = int32(i)
	}
	return list
}()

func sharedPriority(n int32) *int32 {
	if n >= 0 && int(n) < len(priorities) {
		return &priorities[n]
	}
	return &n
}

// Fields of a unit. What they do not name is passed.
var (
	unitFields = []field[*unitText]{
		{"metadata", (*unitText).metadata},
		{"spec", func(r *unitText) { readObject(r, specFields, (*unitText).scalar) }},
		{"status", func(r *unitText) { readObject(r, statusFields, (*unitText).scalar) }},
	}
	metaFields = []field[*unitText]{
		{"name", func(r *unitText) { r.name = r.text() }},
		{"namespace", func(r *unitText) { r.namespace = r.text() }},
		{"uid", func(r *unitText) { r.u.UID = types.UID(r.text()) }},
		{"resourceVersion", func(r *unitText) { r.u.ResourceVersion = string(r.text()) }},
		{"generation", func(r *unitText) { r.u.Generation = r.integer() }},
		{"creationTimestamp", func(r *unitText) { r.u.CreationTimestamp = metav1.Time{Time: r.time()} }},
		{"labels", (*unitText).labels},
		{"annotations", (*unitText).annotations},
		{"ownerReferences", (*unitText).owners},
	}
	ownerFields = []field[*unitText]{
		{"apiVersion", (*unitText).word},
		{"kind", (*unitText).word},
		{"name", (*unitText).word},
		{"uid", func(r *unitText) { r.owner.uid = r.text() }},
		{"controller", func(r *unitText) { r.owner.controls = r.Bool() }},
		{"blockOwnerDeletion", func(r *unitText) { r.Bool() }},
	}
	specFields = []field[*unitText]{
		{"consumerRef", (*unitText).consumerRef},
		{"priority", func(r *unitText) { r.u.priority = sharedPriority(r.int32()) }},
		{"queue", func(r *unitText) { r.queue = r.text() }},
		{"podSet", (*unitText).podSets},
		{"priorityClassName", func(r *unitText) { r.u.class = textOf(r.text()) }},
		{"request", func(r *unitText) { r.request = r.skip() }},
		{"resource", func(r *unitText) { r.resource = r.skip() }},
		{"active", func(r *unitText) { r.u.inactive = !r.Bool() }},
	}
	consumerFields = []field[*unitText]{
		{"apiVersion", func(r *unitText) { r.consumer.apiVersion = r.text() }},
		{"kind", func(r *unitText) { r.consumer.kind = r.text() }},
		{"namespace", func(r *unitText) { r.consumer.namespace = r.text() }},
		{"name", func(r *unitText) { r.consumer.name = r.text() }},
		{"uid", func(r *unitText) { r.consumer.uid = r.text() }},
	}
	podSetFields = []field[*unitText]{
		{"name", func(r *unitText) { r.set.name = r.text() }},
		{"count", func(r *unitText) { r.set.count = int64(r.int32()) }},
		{"template", (*unitText).template},
	}
	statusFields = []field[*unitText]{
		{"phase", func(r *unitText) { r.u.phase = admission.Phase(textOf(r.text())) }},
		{"attempts", func(r *unitText) { r.u.attempts = r.integer() }},
		{"message", func(r *unitText) { r.u.message = messageOf(r.text()) }},
		{"admissions", (*unitText).admissions},
		{"lastAllocateTime", func(r *unitText) { r.u.allocated = r.time() }},
		{"conditions", (*unitText).conditions},
		{"requeueState", func(r *unitText) { readObject(r, requeueFields, (*unitText).scalar) }},
		{"podState", (*unitText).counts},
	}
	requeueFields = []field[*unitText]{
		{"requeueAt", func(r *unitText) { r.u.requeueAt = r.time() }},
	}
	admissionFields = []field[*unitText]{
		{"name", (*unitText).word},
		{"replicas", func(r *unitText) { r.integer() }},
		{"running", func(r *unitText) { r.integer() }},
		{"reclaimState", (*unitText).counts},
		{"resources", (*unitText).held},
	}
	conditionFields = []field[*unitText]{
		{"type", func(r *unitText) { r.condition().Type = textOf(r.text()) }},
		{"status", func(r *unitText) { r.condition().Status = metav1.ConditionStatus(textOf(r.text())) }},
		{"observedGeneration", func(r *unitText) { r.condition().ObservedGeneration = r.integer() }},
		{"lastTransitionTime", func(r *unitText) { r.condition().LastTransitionTime = metav1.Time{Time: r.time()} }},
		{"reason", func(r *unitText) { r.condition().Reason = textOf(r.text()) }},
		{"message", func(r *unitText) { r.condition().Message = messageOf(r.text()) }},
	}
)

func (r *unitText) metadata() {
	r.hasMeta = true
	readObject(r, metaFields, (*unitText).pass)
}

func (r *unitText) labels() {
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case v1alpha1.LabelQuotaName:
			r.quotas[0] = r.text()
		case v1alpha1.LabelQuotaNameFallback1:
			r.quotas[1] = r.text()
		case v1alpha1.LabelQuotaNameFallback2:
			r.quotas[2] = r.text()
		case v1alpha1.QueueNameKey:
			r.labelledQueue = r.text()
		case v1alpha1.LabelPreemptible:
			r.u.nonPreemptible = string(r.text()) == "false"
		default:
			r.text()
		}
	}
}

func (r *unitText) annotations() {
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case v1alpha1.QueueNameKey:
			r.annotatedQueue = r.text()
		case v1alpha1.AnnotationParkedReason:
			r.u.parked = len(r.text()) > 0
		case v1alpha1.AnnotationAdopted:
			r.u.adopted = true
			r.text()
		default:
			r.text()
		}
	}
}

// owners looks for the first that controls.
func (r *unitText) owners() {
	for r.Delim('['); r.item(); r.WantComma() {
		r.owner.uid, r.owner.controls = nil, false
		readObject(r, ownerFields, (*unitText).pass)
		if r.owner.controls && !r.hasController {
			r.hasController, r.controller = true, r.owner.uid
		}
	}
}

func (r *unitText) pass() { r.skip() }
func (r *unitText) word() { r.text() }

// scalar passes a field that is not read. One with fields of its own could name amounts, which decodeUnit looks at.
func (r *unitText) scalar() {
	if r.composite() {
		r.fail()
	}
	r.skip()
}

func (r *unitText) consumerRef() {
	r.u.hasConsumer = true
	readObject(r, consumerFields, (*unitText).word)
}

func (r *unitText) podSets() {
	n := 0
	for r.Delim('['); r.item(); r.WantComma() {
		r.set = podSetText{count: 1}
		readObject(r, podSetFields, (*unitText).pass)
		set := r.set
		r.u.pods += set.count
		switch {
		case set.count < 0 || n == maxPodSets:
			r.fail()
		case n == 0:
			r.first, r.hasSet = set, true
		case n == 1:
			r.sets = []podSetText{r.first, set}
		default:
			r.sets = append(r.sets, set)
		}
		n++
	}
}

func (r *unitText) template() {
	if !r.composite() {
		r.fail()
	}
	r.set.template = r.skip()
}

// counts passes an object of numbers.
func (r *unitText) counts() {
	for r.Delim('{'); r.member(); r.WantComma() {
		r.integer()
	}
}

func (r *unitText) admissions() {
	n := 0
	for r.Delim('['); r.item(); r.WantComma() {
		readObject(r, admissionFields, (*unitText).scalar)
		n++
	}
	if n > maxPodSets {
		r.fail()
	}
}

func (r *unitText) held() {
	held, err := amounts.Of(r.skip())
	if err != nil {
		r.fail()
	}
	if r.u.held.Len() > 0 {
		held = r.u.held.Add(held)
	}
	r.u.held = held
}

func (r *unitText) conditions() {
	r.u.conditions = make([]metav1.Condition, 0, 2) // as many as an admission writes
	for r.Delim('['); r.item(); r.WantComma() {
		r.u.conditions = append(r.u.conditions, metav1.Condition{})
		readObject(r, conditionFields, (*unitText).scalar)
	}
}

// condition is the one that is being read.
func (r *unitText) condition() *metav1.Condition { return &r.u.conditions[len(r.u.conditions)-1] }

// amounts are what the same text says in very many units.
var amounts = intern.NewTexts(func(text string) (resources.List, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal([]byte(text), &fields); err != nil {
		return resources.List{}, err
	}
	if fields == nil {
		return resources.List{}, errOdd // null is not the same as nothing
	}
	var read struct {
		Resources corev1.ResourceList `json:"resources"`
	}
	if err := convert(map[string]any{"resources": fields}, &read); err != nil {
		return resources.List{}, err
	}
	list, err := listOf(read.Resources)
	return sharedLists.Of(list), err
})

var errOdd = errors.New("not written as by the API server")

// consumerKinds by apiVersion, a space and kind.
var consumerKinds = intern.NewTexts(func(text string) (consumerKind, error) {
	apiVersion, kind, _ := strings.Cut(text, " ")
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	return consumerKind{unique.Make(gvk), sharedText(jobs.KindString(gvk))}, nil
})

type consumerKind struct {
	handle unique.Handle[schema.GroupVersionKind]
	text   string
}

// finish does what needs all of the unit.
func (r *unitText) finish() error {
	u := r.u
	namespace := textOf(r.namespace)
	u.Namespace, u.path = namespace, namespace+"/"+string(r.name)
	u.Name = u.path[len(namespace)+1:]
	for i, value := range r.quotas {
		if len(value) > 0 {
			u.quota, u.quotaKey = textOf(value), quotaKeys[i]
			break
		}
	}
	for _, name := range [][]byte{r.queue, r.annotatedQueue, r.labelledQueue} {
		if len(name) > 0 {
			u.queue = textOf(name)
			break
		}
	}
	if u.hasConsumer {
		if err := r.finishConsumer(); err != nil {
			return err
		}
	}
	if err := r.finishRequest(); err != nil {
		return err
	}
	if len(u.held.Items()) == 0 && u.phase.Holds() {
		u.held = u.request
	}
	return nil
}

func (r *unitText) finishConsumer() error {
	u, c := r.u, &r.consumer
	if bytes.IndexByte(c.apiVersion, ' ') >= 0 {
		return errOdd
	}
	var text [128]byte
	kind, err := consumerKinds.Of(append(append(append(text[:0], c.apiVersion...), ' '), c.kind...))
	if err != nil {
		return err
	}
	u.consumerKind = kind.handle
	u.consumer = admission.Consumer{Kind: kind.text, Namespace: textOf(c.namespace), Name: r.nameOf(c.name), UID: string(c.uid)}
	if u.consumer.Namespace == "" {
		u.consumer.Namespace = u.Namespace
	}
	u.owned = r.hasController && len(c.uid) > 0 && string(r.controller) == u.consumer.UID
	return nil
}

// nameOf the consumer, which mostly is a part of that of the unit.
func (r *unitText) nameOf(consumer []byte) string {
	if n := len(r.u.path) - len(consumer); n >= 0 && r.u.path[n:] == string(consumer) {
		return r.u.path[n:]
	}
	return string(consumer)
}

func (r *unitText) finishRequest() error {
	u := r.u
	explicit := r.request
	if explicit == nil {
		explicit = r.resource
	}
	for _, text := range [][]byte{r.request, r.resource} { // decodeUnit reads both
		if text == nil {
			continue
		}
		if _, err := amounts.Of(text); err != nil {
			return err
		}
	}
	if explicit != nil {
		list, err := amounts.Of(explicit)
		if err != nil {
			return err
		}
		u.request = list
		if r.hasSet && r.sets == nil {
			u.sets, err = onlySets.Of(r.onlySet(explicit))
			return err
		}
	}
	templates := r.allSets()
	if err := u.addTemplates(explicit == nil, templates); err != nil {
		return err
	}
	u.shareAmounts()
	return nil
}

// allSets puts the pod sets, of which nothing is known but name and count, into the unit and returns their templates.
func (r *unitText) allSets() (templates []any) {
	sets := r.sets
	if r.hasSet && sets == nil {
		sets = []podSetText{r.first}
	}
	for _, set := range sets {
		r.u.sets = append(r.u.sets, podSetTotal{name: textOf(set.name), count: set.count})
		var template any
		if set.template != nil {
			template = json.RawMessage(set.template)
		}
		templates = append(templates, template)
	}
	return templates
}

// onlySet is the text by which onlySets knows the only pod set of a unit that names its request.
func (r *unitText) onlySet(explicit []byte) []byte {
	var buffer [256]byte
	text := append(append(buffer[:0], r.first.name...), ' ')
	text = append(strconv.AppendInt(text, r.first.count, 10), ' ')
	return append(text, explicit...)
}

// onlySets by name, count and request, with spaces between them.
var onlySets = intern.NewTexts(func(text string) ([]podSetTotal, error) {
	name, rest, _ := strings.Cut(text, " ")
	number, request, _ := strings.Cut(rest, " ")
	count, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, errOdd // a space in the name
	}
	total, err := amounts.Of([]byte(request))
	return []podSetTotal{{name: sharedText(name), count: count, total: total}}, err
})
