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

	name, namespace []byte
	quotas          [3][]byte // by quotaKeys
	labelledQueue   []byte
	annotatedQueue  []byte
	queue           []byte
	controller      []byte // UID of the owner that controls
	hasController   bool

	consumer struct {
		apiVersion, kind, namespace, name, uid []byte
	}
	request, resource []byte
	hasSet            bool
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
	var s seen
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "metadata":
			r.once(&s, 0)
			r.metadata()
		case "spec":
			r.once(&s, 1)
			r.spec()
		case "status":
			r.once(&s, 2)
			r.status()
		default:
			r.skip()
		}
	}
	if !r.Ok() || s&1 == 0 {
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

func (r *unitText) metadata() {
	var s, others seen
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "name":
			r.once(&s, 0)
			r.name = r.text()
		case "namespace":
			r.once(&s, 1)
			r.namespace = r.text()
		case "labels":
			r.once(&s, 2)
			r.labels()
		case "annotations":
			r.once(&s, 3)
			r.annotations()
		case "ownerReferences":
			r.once(&s, 4)
			r.owners()
		default:
			r.meta(&others, &r.u.objectMeta)
		}
	}
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
		var s seen
		var uid []byte
		controls := false
		for r.Delim('{'); r.member(); r.WantComma() {
			switch string(r.key) {
			case "uid":
				r.once(&s, 0)
				uid = r.text()
			case "controller":
				r.once(&s, 1)
				controls = r.Bool()
			case "apiVersion", "kind", "name":
				r.text()
			case "blockOwnerDeletion":
				r.Bool()
			default:
				r.skip()
			}
		}
		if controls && !r.hasController {
			r.hasController, r.controller = true, uid
		}
	}
}

// scalar passes a field that is not read. One with fields of its own could name amounts, which decodeUnit looks at.
func (r *unitText) scalar() {
	if r.composite() {
		r.fail()
	}
	r.skip()
}

func (r *unitText) spec() {
	var s seen
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "consumerRef":
			r.once(&s, 0)
			r.consumerRef()
		case "priority":
			r.once(&s, 1)
			r.u.priority = sharedPriority(r.int32())
		case "queue":
			r.once(&s, 2)
			r.queue = r.text()
		case "podSet":
			r.once(&s, 3)
			r.podSets()
		case "priorityClassName":
			r.once(&s, 4)
			r.u.class = textOf(r.text())
		case "request":
			r.once(&s, 5)
			r.request = r.skip()
		case "resource":
			r.once(&s, 6)
			r.resource = r.skip()
		case "active":
			r.once(&s, 7)
			r.u.inactive = !r.Bool()
		default:
			r.scalar()
		}
	}
}

func (r *unitText) consumerRef() {
	var s seen
	c := &r.consumer
	r.u.hasConsumer = true
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "apiVersion":
			r.once(&s, 0)
			c.apiVersion = r.text()
		case "kind":
			r.once(&s, 1)
			c.kind = r.text()
		case "namespace":
			r.once(&s, 2)
			c.namespace = r.text()
		case "name":
			r.once(&s, 3)
			c.name = r.text()
		case "uid":
			r.once(&s, 4)
			c.uid = r.text()
		default:
			r.text()
		}
	}
}

func (r *unitText) podSets() {
	n := 0
	for r.Delim('['); r.item(); r.WantComma() {
		set := r.podSet()
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

func (r *unitText) podSet() podSetText {
	var s seen
	set := podSetText{count: 1}
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "name":
			r.once(&s, 0)
			set.name = r.text()
		case "count":
			r.once(&s, 1)
			set.count = int64(r.int32())
		case "template":
			r.once(&s, 2)
			if !r.composite() {
				r.fail()
			}
			set.template = r.skip()
		default:
			r.skip()
		}
	}
	return set
}

func (r *unitText) status() {
	var s seen
	u := r.u
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "phase":
			r.once(&s, 0)
			u.phase = admission.Phase(textOf(r.text()))
		case "attempts":
			r.once(&s, 1)
			u.attempts = r.integer()
		case "message":
			r.once(&s, 2)
			u.message = messageOf(r.text())
		case "admissions":
			r.once(&s, 3)
			r.admissions()
		case "lastAllocateTime":
			r.once(&s, 4)
			u.allocated = r.time()
		case "conditions":
			r.once(&s, 5)
			r.conditions()
		case "requeueState":
			r.once(&s, 6)
			r.requeueState()
		case "podState":
			r.once(&s, 7)
			r.counts()
		default:
			r.scalar()
		}
	}
}

// counts passes an object of numbers.
func (r *unitText) counts() {
	for r.Delim('{'); r.member(); r.WantComma() {
		r.integer()
	}
}

func (r *unitText) requeueState() {
	var s seen
	for r.Delim('{'); r.member(); r.WantComma() {
		if string(r.key) == "requeueAt" {
			r.once(&s, 0)
			r.u.requeueAt = r.time()
		} else {
			r.scalar()
		}
	}
}

func (r *unitText) admissions() {
	n := 0
	for r.Delim('['); r.item(); r.WantComma() {
		var s seen
		for r.Delim('{'); r.member(); r.WantComma() {
			switch string(r.key) {
			case "name":
				r.once(&s, 0)
				r.text()
			case "replicas", "running":
				r.integer()
			case "reclaimState":
				r.once(&s, 1)
				r.counts()
			case "resources":
				r.once(&s, 2)
				held, err := amounts.Of(r.skip())
				if err != nil {
					r.fail()
				}
				if r.u.held.Len() > 0 {
					held = r.u.held.Add(held)
				}
				r.u.held = held
			default:
				r.scalar()
			}
		}
		n++
	}
	if n > maxPodSets {
		r.fail()
	}
}

func (r *unitText) conditions() {
	r.u.conditions = make([]metav1.Condition, 0, 2) // as many as an admission writes
	for r.Delim('['); r.item(); r.WantComma() {
		var s seen
		c := metav1.Condition{}
		for r.Delim('{'); r.member(); r.WantComma() {
			switch string(r.key) {
			case "type":
				r.once(&s, 0)
				c.Type = textOf(r.text())
			case "status":
				r.once(&s, 1)
				c.Status = metav1.ConditionStatus(textOf(r.text()))
			case "observedGeneration":
				r.once(&s, 2)
				c.ObservedGeneration = r.integer()
			case "lastTransitionTime":
				r.once(&s, 3)
				c.LastTransitionTime = metav1.Time{Time: r.time()}
			case "reason":
				r.once(&s, 4)
				c.Reason = textOf(r.text())
			case "message":
				r.once(&s, 5)
				c.Message = messageOf(r.text())
			default:
				r.scalar()
			}
		}
		r.u.conditions = append(r.u.conditions, c)
	}
}

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
