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
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unique"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects/objectstest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// unitIn reads a unit.
func unitIn(t testing.TB, text string) *Unit {
	t.Helper()
	w := &WireUnit{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), w))
	return DecodeUnit(w)
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
	waiting := Unit{
		Meta: Meta{
			Namespace: "team", Name: "job-train-1", UID: "a1b2c3d4-1111-4222-8333-000000000001", ResourceVersion: "7",
			Generation: 1, CreationTimestamp: metav1.NewTime(at("2026-01-01T00:00:00Z")),
		},
		Path: "team/job-train-1", Quota: "team-1", QuotaKey: v1alpha1.LabelQuotaName,
		Labels: "app.kubernetes.io/name=resnet,quota.scheduling.koordinator.sh/name=team-1",
		Queue:  "team-1", Priority: ptr.To(int32(100)),
		Request: list(4000, 4), Sets: []PodSet{{"main", 1, list(4000, 4), 1}}, Pods: 1, Phase: unit.PhaseEnqueued,
		Consumer: unit.Consumer{
			Kind: jobkind.KindString(job), Namespace: "team", Name: "train-1", UID: "7d3b2c1e-5f4a-4b6d-8c9e-000000000001",
		},
		ConsumerKind: unique.Make(job), HasConsumer: true, Owned: true, OneQuota: true, History: noHistory,
	}
	admitted := waiting
	admitted.Phase, admitted.Attempts = unit.PhaseDequeued, 1
	admitted.History = &History{Stated: unit.Stated{
		Held: list(4000, 4), HeldPods: 1, Recorded: true, Admitted: at("2026-01-01T00:00:05Z"),
	}}
	admitted.Conditions = []metav1.Condition{
		{Type: "QuotaReserved", Status: "True", Reason: "QuotaReserved", Message: "quota is reserved: cpu: 4, memory: 4Gi",
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(at("2026-01-01T00:00:05Z"))},
		{Type: "Admitted", Status: "True", Reason: "Admitted", Message: "admitted, attempt 1",
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(at("2026-01-01T00:00:05Z"))},
	}
	ended := admitted
	ended.Phase = "Succeed"
	requeued := waiting
	requeued.Attempts = 2
	requeued.History = &History{Stated: unit.Stated{RequeueAt: at("2026-01-01T00:01:00Z"), Requeues: 1}}
	requeued.Message = `pods of "main" are missing`
	requeued.Conditions = []metav1.Condition{{
		Type: "Evicted", Status: "True", Reason: "Evicted", Message: `pods of "main" are missing`,
		LastTransitionTime: metav1.NewTime(at("2026-01-01T00:00:05Z")),
	}}
	for name, c := range map[string]struct {
		status string
		want   Unit
	}{
		"waiting": {objectstest.Waiting, waiting}, "admitted": {objectstest.Admitted, admitted},
		"ended":    {objectstest.Ended, ended},
		"requeued": {objectstest.Requeued, requeued}, "without a status": {"null", func() Unit {
			u := waiting
			u.Phase = ""
			return u
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, &c.want, unitIn(t, objectstest.Unit(1, 7, c.status)))
			var spaced bytes.Buffer
			require.NoError(t, json.Indent(&spaced, []byte(objectstest.Unit(1, 7, c.status)), "\t", "\t"))
			found := unitIn(t, spaced.String())
			require.Equal(t, c.want.Conditions, found.Conditions)
			require.Equal(t, c.want.Request, found.Request)
		})
	}
}

func TestFieldsOfUnits(t *testing.T) {
	const two = `"podSet":[{"name":"a","count":3,"template":{"spec":{"containers":[{"name":"x",` +
		`"resources":{"requests":{"cpu":"2"}}}]}}},{"name":"b"}]`
	for name, c := range map[string]struct {
		metadata, spec string
		check          func(u *Unit) any
		want           any
	}{
		"request": {"", `"request":{"cpu":"4"}`,
			func(u *Unit) any { return u.Request.String() }, "cpu: 4"},
		"request, former name": {"", `"resource":{"cpu":4}`, func(u *Unit) any { return u.Request.String() }, "cpu: 4"},
		"request before former": {"", `"request":{"cpu":"1"},"resource":{"cpu":"x"}`,
			func(u *Unit) any { return u.Request.String() }, "cpu: 1"},
		"request is null": {"", `"request":null,"resource":{"cpu":"4"}`,
			func(u *Unit) any { return u.Request.String() }, "cpu: 4"},
		"request by template":  {"", two, func(u *Unit) any { return u.Request.String() }, "cpu: 6"},
		"nothing is requested": {"", `"request":{},` + two, func(u *Unit) any { return u.Request.Len() }, 0},
		"pods":                 {"", two, func(u *Unit) any { return u.Pods }, int64(4)},
		"names of sets":        {"", two, func(u *Unit) any { return u.Sets[0].Name + u.Sets[1].Name }, "ab"},
		"sets that add up":     {"", `"request":{"cpu":"6"},` + two, func(u *Unit) any { return len(u.Sets) }, 2},
		"sets that do not":     {"", `"request":{"cpu":"5"},` + two, func(u *Unit) any { return len(u.Sets) }, 0},
		"priority":             {"", `"priority":-5`, func(u *Unit) any { return *u.Priority }, int32(-5)},
		"priority is null":     {"", `"priority":null`, func(u *Unit) any { return u.Priority == nil }, true},
		"class":                {"", `"priorityClassName":"high"`, func(u *Unit) any { return u.Class }, "high"},
		"inactive":             {"", `"active":false`, func(u *Unit) any { return u.Inactive }, true},
		"active":               {"", `"active":true`, func(u *Unit) any { return u.Inactive }, false},
		"quota, fallback": {`"labels":{"` + v1alpha1.LabelQuotaNameFallback2 + `":"q"}`, ``,
			func(u *Unit) any { return u.Quota }, "q"},
		"queue in an annotation": {`"annotations":{"` + v1alpha1.QueueNameKey + `":"q"}`, ``,
			func(u *Unit) any { return u.Queue }, "q"},
		"queue in a label": {`"labels":{"` + v1alpha1.QueueNameKey + `":"q"}`, ``,
			func(u *Unit) any { return u.Queue }, "q"},
		"not preemptible": {`"labels":{"` + v1alpha1.LabelPreemptible + `":"false"}`, ``,
			func(u *Unit) any { return u.NonPreemptible }, true},
		"not preemptible, former label": {`"labels":{"` + v1alpha1.LabelPreemptibleFallback + `":"false"}`, ``,
			func(u *Unit) any { return u.NonPreemptible }, true},
		"not preemptible, label before former": {`"labels":{"` + v1alpha1.LabelPreemptible + `":"true","` +
			v1alpha1.LabelPreemptibleFallback + `":"false"}`, ``,
			func(u *Unit) any { return u.NonPreemptible }, false},
		"parked, for what is no reason": {`"annotations":{"` + v1alpha1.AnnotationParkedReason + `":"x y"}`, ``,
			func(u *Unit) any { return string(u.ParkedFor) }, ""},
		"parked": {`"annotations":{"` + v1alpha1.AnnotationParkedReason + `":"QuotaMismatch"}`, ``,
			func(u *Unit) any { return string(u.ParkedFor) }, "QuotaMismatch"},
		"gangs that are admitted together": {`"annotations":{"` + v1alpha1.AnnotationGangGroup + `":"a,b,c","` +
			v1alpha1.AnnotationGangs + `":"a,c"}`, ``,
			func(u *Unit) any { return u.GangGroup + ";" + u.Gangs }, "a,b,c;a,c"},
		"gangs of no group": {`"annotations":{"` + v1alpha1.AnnotationGangs + `":"a,c"}`, ``,
			func(u *Unit) any { return u.GangGroup + u.Gangs }, ""},
		"adopted": {`"annotations":{"` + v1alpha1.AnnotationAdopted + `":""}`, ``,
			func(u *Unit) any { return u.adopted }, true},
		"namespace of a consumer": {"", `"consumerRef":{"kind":"Job","name":"x"}`,
			func(u *Unit) any { return u.Consumer.Namespace }, "b"},
		"name of a consumer": {"", `"consumerRef":{"kind":"Job","name":"x"}`,
			func(u *Unit) any { return u.Consumer.Name }, "x"},
		"not owned": {"", `"consumerRef":{"kind":"Job","name":"x","uid":"y"}`,
			func(u *Unit) any { return u.Owned }, false},
		"owned": {`"ownerReferences":[{"uid":"z"},{"uid":"y","controller":true}]`, `"consumerRef":{"name":"x","uid":"y"}`,
			func(u *Unit) any { return u.Owned }, true},
		"unsuspendable": {`"annotations":{"koord-queue/unsuspendable":"true"}`, "",
			func(u *Unit) any { return u.Unsuspendable }, true},
		"unpreemptable": {`"annotations":{"koord-queue/preemptable":"false"}`, "",
			func(u *Unit) any { return u.Unpreemptable }, true},
		"unpreemptable, in other words": {`"annotations":{"koord-queue/preemptable":"no"}`, "",
			func(u *Unit) any { return u.Unpreemptable }, false},
		"quotas": {"", `"quotas":["q","r"]`, func(u *Unit) any { return u.Quota + " of " + u.Quotas }, "q of q,r"},
		"quotas and a label": {`"labels":{"` + v1alpha1.LabelQuotaName + `":"q"}`, `"quotas":["q","r"]`,
			func(u *Unit) any { return u.Quotas }, "q,r"},
		"a quota in a template": {`"labels":{"` + v1alpha1.LabelQuotaName + `":"q"}`,
			`"podSet":[{"name":"m","template":{"metadata":{"labels":{"` + v1alpha1.LabelQuotaNameFallback1 + `":"q"}}}}]`,
			func(u *Unit) any { return u.OneQuota }, true},
		"names are exact": {"", `"Priority":7,"REQUEST":{"cpu":"1"}`,
			func(u *Unit) any { return u.Priority == nil && u.Request.Len() == 0 }, true},
		"text with escapes": {"", `"queue":"a\u00e9\n"`, func(u *Unit) any { return u.Queue }, "aé\n"},
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

// The stand-alone Koord-Queue writes amounts of pods on nodes only, and its unit holds what all admitted pods ask for.
func TestWhatKoordQueueAdmittedHoldsTheRequest(t *testing.T) {
	const none, one, both = `"running":0`, `"running":1,"resources":{"cpu":"2"}`, `"running":2,"resources":{"cpu":"4"}`
	for name, c := range map[string]struct{ phase, pods, rest, holds string }{
		"dequeued":                {"Dequeued", none, `"podState":{}`, "cpu: 4"},
		"one of its pods runs":    {"Running", one, `"podState":{"running":1,"pending":1}`, "cpu: 4"},
		"all of its pods run":     {"Running", both, `"podState":{"running":2}`, "cpu: 4"},
		"it waits":                {"Enqueued", none, `"podState":{}`, ""},
		"written by us since":     {"Running", one, `"podState":{},"effective":{"quota":"q"}`, "cpu: 2"},
		"never by Koord-Queue":    {"Running", one, `"attempts":1`, "cpu: 2"},
		"it is admitted as whole": {"Dequeued", `"name":"koord-queue/default-requirement"`, `"podState":{}`, "cpu: 4"},
	} {
		t.Run(name, func(t *testing.T) {
			u := unitIn(t, `{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b"},"spec":{"request":{"cpu":"4"},"podSet":[
				{"name":"m","count":2}]},"status":{"phase":"`+c.phase+`",`+c.rest+`,"admissions":[
				{"name":"m","replicas":2,`+c.pods+`}]}}`)
			require.Empty(t, u.Invalid, u.InvalidMessage)
			held := ""
			if u.Phase.Holds() {
				held = u.Holds().String()
			}
			require.Equal(t, c.holds, held)
		})
	}
}

// Each fact that the core reads as an object says it is read from one of these.
func TestEachFactIsReadFromAnObject(t *testing.T) {
	whole := unitIn(t, `{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b","uid":"c","annotations":{
		"koord-queue/heartbeat":"2026-01-01T00:00:01Z","koord-queue/gang-group":"x,y","koord-queue/gangs":"x",
		"koord-queue/preemptable":"false"}},
		"spec":{"maximumExecutionTimeSeconds":60,"quotas":["q","r"],"podSet":[{"name":"m","count":2,"minCount":1,
			"template":{"spec":{"containers":[{"name":"x","resources":{"requests":{"cpu":"1"}}}]}}}]},
		"status":{"phase":"Running","attempts":1,"lastAllocateTime":"2026-01-01T00:00:02Z",
			"accumulatedPastExecutionTimeSeconds":5,"executionStartTime":"2026-01-01T00:00:04Z",
			"preemption":{"attempts":1,"holds":["d/1"]},
			"effective":{"preemptable":false},
			"requeueState":{"count":1,"requeueAt":"2026-01-01T00:00:03Z"},
			"admissions":[{"name":"m","replicas":2,"resources":{"cpu":"2"}}]}}`)
	require.Empty(t, whole.Invalid, whole.InvalidMessage)
	flawed := unitIn(t, `{"kind":"QueueUnit","metadata":"text"}`)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[unit.Stated]()) {
		said := func(u *Unit) bool { return !reflect.ValueOf(u.Stated).FieldByIndex(field.Index).IsZero() }
		require.True(t, said(whole) || said(flawed), "no object says %s", field.Name)
	}
}

// A list that cannot be read, or begins with another quota than the label names, parks its unit.
func TestForgedListsOfQuotas(t *testing.T) {
	for _, list := range []string{
		`["r","q"]`, `["q","q"]`, `["q","r,s"]`, `["q",""]`, `["q","1","2","3","4","5","6","7","8"]`,
	} {
		u := unitIn(t, `{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b","uid":"c",
			"labels":{"quota.scheduling.koordinator.sh/name":"q"}},"spec":{"quotas":`+list+`}}`)
		require.Equal(t, unit.ReasonInvalidRequest, u.Invalid, list)
		require.Empty(t, u.Quotas, list)
	}
}

// An invalid gang group parks its unit, which is then in none.
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
			require.False(t, u.Panicked)
			require.EqualValues(t, "Running", u.Phase)
			require.Equal(t, "b/a", u.Path)
			require.EqualValues(t, "c5", string(u.UID)+u.ResourceVersion)
			require.Equal(t, c.held, u.Holds().String())
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

// TestUnitsShareWhatTheyHaveInCommon.
func TestUnitsShareWhatTheyHaveInCommon(t *testing.T) {
	one := unitIn(t, objectstest.Unit(1, 7, objectstest.Admitted))
	other := unitIn(t, objectstest.Unit(2, 8, objectstest.Admitted))
	require.Same(t, one.Priority, other.Priority)
	require.Same(t, &one.Sets[0], &other.Sets[0])
	require.Same(t, &one.Request.Items()[0], &other.Request.Items()[0])
	require.Same(t, &one.Held.Items()[0], &other.Held.Items()[0])
	var apart []string
	for name, texts := range map[string][2]string{
		"namespace": {one.Namespace, other.Namespace}, "quota": {one.Quota, other.Quota}, "queue": {one.Queue, other.Queue},
		"message":  {one.Conditions[0].Message, other.Conditions[0].Message},
		"own name": {one.Consumer.Name, one.Path[len("team/job-"):]},
	} {
		if unsafe.StringData(texts[0]) != unsafe.StringData(texts[1]) {
			apart = append(apart, name)
		}
	}
	require.LessOrEqual(t, len(apart), 1, "%v: by chance, two texts have one slot of the pool", apart)
	waiting := unitIn(t, objectstest.Unit(1, 7, objectstest.Waiting))
	require.Same(t, noHistory, waiting.History)
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
	units := make([]*Unit, b.N)
	before := live()
	for i := range units {
		units[i] = unitIn(b, objectstest.Unit(i, 1_000_000+i, objectstest.Waiting))
	}
	b.ReportMetric(float64(live()-before)/float64(b.N), "B/unit")
	runtime.KeepAlive(units)
}

func TestHowLongAfterItsAdmissionAUnitRan(t *testing.T) {
	admitted := time.Unix(1000, 0).Add(300 * time.Millisecond)
	seen := admitted.Add(10 * time.Second)
	ready := func(status metav1.ConditionStatus, second int64) *Unit {
		return &Unit{History: noHistory, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionPodsReady, Status: status, LastTransitionTime: metav1.Unix(second, 0),
		}}}
	}
	for name, c := range map[string]struct {
		unit *Unit
		want time.Duration
	}{
		"after some time":       {ready(metav1.ConditionTrue, 1003), 3200 * time.Millisecond},
		"in the same second":    {ready(metav1.ConditionTrue, 1000), 200 * time.Millisecond},
		"a second before":       {ready(metav1.ConditionTrue, 999), 10 * time.Second},
		"ahead of our clock":    {ready(metav1.ConditionTrue, 2000), 10 * time.Second},
		"in an earlier run":     {ready(metav1.ConditionTrue, 900), 10 * time.Second},
		"not by that condition": {ready(metav1.ConditionFalse, 1003), 10 * time.Second},
		"not said":              {&Unit{History: noHistory}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.unit.RanAfter(admitted, seen)) })
	}
}

// A field that is set keeps a history from being dropped, a field of tomorrow too.
func TestNoFieldOfAHistoryIsDropped(t *testing.T) {
	for i := range reflect.TypeFor[History]().NumField() {
		h := &History{}
		objectstest.Fill(reflect.ValueOf(h).Elem().Field(i))
		u := &Unit{History: h}
		u.share()
		require.Same(t, h, u.History, reflect.TypeFor[History]().Field(i).Name)
	}
}

func TestAPanicWhileAUnitIsReadParksIt(t *testing.T) {
	defer func(before func([]byte) (*corev1.PodTemplateSpec, error)) { decodeTemplate = before }(decodeTemplate)
	decodeTemplate = func([]byte) (*corev1.PodTemplateSpec, error) { panic("a bomb in a template") }
	u := unitIn(t, `{"metadata":{"name":"a","namespace":"b","uid":"c"},"spec":{"podSet":[{"name":"main","template":{}}]}}`)
	require.True(t, u.Panicked)
	require.Equal(t, unit.ReasonInternalError, u.Invalid)
	require.Equal(t, "b/a", u.Path)
}
