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

package main

import "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"

// unit stands for something outside, and asks for one core.
func unit(name string) object {
	return object{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": object{
			"name": name, "namespace": hostileNamespace, "labels": object{v1alpha1.LabelQuotaName: hostileQuota},
		},
		"spec": object{"request": object{"cpu": "1"}},
	}
}

var unitFields = join(metadata, []field{
	{[]string{"metadata", "name"}, []any{"", "UPPER", "work-00001", long(253), "-"}},
	{[]string{"spec", "consumerRef"}, worstConsumers},
	{[]string{"spec", "priority"}, wholeNumbers},
	{[]string{"spec", "priorityClassName"}, texts},
	{[]string{"spec", "queue"}, texts},
	{[]string{"spec", "active"}, []any{false, true, nil}},
	{[]string{"spec", "maximumExecutionTimeSeconds"}, wholeNumbers},
	{[]string{"spec", "request", "cpu"}, unitAmounts},
	{[]string{"spec", "resource", "cpu"}, unitAmounts},
	{[]string{"spec", "request", "koord-queue/max-jobs"}, unitAmounts},
	{[]string{"spec", "request"}, []any{madeUp(60), madeUp(300), object{"": "1"}, object{}}},
	{[]string{"spec", "Requests"}, []any{object{"cpu": "1e-99999999"}}},
	{[]string{"spec", "podSet"}, worstPodSets()},
	{[]string{"status"}, worstStatuses},
})

// unitAmounts are amounts of a field that is only a text to the API server.
var unitAmounts = append([]any{"1e999999", "1e-999999", "0x10", "+1", "1e", "NaN", "Inf"}, amounts...)

var worstConsumers = []any{
	consumer("Job", "work-00001", victimNamespace, victimUID),
	consumer("Job", "work-00001", hostileNamespace, victimUID),
	consumer("Job", "h-00001", hostileNamespace, uidOf("h-00001")),
	consumer("Job", "h-00001", "", "00000000-0000-0000-0000-000000000000"),
	consumer("Pod", "h-00001", "", "x"),
	consumer("PyTorchJob", "ключ", "", long(5000)),
	consumer("", "", "", ""),
	object{"fieldPath": long(10000)},
}

func consumer(kind, name, namespace, uid string) object {
	return object{"apiVersion": "batch/v1", "kind": kind, "name": name, "namespace": namespace, "uid": uid}
}

func worstPodSets() (all []any) {
	for _, count := range wholeNumbers {
		all = append(all, []any{object{"name": "main", "count": count, "template": podTemplate()}})
	}
	return append(all,
		[]any{},
		[]any{object{"name": "a"}, object{"name": "a"}},
		[]any{object{"name": "a", "template": "text"}},
		[]any{object{"name": "a", "template": object{"spec": object{"containers": "none"}}}},
		[]any{object{"name": "a", "template": object{"spec": object{"containers": crowd(700, madeUp(2))}}}},
		[]any{object{"name": "a", "template": object{"spec": object{"containers": crowd(1, object{"cpu": "1e-99999999"})}}}},
		[]any{object{"name": "a", "count": 2147483647, "minCount": 1,
			"template": object{"spec": object{"containers": crowd(3, object{"cpu": "9223372036854775807"})}}}},
		[]any{object{"name": "a", "count": 1, "topologyRequest": deep(500)}},
		[]any{object{"name": "a", "count": 1, "template": deep(500)}},
	)
}

// deep is so many objects, one in the other.
func deep(levels int) object {
	o := object{}
	for range levels {
		o = object{"a": o}
	}
	return o
}

// worstStatuses say that the unit was admitted.
var worstStatuses = []any{
	object{"phase": "Dequeued", "attempts": 1, "admissions": []any{
		object{"name": "main", "replicas": 1000000, "resources": object{"cpu": "1E"}}}},
	object{"phase": "Running"}, object{"phase": "Succeed"}, object{"phase": "x"}, object{"attempts": -1},
}

// tellUnit makes a unit with the worst fields, and tries to change it.
func tellUnit(g *generator) {
	name := g.name()
	u := unit(name)
	g.spoil(u, unitFields)
	g.create(unitKind, name, u)
	if g.random.IntN(3) == 0 {
		g.patch(1, unitKind, name, object{"spec": object{"priority": 2147483647}})
		g.patchAt(1, unitKind, collection(unitKind, hostileNamespace)+"/"+name+"/status",
			object{"status": pick(g, worstStatuses)})
	}
}

// tellUnitsOfOneUID makes many units for one job: of nobody, of the tenant, or of another tenant.
func tellUnitsOfOneUID(g *generator) {
	const most = 30
	theirs := g.name()
	g.create(jobKind, theirs, job(theirs))
	ref := pick(g, []object{
		consumer("Job", theirs, hostileNamespace, uidOf(theirs)),
		consumer("Job", theirs, hostileNamespace, victimUID),
		consumer("PyTorchJob", "p", hostileNamespace, "11111111-1111-1111-1111-111111111111"),
	})
	for range most {
		name := g.name()
		u := unit(name)
		put(u, ref, "spec", "consumerRef")
		put(u, pick(g, []any{"1m", "1", "4", "1E"}), "spec", "request", "cpu")
		g.create(unitKind, name, u)
	}
}

// tellUnitsOfMadeUpResources makes units that each ask for other resources that nobody has.
func tellUnitsOfMadeUpResources(g *generator) {
	const most, each = 5, 60
	for range most {
		name := g.name()
		u := unit(name)
		put(u, many(each, name, pick(g, []any{"1", "1E", "1n"})), "spec", "request")
		g.create(unitKind, name, u)
	}
}
