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
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// quotasThat changes what the adapter says of each quota.
type quotasThat struct {
	quotawatch.Quotas
	change func(q *admission.Quota)
}

// Observe asks the adapter.
func (q quotasThat) Observe(names []string) (found []admission.Quota, gone []string) {
	found, gone = q.Quotas.Observe(names)
	for i := range found {
		q.change(&found[i])
	}
	return found, gone
}

func quotasOf(change func(q *admission.Quota)) func(quotawatch.Quotas) quotawatch.Quotas {
	return func(q quotawatch.Quotas) quotawatch.Quotas { return quotasThat{q, change} }
}

func twice(l resources.List) resources.List { return l.Add(l) }

// reversed order of a queue.
type reversed struct{ queue.Policy }

// Compare the other way round.
func (p reversed) Compare(a, b queue.Item) int { return p.Policy.Compare(b, a) }

// younger first among those of one priority.
type younger struct{ queue.Policy }

// Compare has the priority from the policy.
func (p younger) Compare(a, b queue.Item) int {
	if a.Priority != b.Priority {
		return p.Policy.Compare(a, b)
	}
	return p.Policy.Compare(b, a)
}

func policies(broken func(queue.Policy) queue.Policy) map[string]queue.Factory {
	all := map[string]queue.Factory{}
	for name, factory := range queue.Builtin() {
		all[name] = func(threshold int32) queue.Policy { return broken(factory(threshold)) }
	}
	return all
}

// admits says whether a patch of a unit is an admission by a scheduler.
func admits(p *process, patch map[string]any) bool {
	return p.role == roleScheduler && mapAt(patch, "status")["phase"] == "Dequeued"
}

func ends(p *process, patch map[string]any) bool {
	phase := mapAt(patch, "status")["phase"]
	return p.role == roleController && (phase == "Succeed" || phase == "Failed")
}

func breaking(when func(p *process, patch map[string]any) bool, how func(p *process, status map[string]any)) *variants {
	return &variants{Patch: func(p *process, k kind, patch map[string]any) {
		if k == units && when(p, patch) {
			how(p, mapAt(patch, "status"))
		}
	}}
}

// direct writes what a check forbids into a world with a unit a of job job-a.
func direct(do func(w *world)) []Violation {
	w := newWorld(Plan{Seed: 1, Lease: ShippedLease}, Options{})
	aUnit(w, "a", "job-a")
	do(w)
	return w.report.Violations
}

func aUnit(w *world, name, uid string) {
	w.createObject(byUser, units, team, name, nil, nil, map[string]any{"spec": map[string]any{
		"request": map[string]any{"cpu": "2"}, "consumerRef": map[string]any{"kind": "Job", "name": name, "uid": uid},
	}})
}

func writeStatus(w *world, name string, fields map[string]any) {
	scheduler := writer{role: roleScheduler, process: "scheduler-0"}
	w.api.edit(scheduler, units, keyOf(team, name), true,
		func(u *unstructured.Unstructured) { u.Object["status"] = fields })
}

func admitted(attempts int64, cpu string) map[string]any {
	return map[string]any{
		"phase": "Dequeued", "attempts": attempts,
		"admissions": []any{map[string]any{"name": "main", "resources": map[string]any{"cpu": cpu}}},
		"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}},
	}
}

// aDecision is a scheduler that has seen all there is.
func aDecision(w *world) writer {
	leader := &replica{process: &process{name: "scheduler-0"}}
	d := &decision{leader: leader, version: w.api.version, seen: map[kind]int64{}}
	for k := range groupKinds {
		d.seen[k] = w.api.version
	}
	return writer{role: roleScheduler, process: leader.name, decision: d}
}

// aRunningJob has a pod on a node and a unit that holds as much as that since an hour.
func aRunningJob(w *world, name, queue string) (unit *object) {
	job := w.createObject(byUser, jobKind, team, name, nil, nil, map[string]any{"spec": map[string]any{}})
	aUnit(w, name, string(job.uid()))
	w.api.edit(byUser, units, keyOf(team, name), false, func(u *unstructured.Unstructured) {
		mapAt(u.Object, "spec")["queue"] = queue
	})
	status := admitted(1, "2")
	status["lastAllocateTime"] = w.loop.now.Add(-time.Hour).Format(time.RFC3339)
	writeStatus(w, name, status)
	aPod(w, job, name, "n0")
	return w.api.get(units, keyOf(team, name))
}

// aPod of a job that asks for two cores.
func aPod(w *world, job *object, name, node string) *object {
	pod := w.createObject(byJobController, pods, team, name, nil,
		map[string]string{v1alpha1.AnnotationRelatedQueueUnit: job.key}, map[string]any{
			"spec":   map[string]any{"containers": []any{container(2000, Step{})}},
			"status": map[string]any{"phase": "Running"},
		})
	w.api.edit(byJobController, pods, pod.key, false, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job.u, groupKinds[jobKind])})
		if node != "" {
			mapAt(u.Object, "spec")["nodeName"] = node
		}
	})
	return w.api.get(pods, pod.key)
}

const smallCluster = `plan seed=1 schedulers=1 controllers=1 runtime=false lag=5ms deadline=4s length=1m0s
0s node n0 cpu=6000
0s quota a max=6000 min=1000 policy=Priority
0s quota b max=6000 min=1000 policy=Priority
`

// owned: the min of one quota is taken back.
const owned = `plan seed=1 schedulers=1 controllers=1 runtime=false lag=5ms deadline=4s length=1m0s
0s node n0 cpu=6000
0s quota a max=6000 min=2000 policy=Priority
0s quota b max=6000 min=4000 policy=Priority
1.5s reclaim a policy=Any
`

// inPart: a job is admitted in part, and held while it runs.
const inPart = smallCluster + "2s job j1 cpu=1000 pods=4 quota=a run=20s\n" +
	"3s job j2 cpu=500 pods=6 completions=6 least=2 quota=a run=9s suspend=true\n8s hold j2\n"

// drained: a job has a grace when its queue is drained, which ignores the notice.
const drained = smallCluster + "3s grace a most=60\n" +
	"4s job j1 cpu=1000 pods=2 quota=a run=40s grace=20 answer=ignore suspend=true\n10s queue a stop=HoldAndDrain\n"

// plansFor are the plans of what random ones seldom provoke, by name.
var plansFor = map[string]string{
	"an adapter that sees twice the cluster": smallCluster +
		"3s job j1 cpu=2000 pods=2 quota=a run=20s\n3s job j2 cpu=2000 pods=2 quota=b run=20s\n",
	"a controller that queues parts": smallCluster +
		"3s job-set set0 label=templates cpu=500 pods=2 quota=a run=5s suspend=true\n",
	"a controller that suspends parts": smallCluster + "2s crash controller-0 for=10s\n" +
		"3s job-set set0 label=templates cpu=500 pods=2 quota=a run=5s suspend=false\n",
	"a scheduler that does not know whose parts pods are of": smallCluster +
		"3s job-set set0 label=set cpu=500 pods=2 quota=a run=5s suspend=true\n",
	"a controller that does not stamp": smallCluster + "1s times a on-suspend=Requeue\n" +
		"2s job j0 cpu=500 pods=2 quota=a run=9s suspend=true\n6s suspend j0\n",
	"fewer pods than a job can do with":                inPart,
	"a job that was admitted in part is resumed whole": inPart,
	"a number of pods is not given back":               inPart,
	"pods are told another time":                       drained,
	"a grace that is over at once":                     drained,
	"a job that is not suspended":                      drained,
	"pods are not told":                                drained,
	"a notice that stays":                              drained + "15s queue a\n",
	"pods without a unit bind where a unit takes": owned +
		"2s job j1 cpu=1000 pods=6 quota=b run=40s\n3s snatch s cpu=1000 count=4 quota=b times=3 run=20s\n" +
		"8s job j2 cpu=1000 pods=2 quota=a run=5s\n",
	"an adapter that promises nothing": owned + "2s job j1 cpu=1000 pods=4 quota=b run=40s\n" +
		"2s pod p1 cpu=1000 quota=b run=40s\n2s pod p2 cpu=1000 quota=b run=40s\n" +
		"8s job j2 cpu=1000 pods=2 quota=a run=5s\n",
	"a job that goes on without what it held": smallCluster + "2s job j1 cpu=1000 pods=2 quota=a run=40s\n8s hold j1\n",
	"nobody collects": smallCluster +
		"3s job j1 cpu=1000 pods=1 quota=a run=1s\n20s delete-job j1\n",
}

// aBreak removes the guard of an invariant, or writes against a check. The simulator must report it by this check.
type aBreak struct {
	name, invariant, check string
	profile                func() Profile
	variants               *variants
	direct                 func(w *world)
}

var breaks = []aBreak{
	{"a wrong order of the queue", "I4", "is ahead in its queue", nil,
		&variants{Policies: policies(func(p queue.Policy) queue.Policy { return reversed{p} })}, nil},
	{"the younger first", "I5", "is ahead in its queue", nil,
		&variants{Policies: policies(func(p queue.Policy) queue.Policy { return younger{p} })}, nil},
	{"an adapter that sees twice the quota", "I1", "quota %s has %s of %s", nil,
		&variants{Quotas: quotasOf(func(q *admission.Quota) {
			q.Limit, q.Max = twice(q.Limit), twice(q.Max)
		})}, nil},
	{"an adapter that sees no min", "I1", "of its min", nil,
		&variants{Quotas: quotasOf(func(q *admission.Quota) { q.Min = resources.List{} })}, nil},
	{"an adapter that sees no number of jobs", "I1", "jobs", nil, &variants{Quotas: quotasOf(func(q *admission.Quota) {
		limits := map[string]int64{}
		for _, it := range q.Limit.Items() {
			if it.Name != resources.Jobs {
				limits[it.Name] = it.Amount
			}
		}
		q.Limit = resources.FromMap(limits)
	})}, nil},
	{"an adapter that sees twice the cluster", "I1", "the cluster has", nil,
		&variants{Quotas: quotasOf(func(q *admission.Quota) {
			if q.Parent == "" {
				q.Limit = twice(q.Limit)
			}
		})}, nil},
	{"an adapter that sees nothing", "I6", "has not ended", nil, &variants{Quotas: quotasOf(func(q *admission.Quota) {
		if q.Name == "a" {
			q.Used = q.Max
		}
	})}, nil},
	{"patches without a precondition", "I3", "had changed", nil, &variants{NoPrecondition: true}, nil},
	{"a scheduler that is not told of a unit", "I2", "has lost unit", nil,
		&variants{Deaf: func(key string, _ bool) bool { return strings.HasSuffix(key, "1") }}, nil},
	{"a gate that is open", "I3", "binds pod", nil, &variants{OpenGate: true}, nil},
	{"a controller that takes every unit for admitted", "I3", "resumed job", nil,
		&variants{Read: func(u *v1alpha1.QueueUnit) {
			if u.Status.Phase == "" || u.Status.Phase == v1alpha1.PhaseEnqueued {
				u.Status.Phase = v1alpha1.PhaseDequeued
			}
		}}, nil},
	{"a controller that queues parts", "I3", "queued job", nil, &variants{PartsStandAlone: true}, nil},
	{"a controller that suspends parts", "I3", "wrote to job", nil, &variants{PartsStandAlone: true}, nil},
	{"a controller that does not stamp", "I3", "had suspended", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			if k != jobKind {
				return
			}
			annotations := mapAt(mapAt(patch, "metadata"), "annotations")
			if stamp, _ := annotations[v1alpha1.AnnotationResumed].(string); strings.HasSuffix(stamp, "/2") {
				delete(annotations, v1alpha1.AnnotationResumed)
			}
		}}, nil},
	{"a scheduler that does not know whose parts pods are of", "I6", "has not ended", nil, &variants{NoKinship: true},
		nil},
	{"everybody leads", "I6", "schedulers lead", nil, &variants{Usurp: true}, nil},
	{"nobody collects", "I2", "has no job", nil, &variants{NoCollector: true}, nil},
	{"a phase that does not follow", "I9", "changed unit", nil,
		breaking(admits, func(_ *process, status map[string]any) { status["phase"] = "Running" }), nil},
	{"conditions that contradict", "I9", "has conditions", nil,
		breaking(admits, func(_ *process, status map[string]any) { delete(status, "conditions") }), nil},
	{"an attempt is left out", "I3", "with attempt %d after", nil, breaking(admits,
		func(_ *process, status map[string]any) { status["attempts"] = status["attempts"].(float64) + 1 }), nil},
	{"always the first attempt", "I3", "twice with attempt", nil,
		breaking(admits, func(_ *process, status map[string]any) { status["attempts"] = 1 }), nil},
	{"less than all", "I10", "asks for", nil, breaking(admits, func(_ *process, status map[string]any) {
		for _, item := range status["admissions"].([]any) {
			item.(map[string]any)["resources"] = map[string]any{"cpu": "1m"}
		}
	}), nil},
	{"fewer pods than a job can do with", "I10", "pods of %s, and asks for", nil,
		breaking(admits, func(_ *process, status map[string]any) {
			for _, item := range status["admissions"].([]any) {
				item.(map[string]any)["replicas"] = 1
			}
		}), nil},
	{"a job that was admitted in part is resumed whole", "I1", "its unit holds less", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			if spec := mapAt(patch, "spec"); k == jobKind && spec["suspend"] == false {
				delete(spec, "parallelism")
				delete(spec, "completions")
			}
		}}, nil},
	{"a number of pods is not given back", "I8", "its owner had given it", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			whole, written := mapAt(patch, "metadata", "annotations")[v1alpha1.AnnotationWholeCounts]
			if k == jobKind && written && whole == nil {
				delete(mapAt(patch, "spec"), "parallelism")
			}
		}}, nil},
	{"the end is not written", "I7", "all jobs have ended", nil,
		breaking(ends, func(_ *process, status map[string]any) { clear(status) }), nil},
	{"the end keeps what was held", "I7", "is over and holds", nil,
		breaking(ends, func(_ *process, status map[string]any) { delete(status, "admissions") }), nil},
	{"a ledger that has lost something", "I7", "differs from its rebuild", nil,
		&variants{Verify: func([]ledger.Difference) []ledger.Difference {
			return []ledger.Difference{{}}
		}}, nil},
	{"a unit in two places", "I2", "and should be", nil,
		&variants{Places: func([]admission.Mismatch) []admission.Mismatch {
			return []admission.Mismatch{{}}
		}}, nil},
	{"a unit that is kept", "I2", "which is gone", nil,
		&variants{Deaf: func(_ string, gone bool) bool { return gone }}, nil},
	{"no backoff", "I12", "writes of one object", nil, &variants{NoBackoff: true}, nil},
	{"a controller without rest", "I12", "come to rest", nil,
		&variants{Healed: func(w *world) { restless(w, 2*time.Minute) }}, nil},
	{"a loop without end", "I12", "more than %d events", nil,
		&variants{Healed: func(w *world) { restless(w, time.Millisecond) }}, nil},
	{"two units for one job are admitted", "I3", "of the same job holds quota already", nil, nil, func(w *world) {
		aUnit(w, "b", "job-a")
		writeStatus(w, "a", admitted(1, "2"))
		writeStatus(w, "b", admitted(1, "2"))
	}},
	{"a unit that is to be made inactive is admitted", "I9", "to be made inactive", nil, nil, func(w *world) {
		writeStatus(w, "a", map[string]any{"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionDeactivationTarget, "status": "True", "reason": "RequeueLimitReached",
			"observedGeneration": w.api.get(units, keyOf(team, "a")).u.GetGeneration(),
		}}})
		writeStatus(w, "a", admitted(1, "2"))
	}},
	{"a condition that is not the scheduler's", "I9", "changed a condition", nil, nil, func(w *world) {
		writeStatus(w, "a", map[string]any{"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionFinished, "status": "True", "reason": "Succeeded",
		}}})
	}},
	{"a unit is admitted before its time", "I9", "has to wait until", nil, nil, func(w *world) {
		writeStatus(w, "a", map[string]any{"phase": "TimeoutBackoff", "requeueState": map[string]any{
			"requeueAt": w.loop.now.Add(time.Minute).Format(time.RFC3339),
		}})
		writeStatus(w, "a", admitted(1, "2"))
	}},
	{"an answer about a former reservation", "I9", "was %s already", nil, nil, func(w *world) {
		status := admitted(1, "2")
		status["phase"] = "Reserved"
		status["admissionChecks"] = []any{map[string]any{"name": "budget", "state": "Ready"}}
		writeStatus(w, "a", status)
	}},
	{"a unit that has not passed its checks goes", "I3", "had not passed check", nil, nil, func(w *world) {
		w.createObject(byAdmin, queues, v1alpha1.DefaultQueueNamespace, "q", nil, nil, map[string]any{
			"spec": map[string]any{"admissionChecks": []any{map[string]any{"name": "budget"}}}})
		w.api.edit(byUser, units, keyOf(team, "a"), false, func(u *unstructured.Unstructured) {
			mapAt(u.Object, "spec")["queue"] = "q"
		})
		writeStatus(w, "a", admitted(1, "2"))
	}},
	{"a unit loses what it holds to nobody", "I3", "had said that it takes", nil, nil, func(w *world) {
		writeStatus(w, "a", admitted(1, "2"))
		writeStatus(w, "a", map[string]any{"phase": "Enqueued", "attempts": int64(1), "conditions": []any{map[string]any{
			"type": "Evicted", "status": "True", "reason": "Reclaimed", "message": "",
			"lastTransitionTime": start.Format(time.RFC3339),
		}}})
	}},
	{"a unit takes and is not known to find nodes", "I3", "finds nodes", nil, nil, func(w *world) {
		w.createObject(byAdmin, queues, v1alpha1.DefaultQueueNamespace, "q", nil, nil, map[string]any{
			"spec": map[string]any{"admissionChecks": []any{map[string]any{"name": nodesCheck}}}})
		w.api.edit(byUser, units, keyOf(team, "a"), false, func(u *unstructured.Unstructured) {
			mapAt(u.Object, "spec")["queue"] = "q"
		})
		w.api.edit(aDecision(w), units, keyOf(team, "a"), true, func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"phase": "Enqueued",
				"preemption": map[string]any{"attempts": int64(0), "holds": []any{"b/1"}}}
		})
	}},
	{"a unit begins anew", "I9", "as the unit before it said", nil, nil, func(w *world) {
		by := aDecision(w)
		w.api.edit(by, units, keyOf(team, "a"), true, func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"phase": "TimeoutBackoff", "requeueState": map[string]any{
				"requeueAt": w.loop.now.Add(time.Minute).Format(time.RFC3339),
			}}
		})
		_ = w.api.delete(byUser, units, keyOf(team, "a"), "") // the unit exists
		aUnit(w, "a", "job-a")
		w.check.admissions.stillWaits(&change{key: keyOf(team, "a"), after: w.api.get(units, keyOf(team, "a")), by: by})
	}},
	{"pods that are left keep no place", "I1", "have a place in queue", nil, nil, func(w *world) {
		w.createObject(byAdmin, queues, v1alpha1.DefaultQueueNamespace, "q", nil, nil,
			map[string]any{"spec": map[string]any{"maxAdmitted": int64(1)}})
		aRunningJob(w, "left", "q")
		_ = w.api.delete(byUser, jobKind, keyOf(team, "left"), "") // the job exists
		next := aRunningJob(w, "next", "q")
		w.check.admissions.bounds(&change{key: next.key, after: next, by: aDecision(w)})
	}},
	{"more pods go than their unit holds", "I1", "of its job are", nil, nil, func(w *world) {
		aRunningJob(w, "j", "q")
		job := w.api.get(jobKind, keyOf(team, "j"))
		w.check.pods.withinUnit(aPod(w, job, "second", ""), job, aDecision(w).decision)
	}},
	{"a unit that nobody watches holds for ever", "I7", "has given a heartbeat", nil, nil, func(w *world) {
		w.createObject(byAdmin, queues, v1alpha1.DefaultQueueNamespace, "q", nil, nil,
			map[string]any{"spec": map[string]any{"heartbeatTimeoutSeconds": int64(20)}})
		w.check.rest.heartbeat(aRunningJob(w, "j", "q"))
	}},
	{"pods are told another time", "I15", "after an eviction at", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			if annotations := mapAt(patch, "metadata", "annotations"); k == pods && annotations != nil {
				annotations[v1alpha1.AnnotationSuspendAt] = start.Format(time.RFC3339)
			}
		}}, nil},
	{"a grace that is over at once", "I15", "has a grace of", nil, &variants{Read: func(u *v1alpha1.QueueUnit) {
		for i := range u.Status.Conditions {
			at := u.Status.Conditions[i].LastTransitionTime
			u.Status.Conditions[i].LastTransitionTime = metav1.NewTime(at.Add(-time.Hour))
		}
	}}, nil},
	{"pods are not told", "I15", "was not told", nil, &variants{Patch: func(_ *process, k kind, patch map[string]any) {
		if k == pods {
			clear(mapAt(patch, "metadata", "annotations"))
		}
	}}, nil},
	{"a job that is not suspended", "I15", "had to be suspended", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			if spec := mapAt(patch, "spec"); k == jobKind && spec["suspend"] == true {
				delete(spec, "suspend")
			}
		}}, nil},
	{"a notice that stays", "I15", "was admitted again", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			annotations := mapAt(patch, "metadata", "annotations")
			if at, written := annotations[v1alpha1.AnnotationSuspendAt]; k == pods && written && at == nil {
				clear(annotations)
			}
		}}, nil},
	{"the time of an eviction moves", "I15", "has made that", nil, nil, func(w *world) {
		for _, at := range []string{"2026-01-01T12:00:00Z", "2026-01-01T12:00:09Z"} {
			writeStatus(w, "a", map[string]any{"phase": "Enqueued", "attempts": int64(1), "conditions": []any{map[string]any{
				"type": "Evicted", "status": "True", "reason": "QueueDrained", "message": "", "lastTransitionTime": at,
			}}})
		}
	}},
	{"pods of a job that was not evicted have a notice", "I15", "was not evicted", nil, nil, func(w *world) {
		w.startController("controller-0")
		by := writer{role: roleController, process: "controller-0"}
		w.api.edit(by, pods, aRunningJob(w, "j", "q").key, false, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationSuspendAt: start.Format(time.RFC3339)})
		})
	}},
	{"pods without a unit bind where a unit takes", "I4", "binds while unit", nil, &variants{Unprotected: true}, nil},
	{"an adapter that promises nothing", "I14", "units of quota %s hold", nil,
		&variants{Quotas: quotasOf(func(q *admission.Quota) {
			if q.Name == "b" {
				q.Min = resources.List{}
			}
		})}, nil},
	{"a unit takes from one of a priority that is as great as its namespace allows", "I4", "of its quota", nil, nil,
		func(w *world) {
			aUnit(w, "b", "job-b")
			for name, most := range map[string]int64{"a": 3, "b": 2} {
				w.api.edit(byUser, units, keyOf(team, name), false, func(u *unstructured.Unstructured) {
					mapAt(u.Object, "spec")["priority"] = most
				})
			}
			writeStatus(w, "b", admitted(1, "2"))
			w.createObject(byAdmin, namespaces, "", team, nil, map[string]string{v1alpha1.AnnotationMaxPriority: "2"}, nil)
			hold := fmt.Sprintf("%s/1", w.api.get(units, keyOf(team, "b")).uid())
			w.api.edit(aDecision(w), units, keyOf(team, "a"), true, func(u *unstructured.Unstructured) {
				u.Object["status"] = map[string]any{"phase": "Enqueued",
					"preemption": map[string]any{"attempts": int64(0), "holds": []any{hold}}}
			})
		}},
	{"a unit takes again at once", "I12", "was for nothing", nil, nil, func(w *world) {
		by := aDecision(w)
		w.check.takings.vain[""] = &inVain{times: 1, at: w.loop.now, by: by.decision.leader}
		w.check.takings.takesAgain(&change{key: keyOf(team, "a"), after: w.api.get(units, keyOf(team, "a")), by: by})
	}},
	{"a job that goes on without what it held", "I15", "its unit lost what it held", nil,
		&variants{Patch: func(_ *process, k kind, patch map[string]any) {
			if spec := mapAt(patch, "spec"); k == jobKind && spec["suspend"] == true {
				delete(spec, "suspend")
			}
		}}, nil},
	{"two units for one job are left", "I2", "stand for one job", nil, nil, func(w *world) {
		aUnit(w, "b", "job-a")
		w.check.rest.atRest()
	}},
}

// restless has a controller write now and then.
func restless(w *world, every time.Duration) {
	m := w.managers["controller-0"]
	if every > time.Second {
		w.countWrite(m.process)
	}
	w.loop.after(every, func() { restless(w, every) })
}

// TestBrokenParts: every check can fail. Each break removes the guard of an invariant, and the simulator reports that.
func TestBrokenParts(t *testing.T) {
	require.Empty(t, direct(func(w *world) { writeStatus(w, "a", admitted(1, "2")) }), "as it should be")
	failed := map[string]bool{}
	for _, b := range breaks {
		t.Run(b.invariant+" "+b.name, func(t *testing.T) {
			seen := map[string]int{}
			provoke(b, func(found []Violation) bool {
				for _, v := range found {
					failed[v.check] = true
					seen[v.check]++
				}
				for _, v := range found {
					if v.Invariant == b.invariant && strings.Contains(v.check, b.check) {
						return true
					}
				}
				return false
			}, func() { t.Errorf("no violation of %s by the check %q, but %v", b.invariant, b.check, seen) })
		})
	}
	for _, check := range checksOf(t) {
		require.True(t, failed[check], "nothing shows that this check can fail: %q", check)
	}
}

// provoke runs what is broken until it is found.
func provoke(b aBreak, found func([]Violation) bool, never func()) {
	if b.direct != nil {
		if !found(direct(b.direct)) {
			never()
		}
		return
	}
	if text, ok := plansFor[b.name]; ok {
		plan, err := Parse(text)
		if err != nil || !found(Run(plan, Options{variants: b.variants}).Violations) {
			never()
		}
		return
	}
	profile := DefaultProfile()
	if b.profile != nil {
		profile = b.profile()
	}
	for seed := uint64(1); seed <= 60; seed++ {
		if found(Run(Generate(seed, profile), Options{variants: b.variants}).Violations) {
			return
		}
	}
	never()
}

// checksOf the source: the formats of all calls of violate.
func checksOf(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var all []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "violate" {
				format, err := strconv.Unquote(call.Args[1].(*ast.BasicLit).Value)
				require.NoError(t, err)
				all = append(all, format)
			}
			return true
		})
	}
	require.Greater(t, len(all), 20)
	return all
}

// TestACrashThatIsNotForgotten: a controller that was started again ends units otherwise (I8).
func TestACrashThatIsNotForgotten(t *testing.T) {
	scenarios, err := Scenarios()
	require.NoError(t, err)
	broken := breaking(ends, func(p *process, status map[string]any) {
		if p.run > 2 {
			status["phase"] = "Failed"
		}
	})
	for _, s := range scenarios {
		if s.Name != "one-job" {
			continue
		}
		without := Run(s.Plan, Options{variants: broken})
		require.Empty(t, without.Violations)
		var found []Violation
		for n := 1; n <= without.WritesBy[roleController]; n++ {
			found = append(found, s.runCrash(Crash{Role: roleController, Write: n, Fault: string(faultCrashAfter)}, without,
				Options{variants: broken}).Violations...)
		}
		require.NotEmpty(t, found)
		require.Equal(t, "I8", found[0].Invariant)
	}
}

// TestSecondRunThatDiffers: what lives longer than a run makes the next one another (I13).
func TestSecondRunThatDiffers(t *testing.T) {
	asked := 0
	forgetful := &variants{Quotas: quotasOf(func(q *admission.Quota) {
		if asked++; asked > 300 && q.Name == "a" {
			q.Used = q.Max
		}
	})}
	require.Empty(t, difference(Generate(100, DefaultProfile()), Options{}))
	require.NotEmpty(t, difference(Generate(100, DefaultProfile()), Options{variants: forgetful}))
}

// difference of two runs of a plan: the first line in which their logs differ.
func difference(p Plan, o Options) string {
	o.Log = true
	first, second := strings.Split(Run(p, o).Log, "\n"), strings.Split(Run(p, o).Log, "\n")
	for i := range max(len(first), len(second)) {
		if i >= len(first) || i >= len(second) || first[i] != second[i] {
			return fmt.Sprintf("line %d", i+1)
		}
	}
	return ""
}
