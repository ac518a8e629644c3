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
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unique"
	"unsafe"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
)

// unitMeta, unitSpec and the statuses are the parts of a QueueUnit as an API server sends it.
const (
	textManagedFields = `"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:koord-queue/submitted-by":{}},"f:labels":{".":{},` +
		`"f:app.kubernetes.io/name":{},"f:quota.scheduling.koordinator.sh/name":{}},"f:ownerReferences":{".":{},` +
		`"k:{\"uid\":\"7d3b2c1e-5f4a-4b6d-8c9e-000000000001\"}":{}}},"f:spec":{".":{},"f:consumerRef":{},` +
		`"f:podSet":{".":{},"k:{\"name\":\"main\"}":{".":{},"f:count":{},"f:name":{},"f:template":{}}},"f:priority":{},` +
		`"f:queue":{},"f:request":{".":{},"f:cpu":{},"f:memory":{}}}},"manager":"jobqueue-controller","operation":"Update",` +
		`"time":"2026-01-01T00:00:00Z"}]`

	textUnit = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit",` +
		`"metadata":{"annotations":{"koord-queue/submitted-by":"alice@example.com"},` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,` +
		`"labels":{"app.kubernetes.io/name":"resnet","quota.scheduling.koordinator.sh/name":"team-1"},` +
		textManagedFields + `,` +
		`"name":"job-train-%[1]d","namespace":"team","ownerReferences":[{"apiVersion":"batch/v1","blockOwnerDeletion":true,` +
		`"controller":true,"kind":"Job","name":"train-%[1]d","uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"}],` +
		`"resourceVersion":"%[2]d","uid":"a1b2c3d4-1111-4222-8333-%012[1]d"},` +
		`"spec":{"consumerRef":{"apiVersion":"batch/v1","kind":"Job","name":"train-%[1]d","namespace":"team",` +
		`"uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"},"podSet":[{"count":1,"name":"main",` +
		`"template":{"metadata":{"labels":{"quota.scheduling.koordinator.sh/name":"team-1"}},` +
		`"spec":{"containers":[{"args":["--epochs=90"],"command":["python","train.py"],` +
		`"image":"registry.example.com/ml/resnet:1.4.2","name":"main","resources":{"limits":{"cpu":"4","memory":"4Gi"},` +
		`"requests":{"cpu":"4","memory":"4Gi"}}}],"restartPolicy":"Never"}}}],"priority":100,"queue":"team-1",` +
		`"request":{"cpu":"4","memory":"4Gi"}},` +
		`"status":%[3]s}`

	textWaiting  = `{"phase":"Enqueued"}`
	textAdmitted = `{"admissions":[{"name":"main","replicas":1,"resources":{"cpu":"4","memory":"4Gi"}}],"attempts":1,` +
		`"conditions":[` +
		`{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"quota is reserved: cpu: 4, memory: 4Gi",` +
		`"observedGeneration":1,"reason":"QuotaReserved","status":"True","type":"QuotaReserved"},` +
		`{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"admitted, attempt 1","observedGeneration":1,` +
		`"reason":"Admitted","status":"True","type":"Admitted"}],` +
		`"lastAllocateTime":"2026-01-01T00:00:05Z","lastUpdateTime":"2026-01-01T00:00:05Z","message":"","phase":"Dequeued"}`
	textRequeued = `{"attempts":2,"conditions":[{"lastTransitionTime":"2026-01-01T00:00:05Z",` +
		`"message":"pods of \"main\" are missing","reason":"Evicted","status":"True","type":"Evicted"}],` +
		`"message":"pods of \"main\" are missing","phase":"Enqueued","podState":{"pending":0,"running":0},` +
		`"requeueState":{"count":1,"requeueAt":"2026-01-01T00:01:00Z"}}`
)

var textEnded = strings.Replace(textAdmitted, "Dequeued", "Succeed", 1)

func unitOfStatus(number, version int, status string) string {
	return fmt.Sprintf(textUnit, number, version, status)
}

// unitIn reads a unit.
func unitIn(t testing.TB, text string) *unitObject {
	t.Helper()
	w := &wireUnit{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), w))
	return decodeUnit(w)
}

// TestUnitsAreRead: every field that is kept, by the text that says it.
func TestUnitsAreRead(t *testing.T) {
	at := func(text string) time.Time {
		found, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return found.Local()
	}
	list := func(cpu, memory int64) resources.List {
		return resources.FromMap(map[string]int64{"cpu": cpu, "memory": memory << 30})
	}
	job := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	waiting := unitObject{
		objectMeta: objectMeta{
			Namespace: "team", Name: "job-train-1", UID: "a1b2c3d4-1111-4222-8333-000000000001", ResourceVersion: "7",
			Generation: 1, CreationTimestamp: metav1.NewTime(at("2026-01-01T00:00:00Z")),
		},
		path: "team/job-train-1", quota: "team-1", quotaKey: v1alpha1.LabelQuotaName,
		labels: "app.kubernetes.io/name=resnet,quota.scheduling.koordinator.sh/name=team-1",
		queue:  "team-1", priority: ptr.To(int32(100)),
		request: list(4000, 4), sets: []podSetTotal{{"main", 1, list(4000, 4), 1}}, pods: 1, phase: unit.PhaseEnqueued,
		consumer: unit.Consumer{
			Kind: jobkind.KindString(job), Namespace: "team", Name: "train-1", UID: "7d3b2c1e-5f4a-4b6d-8c9e-000000000001",
		},
		consumerKind: unique.Make(job), hasConsumer: true, owned: true, unitHistory: noHistory,
	}
	admitted := waiting
	admitted.phase, admitted.attempts = unit.PhaseDequeued, 1
	admitted.unitHistory = &unitHistory{Stated: unit.Stated{
		Held: list(4000, 4), HeldPods: 1, Recorded: true, Admitted: at("2026-01-01T00:00:05Z"),
	}}
	admitted.conditions = []metav1.Condition{
		{Type: "QuotaReserved", Status: "True", Reason: "QuotaReserved", Message: "quota is reserved: cpu: 4, memory: 4Gi",
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(at("2026-01-01T00:00:05Z"))},
		{Type: "Admitted", Status: "True", Reason: "Admitted", Message: "admitted, attempt 1",
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(at("2026-01-01T00:00:05Z"))},
	}
	ended := admitted
	ended.phase = "Succeed"
	requeued := waiting
	requeued.attempts = 2
	requeued.unitHistory = &unitHistory{Stated: unit.Stated{RequeueAt: at("2026-01-01T00:01:00Z"), Requeues: 1}}
	requeued.message = `pods of "main" are missing`
	requeued.conditions = []metav1.Condition{{
		Type: "Evicted", Status: "True", Reason: "Evicted", Message: `pods of "main" are missing`,
		LastTransitionTime: metav1.NewTime(at("2026-01-01T00:00:05Z")),
	}}
	for name, c := range map[string]struct {
		status string
		want   unitObject
	}{
		"waiting": {textWaiting, waiting}, "admitted": {textAdmitted, admitted}, "ended": {textEnded, ended},
		"requeued": {textRequeued, requeued}, "without a status": {"null", func() unitObject {
			u := waiting
			u.phase = ""
			return u
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, &c.want, unitIn(t, unitOfStatus(1, 7, c.status)))
			var spaced bytes.Buffer
			require.NoError(t, json.Indent(&spaced, []byte(unitOfStatus(1, 7, c.status)), "\t", "\t"))
			found := unitIn(t, spaced.String())
			require.Equal(t, c.want.conditions, found.conditions)
			require.Equal(t, c.want.request, found.request)
		})
	}
}

// TestFieldsOfUnits: where a field may be said in more than one way, or may be absent.
func TestFieldsOfUnits(t *testing.T) {
	const two = `"podSet":[{"name":"a","count":3,"template":{"spec":{"containers":[{"name":"x",` +
		`"resources":{"requests":{"cpu":"2"}}}]}}},{"name":"b"}]`
	for name, c := range map[string]struct {
		metadata, spec string
		check          func(u *unitObject) any
		want           any
	}{
		"request": {"", `"request":{"cpu":"4"}`,
			func(u *unitObject) any { return u.request.String() }, "cpu: 4"},
		"request, former name": {"", `"resource":{"cpu":4}`, func(u *unitObject) any { return u.request.String() }, "cpu: 4"},
		"request before former": {"", `"request":{"cpu":"1"},"resource":{"cpu":"x"}`,
			func(u *unitObject) any { return u.request.String() }, "cpu: 1"},
		"request is null": {"", `"request":null,"resource":{"cpu":"4"}`,
			func(u *unitObject) any { return u.request.String() }, "cpu: 4"},
		"request by template":  {"", two, func(u *unitObject) any { return u.request.String() }, "cpu: 6"},
		"nothing is requested": {"", `"request":{},` + two, func(u *unitObject) any { return u.request.Len() }, 0},
		"pods":                 {"", two, func(u *unitObject) any { return u.pods }, int64(4)},
		"names of sets":        {"", two, func(u *unitObject) any { return u.sets[0].name + u.sets[1].name }, "ab"},
		"sets that add up":     {"", `"request":{"cpu":"6"},` + two, func(u *unitObject) any { return len(u.sets) }, 2},
		"sets that do not":     {"", `"request":{"cpu":"5"},` + two, func(u *unitObject) any { return len(u.sets) }, 0},
		"priority":             {"", `"priority":-5`, func(u *unitObject) any { return *u.priority }, int32(-5)},
		"priority is null":     {"", `"priority":null`, func(u *unitObject) any { return u.priority == nil }, true},
		"class":                {"", `"priorityClassName":"high"`, func(u *unitObject) any { return u.class }, "high"},
		"inactive":             {"", `"active":false`, func(u *unitObject) any { return u.inactive }, true},
		"active":               {"", `"active":true`, func(u *unitObject) any { return u.inactive }, false},
		"quota, fallback": {`"labels":{"` + v1alpha1.LabelQuotaNameFallback2 + `":"q"}`, ``,
			func(u *unitObject) any { return u.quota }, "q"},
		"queue in an annotation": {`"annotations":{"` + v1alpha1.QueueNameKey + `":"q"}`, ``,
			func(u *unitObject) any { return u.queue }, "q"},
		"queue in a label": {`"labels":{"` + v1alpha1.QueueNameKey + `":"q"}`, ``,
			func(u *unitObject) any { return u.queue }, "q"},
		"not preemptible": {`"labels":{"` + v1alpha1.LabelPreemptible + `":"false"}`, ``,
			func(u *unitObject) any { return u.nonPreemptible }, true},
		"not preemptible, former label": {`"labels":{"` + v1alpha1.LabelPreemptibleFallback + `":"false"}`, ``,
			func(u *unitObject) any { return u.nonPreemptible }, true},
		"not preemptible, label before former": {`"labels":{"` + v1alpha1.LabelPreemptible + `":"true","` +
			v1alpha1.LabelPreemptibleFallback + `":"false"}`, ``,
			func(u *unitObject) any { return u.nonPreemptible }, false},
		"parked, for what is no reason": {`"annotations":{"` + v1alpha1.AnnotationParkedReason + `":"x y"}`, ``,
			func(u *unitObject) any { return string(u.parkedFor) }, ""},
		"parked": {`"annotations":{"` + v1alpha1.AnnotationParkedReason + `":"QuotaMismatch"}`, ``,
			func(u *unitObject) any { return string(u.parkedFor) }, "QuotaMismatch"},
		"gangs that are admitted together": {`"annotations":{"` + v1alpha1.AnnotationGangGroup + `":"a,b,c","` +
			v1alpha1.AnnotationGangs + `":"a,c"}`, ``,
			func(u *unitObject) any { return u.GangGroup + ";" + u.Gangs }, "a,b,c;a,c"},
		"gangs of no group": {`"annotations":{"` + v1alpha1.AnnotationGangs + `":"a,c"}`, ``,
			func(u *unitObject) any { return u.GangGroup + u.Gangs }, ""},
		"adopted": {`"annotations":{"` + v1alpha1.AnnotationAdopted + `":""}`, ``,
			func(u *unitObject) any { return u.adopted }, true},
		"namespace of a consumer": {"", `"consumerRef":{"kind":"Job","name":"x"}`,
			func(u *unitObject) any { return u.consumer.Namespace }, "b"},
		"name of a consumer": {"", `"consumerRef":{"kind":"Job","name":"x"}`,
			func(u *unitObject) any { return u.consumer.Name }, "x"},
		"not owned": {"", `"consumerRef":{"kind":"Job","name":"x","uid":"y"}`,
			func(u *unitObject) any { return u.owned }, false},
		"owned": {`"ownerReferences":[{"uid":"z"},{"uid":"y","controller":true}]`, `"consumerRef":{"name":"x","uid":"y"}`,
			func(u *unitObject) any { return u.owned }, true},
		"names are exact": {"", `"Priority":7,"REQUEST":{"cpu":"1"}`,
			func(u *unitObject) any { return u.priority == nil && u.request.Len() == 0 }, true},
		"text with escapes": {"", `"queue":"a\u00e9\n"`, func(u *unitObject) any { return u.queue }, "aé\n"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := `"name":"a","namespace":"b","uid":"c"`
			if c.metadata != "" {
				metadata += "," + c.metadata
			}
			u := unitIn(t, `{"kind":"QueueUnit","metadata":{`+metadata+`},"spec":{`+c.spec+`}}`)
			require.Empty(t, u.Invalid, u.InvalidMessage)
			require.Equal(t, c.want, c.check(u))
		})
	}
}

// Each fact that the core reads as an object says it is read from one of these.
func TestEachFactIsReadFromAnObject(t *testing.T) {
	whole := unitIn(t, `{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b","uid":"c","annotations":{
		"koord-queue/heartbeat":"2026-01-01T00:00:01Z","koord-queue/gang-group":"x,y","koord-queue/gangs":"x"}},
		"spec":{"maximumExecutionTimeSeconds":60,"podSet":[{"name":"m","count":2,"minCount":1,
			"template":{"spec":{"containers":[{"name":"x","resources":{"requests":{"cpu":"1"}}}]}}}]},
		"status":{"phase":"Running","attempts":1,"lastAllocateTime":"2026-01-01T00:00:02Z",
			"accumulatedPastExecutionTimeSeconds":5,"preemption":{"attempts":1,"holds":["d/1"]},
			"requeueState":{"count":1,"requeueAt":"2026-01-01T00:00:03Z"},
			"admissions":[{"name":"m","replicas":2,"resources":{"cpu":"2"}}]}}`)
	require.Empty(t, whole.Invalid, whole.InvalidMessage)
	flawed := unitIn(t, `{"kind":"QueueUnit","metadata":"text"}`)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[unit.Stated]()) {
		said := func(u *unitObject) bool { return !reflect.ValueOf(u.Stated).FieldByIndex(field.Index).IsZero() }
		require.True(t, said(whole) || said(flawed), "no object says %s", field.Name)
	}
}

// What is no gang group parks its unit, which is then in none.
func TestForgedGangGroups(t *testing.T) {
	many := make([]string, jobkind.MaxGangs+1)
	for i := range many {
		many[i] = fmt.Sprintf("g%02d", i)
	}
	for name, c := range map[string][2]string{
		"no gangs of its own": {"a,b", ""}, "gangs that are not of it": {"a,b", "c"}, "not in order": {"b,a", "a"},
		"twice": {"a,a", "a"}, "no name": {"a,,b", "a"}, "of another namespace": {"a,other/b", "a"},
		"too many": {strings.Join(many, ","), "g00"}, "of many": {"a,b", strings.Repeat("a,", 1000)},
		"long": {"a," + strings.Repeat("b", 300), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			u := unitIn(t, fmt.Sprintf(
				`{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b","uid":"c","annotations":{%q:%q,%q:%q}}}`,
				v1alpha1.AnnotationGangGroup, c[0], v1alpha1.AnnotationGangs, c[1]))
			require.Equal(t, unit.ReasonInvalidRequest, u.Invalid)
			require.Empty(t, u.GangGroup)
		})
	}
}

// TestWhatCannotBeReadParksItsUnit, which is known by its name all the same, and what it may hold counts (I1).
func TestWhatCannotBeReadParksItsUnit(t *testing.T) {
	const metadata, spec = `"name":"a","namespace":"b","uid":"c","resourceVersion":"5"`, `"request":{"cpu":"2"}`
	holding := func(rest string) string {
		return `"phase":"Running","attempts":3,"admissions":[{"name":"main","resources":{"cpu":"4"}}]` + rest
	}
	for name, c := range map[string]struct {
		metadata, spec, status, message string
		held                            string
	}{
		"label is a number":         {metadata + `,"labels":{"a":1}`, spec, holding(""), "metadata: ", "cpu: 4"},
		"time of creation":          {`"creationTimestamp":"then",` + metadata, spec, holding(""), "metadata: ", "cpu: 4"},
		"priority is text":          {metadata, spec + `,"priority":"high"`, holding(""), "spec: ", "cpu: 4"},
		"priority out of range":     {metadata, spec + `,"priority":4000000000`, holding(""), "spec: ", "cpu: 4"},
		"amount":                    {metadata, `"request":{"cpu":"many"}`, holding(""), "spec.request: ", "cpu: 4"},
		"amount is an object":       {metadata, `"request":{"cpu":{}}`, holding(""), "spec.request: ", "cpu: 4"},
		"amount that takes minutes": {metadata, `"request":{"cpu":"1e-99999999"}`, holding(""), "reasonable", "cpu: 4"},
		"former field":              {metadata, `"resource":["cpu"]`, holding(""), "spec.request: ", "cpu: 4"},
		"pod sets are text":         {metadata, `"podSet":"one"`, holding(""), "spec: ", "cpu: 4"},
		"pod set is text":           {metadata, `"podSet":["one"]`, holding(""), "spec: ", "cpu: 4"},
		"count is negative":         {metadata, `"podSet":[{"count":-1}]`, holding(""), "negative", "cpu: 4"},
		"template is text":          {metadata, `"podSet":[{"template":"x"}]`, holding(""), "template: ", "cpu: 4"},
		"consumer is text":          {metadata, spec + `,"consumerRef":"x"`, holding(""), "spec: ", "cpu: 4"},
		"conditions are text":       {metadata, spec, holding(`,"conditions":"none"`), "status: ", "cpu: 4"},
		"time of a condition": {metadata, spec, `"conditions":[{"lastTransitionTime":"then"}],` + holding(""),
			"status: ", "cpu: 4"},
		"time of an admission":  {metadata, spec, `"lastAllocateTime":5,` + holding(""), "status: ", "cpu: 4"},
		"message is an object":  {metadata, spec, holding(`,"message":{}`), "status: ", "cpu: 4"},
		"attempts out of range": {metadata, spec, `"attempts":1e30,"phase":"Running"`, "status: ", "cpu: 2"},
		"admissions are text":   {metadata, spec, `"admissions":"all","phase":"Running"`, "status: ", "cpu: 2"},
		"amount of an admission": {metadata, spec, `"admissions":[{"resources":{"cpu":"many"}}],"phase":"Running"`,
			"status.admissions[0]: ", "cpu: 2"},
		"one of two admissions": {metadata, spec, `"admissions":[{"resources":{"cpu":"many"}},` +
			`{"resources":{"cpu":"1"}}],"phase":"Running"`, "status.admissions[0]: ", "cpu: 1"},
		"request, and only a phase": {metadata,
			`"request":{"cpu":"many"},"podSet":[{"template":{"spec":{"containers":[{"name":"x",` +
				`"resources":{"requests":{"cpu":"3"}}}]}}}]`, `"phase":"Running"`, "spec.request: ", "cpu: 3"},
		"everything, and only phase": {metadata, `"request":5,"podSet":5,"priority":[]`,
			`"conditions":{},"message":1,"phase":"Running"`, "status: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := unitIn(t, `{"kind":"QueueUnit","metadata":{`+c.metadata+`},"spec":{`+c.spec+`},"status":{`+c.status+`}}`)
			require.Equal(t, unit.ReasonInvalidRequest, u.Invalid)
			require.Contains(t, u.InvalidMessage, c.message)
			require.False(t, u.panicked)
			require.EqualValues(t, "Running", u.phase)
			require.Equal(t, "b/a", u.path)
			require.EqualValues(t, "c5", string(u.UID)+u.ResourceVersion)
			require.Equal(t, c.held, u.holds().String())
		})
	}
	for name, text := range map[string]string{
		"spec is text":     `{"metadata":{` + metadata + `},"spec":"text"}`,
		"status is text":   `{"metadata":{` + metadata + `},"status":"text"}`,
		"metadata is text": `{"metadata":"text"}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, unit.ReasonInvalidRequest, unitIn(t, text).Invalid)
		})
	}
}

// TestOneObjectDoesNotBreakAList, whatever it says.
func TestOneObjectDoesNotBreakAList(t *testing.T) {
	bad := []string{
		`{"metadata":{"name":"a","namespace":"b","uid":"c","labels":[]},"spec":{}}`,
		`{"metadata":5}`, `{"spec":[]}`, `{}`, `null`,
		`{"metadata":{"creationTimestamp":[],"name":"d","namespace":"b"},"spec":"x","status":[1]}`,
	}
	client := served(t,
		`{"kind":"QueueUnitList","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"9"},"items":[`+
			strings.Join(bad, ",")+","+unitOfStatus(1, 7, textWaiting)+`]}`)
	e, err := New(Options{
		Client: client, Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*Write) {},
	})
	require.NoError(t, err)
	units, version, err := e.sources.listUnits(t.Context())
	require.NoError(t, err)
	require.Equal(t, "9", version)
	require.Len(t, units, len(bad)+1)
	require.Equal(t, "b/a", units[0].path)
	require.Equal(t, "b/d", units[len(bad)-1].path)
	require.Empty(t, units[len(bad)].Invalid)
}

// TestUnitsShareWhatTheyHaveInCommon.
func TestUnitsShareWhatTheyHaveInCommon(t *testing.T) {
	one, other := unitIn(t, unitOfStatus(1, 7, textAdmitted)), unitIn(t, unitOfStatus(2, 8, textAdmitted))
	require.Same(t, one.priority, other.priority)
	require.Same(t, &one.sets[0], &other.sets[0])
	require.Same(t, &one.request.Items()[0], &other.request.Items()[0])
	require.Same(t, &one.Held.Items()[0], &other.Held.Items()[0])
	for name, texts := range map[string][2]string{
		"namespace": {one.Namespace, other.Namespace}, "quota": {one.quota, other.quota}, "queue": {one.queue, other.queue},
		"message":  {one.conditions[0].Message, other.conditions[0].Message},
		"own name": {one.consumer.Name, one.path[len("team/job-"):]},
	} {
		require.Same(t, unsafe.StringData(texts[0]), unsafe.StringData(texts[1]), name)
	}
	waiting := unitIn(t, unitOfStatus(1, 7, textWaiting))
	require.Same(t, noHistory, waiting.unitHistory)
}

// streamed serves one watch of a resource; of everything else there is nothing.
func streamed(t testing.TB, gvr schema.GroupVersionResource, write func(w io.Writer)) rest.Interface {
	var served atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if path.Base(req.URL.Path) == gvr.Resource && req.URL.Query().Get("watch") == "true" &&
			served.CompareAndSwap(false, true) {
			write(w)
			w.(http.Flusher).Flush()
		} else if req.URL.Query().Get("watch") != "true" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	return clientAt(t, server)
}

// served answers everything with this.
func served(t testing.TB, text string) rest.Interface {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return clientAt(t, server)
}

func clientAt(t testing.TB, server *httptest.Server) rest.Interface {
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	return client
}

const endOfUnits = `{"type":"BOOKMARK","object":{"kind":"QueueUnit","apiVersion":"scheduling.x-k8s.io/v1alpha1",` +
	`"metadata":{"creationTimestamp":null,"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},` +
	`"spec":{},"status":{}}}` + "\n"

// running is an engine that reads from the client until the test ends.
func running(t *testing.T, client rest.Interface) (*Engine, context.Context) {
	t.Helper()
	e, err := New(Options{
		Client: client, Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*Write) {},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return e, ctx
}

// TestUnitsAreWatched: units come through the informer whether they are in order, odd, large or go.
func TestUnitsAreWatched(t *testing.T) {
	client := streamed(t, v1alpha1.QueueUnitResource, func(w io.Writer) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", unitOfStatus(i, 10+i, textWaiting))
		}
		_, _ = fmt.Fprintf(w,
			`{"type":"ADDED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit",`+
				`"metadata":{"name":"odd","namespace":"team","uid":"odd","resourceVersion":"13","annotations":{"large":%q}},`+
				`"spec":{"request":{"cpu":{}}}}}`+"\n\n", strings.Repeat("x", 1<<18))
		_, _ = io.WriteString(w, endOfUnits)
		_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", unitOfStatus(1, 20, textAdmitted))
		_, _ = fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", unitOfStatus(2, 21, textWaiting))
	})
	e, ctx := running(t, client)
	require.Eventually(t, func() bool {
		found := map[string]string{}
		require.NoError(t, e.Ask(ctx, func(View) {
			for key, rec := range e.units.byKey {
				found[key] = string(rec.object.phase) + rec.object.ResourceVersion + string(rec.object.Invalid)
			}
		}))
		return len(found) == 3 && found["team/job-train-0"] == "Enqueued10" && found["team/job-train-1"] == "Dequeued20" &&
			found["team/odd"] == "13"+string(unit.ReasonInvalidRequest) && e.sources.units.LastSyncResourceVersion() == "21"
	}, 10*time.Second, 5*time.Millisecond)
	require.True(t, e.sources.hasUnit("team/job-train-1"))
	require.False(t, e.sources.hasUnit("team/job-train-2"))
}

// TestWritesAreAnswered: what becomes of a write, by the answer.
func TestWritesAreAnswered(t *testing.T) {
	status := func(code int, reason metav1.StatusReason, name string) string {
		text, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason,
			Details: &metav1.StatusDetails{Name: name},
		})
		require.NoError(t, err)
		return string(text)
	}
	admitted := unitOfStatus(1, 20, textAdmitted)
	for _, tt := range []struct {
		name string
		code int
		body string
		want admission.Outcome
	}{
		{"applied", 200, admitted, admission.OutcomeConfirmed},
		{"unreadable answer", 200, "{", admission.OutcomeUnknown},
		{"conflict, applied", 409, status(409, metav1.StatusReasonConflict, "job-train-1"), admission.OutcomeConfirmed},
		{"gone", 404, status(404, metav1.StatusReasonNotFound, "job-train-1"), admission.OutcomeRefuted},
		{"no such resource", 404, "404 page not found", admission.OutcomeUnknown},
		{"invalid", 422, status(422, metav1.StatusReasonInvalid, "job-train-1"), admission.OutcomeRefused},
		{"forbidden", 403, status(403, metav1.StatusReasonForbidden, "job-train-1"), admission.OutcomeRefused},
		{"broken", 500, "", admission.OutcomeUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var paths []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				paths = append(paths, req.Method+" "+req.URL.String()+" "+req.Header.Get("Content-Type")+" "+string(body))
				w.Header().Set("Content-Type", "application/json")
				if req.Method == http.MethodGet {
					_, _ = io.WriteString(w, admitted)
					return
				}
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			base := unitIn(t, unitOfStatus(1, 10, textWaiting))
			w := &Write{kind: writeAdmit, clock: clock.RealClock{}, resource: v1alpha1.QueueUnitResource,
				attempt: 1, base: base, decision: &admitWrite{},
				key: types.NamespacedName{Namespace: base.Namespace, Name: base.Name}, status: map[string]any{"phase": "Dequeued"}}
			result := w.Do(t.Context(), clientAt(t, server))
			require.Equal(t, tt.want, result.outcome)
			require.Equal(t, tt.name == "gone", result.gone)
			require.Equal(t, tt.code == http.StatusConflict, result.conflict)
			const path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team/queueunits/job-train-1"
			want := []string{"PATCH " + path + "/status application/merge-patch+json " +
				`{"metadata":{"resourceVersion":"10","uid":"a1b2c3d4-1111-4222-8333-000000000001"},"status":{"phase":"Dequeued"}}`}
			if result.conflict {
				want = append(want, "GET "+path+"  ")
			}
			require.Equal(t, want, paths)
			if tt.want == admission.OutcomeConfirmed {
				require.Equal(t, unitIn(t, admitted), result.fresh)
			} else {
				require.Nil(t, result.fresh)
			}
		})
	}
}

// BenchmarkUnitObject: what is kept of a waiting unit in memory.
func BenchmarkUnitObject(b *testing.B) {
	live := func() uint64 {
		var stats runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	units := make([]*unitObject, b.N)
	before := live()
	for i := range units {
		units[i] = unitIn(b, unitOfStatus(i, 1_000_000+i, textWaiting))
	}
	b.ReportMetric(float64(live()-before)/float64(b.N), "B/unit")
	runtime.KeepAlive(units)
}

const (
	textQueue = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue",` +
		`"metadata":{"annotations":{"koord-queue/priority-threshold":"7","other":"x"},` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","generation":2,` +
		`"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:status":{".":{},"f:admitted":{},"f:pending":{}}},"manager":"koord-scheduler","operation":"Update",` +
		`"subresource":"status","time":"2026-01-01T00:00:00Z"}],` +
		`"name":"team-1","namespace":"koord-queue","resourceVersion":"%[1]d","uid":"a1b2c3d4-1111-4222-8333-000000000001"},` +
		`"spec":{"maxAdmitted":9,"priority":3,"queuePolicy":"Block"},"status":%[2]s}`

	textActive = `"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"the queue admits units",` +
		`"observedGeneration":2,"reason":"Ready","status":"True","type":"Active"}]`
)

// textOfStatus lists so many units that wait.
func textOfStatus(items int) string {
	list := make([]string, items)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"job-train-%06d","namespace":"team","position":%d,"priority":100}`, i, i+1)
	}
	return `{"admitted":4,` + textActive + fmt.Sprintf(`,"pending":%d,"queueItemDetails":{"active":[`, items) +
		strings.Join(list, ",") + `]}}`
}

// queueIn reads a queue.
func queueIn(t testing.TB, text, policy string) *queueObject {
	t.Helper()
	w := &wireQueue{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), w))
	return decodeQueue(w, policy, queue.Timeouts{Idle: time.Minute, Unbound: time.Hour})
}

func TestQueuesAreRead(t *testing.T) {
	whole := fmt.Sprintf(textQueue, 1, textOfStatus(3))
	all := queue.Spec{Name: "team-1", Policy: "Block", Priority: 3, Threshold: 7, MaxPending: -1, MaxAdmitted: 9}
	with := func(change func(q *queue.Spec)) queue.Spec {
		q := all
		change(&q)
		return q
	}
	plain := queue.Spec{Name: "a", Policy: "FIFO", Threshold: defaultThreshold, MaxPending: -1, MaxAdmitted: -1}
	for _, tt := range []struct {
		name, text string
		want       queue.Spec
		says       string
		conditions int
	}{
		{"whole", whole, all, `"pending":3`, 1},
		{"nobody waits", fmt.Sprintf(textQueue, 1, textOfStatus(0)), all, `"pending":0`, 1},
		{"new", `{"kind":"Queue","metadata":{"name":"a","namespace":"b"},"spec":{}}`, plain, "", 0},
		{"nothing", `{"kind":"Queue","metadata":{"name":"a"}}`, plain, "", 0},
		{"spec is null", `{"kind":"Queue","metadata":{"name":"a"},"spec":null}`, plain, "", 0},
		{"status without a count", strings.Replace(whole, `"admitted":4`, `"other":[{}]`, 1), all, "", 1},
		{"items that are none", strings.Replace(whole, `"position":1`, `"position":"first"`, 1), all, "", 1},
		{"count out of range", strings.Replace(whole, `"admitted":4`, `"admitted":4000000000`, 1), all, "", 1},
		{"conditions that are none", strings.Replace(whole, `"observedGeneration":2`, `"observedGeneration":"x"`, 1),
			all, "", 0},
		{"items are null", fmt.Sprintf(textQueue, 1, `{"queueItemDetails":null}`), all, "", 0},
		{"priority is null", strings.Replace(whole, `"priority":3`, `"priority":null`, 1),
			with(func(q *queue.Spec) { q.Priority = 0 }), `"pending":3`, 1},
		{"times", strings.Replace(whole, `"priority":3`, `"priority":3,`+
			`"timeouts":{"podsReadySeconds":60,"unboundSeconds":0},`+
			`"backoffLimit":2,"executionTime":{"defaultSeconds":5,"maximumSeconds":9},"heartbeatTimeoutSeconds":30`, 1),
			with(func(q *queue.Spec) {
				q.Timeouts = &queue.Timeouts{Idle: time.Minute, PodsReady: time.Minute}
				q.HeartbeatTimeout, q.MostEvictions = 30*time.Second, 3
				q.Execution = queue.ExecutionTimes{Default: 5 * time.Second, Most: 9 * time.Second}
			}), `"pending":3`, 1},
		{"every field", strings.NewReplacer(
			`"priority":3`, `"priorityClassName":"high","stopPolicy":"Hold","admissionChecks":[{"name":"a",`+
				`"labelSelector":{"matchLabels":{"a":"b"}}}],"maxPending":1`,
			`"other":"x"`, `"koord-queue/available-quota":"b, a"`).Replace(whole),
			with(func(q *queue.Spec) {
				q.Priority, q.Held, q.MaxPending, q.Quotas = 0, true, 1, []string{"a", "b"}
				q.AdmissionChecks = []queue.AdmissionCheck{{Name: "a", Selector: "a=b", Timeout: defaultTimeout}}
			}), `"pending":3`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := queueIn(t, tt.text, "FIFO")
			require.Equal(t, tt.want, q.spec)
			require.Contains(t, saidOf(q), tt.says)
			require.Equal(t, tt.says == "", saidOf(q) == "")
			require.Len(t, q.conditions, tt.conditions)
		})
	}
	for name, text := range map[string]string{
		"policy is a number":     strings.Replace(whole, `"Block"`, `5`, 1),
		"spec is a list":         `{"kind":"Queue","metadata":{"name":"team-1"},"spec":[]}`,
		"annotation is a number": strings.Replace(whole, `"x"`, `5`, 1),
		"selector of a check":    strings.Replace(whole, `"priority":3`, `"admissionChecks":[{"labelSelector":[]}]`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			q := queueIn(t, text, "FIFO")
			require.Equal(t, "team-1", q.Name)
			require.Contains(t, q.spec.Policy, "unreadable: ")
			require.False(t, q.panicked)
		})
	}
}

const endOfQueues = `{"type":"BOOKMARK","object":{"kind":"Queue","apiVersion":"scheduling.x-k8s.io/v1alpha1",` +
	`"metadata":{"creationTimestamp":null,"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},` +
	`"spec":{},"status":{}}}` + "\n"

// TestQueuesAreWatched: they come through the informer whether they are in order or odd, and go.
func TestQueuesAreWatched(t *testing.T) {
	client := streamed(t, v1alpha1.QueueResource, func(w io.Writer) {
		for i, name := range []string{"one", "two", "three"} {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n",
				strings.ReplaceAll(fmt.Sprintf(textQueue, 10+i, textOfStatus(1000)), "team-1", name))
		}
		_, _ = io.WriteString(w, endOfQueues)
		_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue",`+
			`"metadata":{"name":"two","namespace":"koord-queue","resourceVersion":"20"},"spec":{"priority":"high"}}}`+"\n")
		_, _ = io.WriteString(w, `{"type":"DELETED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue",`+
			`"metadata":{"name":"three","namespace":"koord-queue","resourceVersion":"21"}}}`+"\n")
	})
	e, ctx := running(t, client)
	require.Eventually(t, func() bool {
		found := map[string]string{}
		require.NoError(t, e.Ask(ctx, func(View) {
			for name, q := range e.queues {
				found[name] = q.spec.Policy + q.ResourceVersion
			}
		}))
		return len(found) == 2 && found["one"] == "Block10" && strings.HasPrefix(found["two"], "unreadable")
	}, 10*time.Second, 5*time.Millisecond)
}

func TestHowLongAfterItsAdmissionAUnitRan(t *testing.T) {
	admitted := time.Unix(1000, 0).Add(300 * time.Millisecond)
	seen := admitted.Add(10 * time.Second)
	ready := func(status metav1.ConditionStatus, second int64) *unitObject {
		return &unitObject{unitHistory: noHistory, conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionPodsReady, Status: status, LastTransitionTime: metav1.Unix(second, 0),
		}}}
	}
	for name, c := range map[string]struct {
		unit *unitObject
		want time.Duration
	}{
		"after some time":       {ready(metav1.ConditionTrue, 1003), 3200 * time.Millisecond},
		"in the same second":    {ready(metav1.ConditionTrue, 1000), 200 * time.Millisecond},
		"a second before":       {ready(metav1.ConditionTrue, 999), 10 * time.Second},
		"ahead of our clock":    {ready(metav1.ConditionTrue, 2000), 10 * time.Second},
		"in an earlier run":     {ready(metav1.ConditionTrue, 900), 10 * time.Second},
		"not by that condition": {ready(metav1.ConditionFalse, 1003), 10 * time.Second},
		"not said":              {&unitObject{unitHistory: noHistory}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.unit.ranAfter(admitted, seen)) })
	}
}
