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

import (
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// stories are what the tenant does, each with its weight.
var stories = []struct {
	weight int
	tell   story
}{
	{12, tellJob},
	{4, tellGrowth},
	{3, tellFlips},
	{3, tellRelabelled},
	{3, tellKept},
	{2, tellUnplaceable},
	{1, tellMegabyte},
	{8, tellPod},
	{2, tellPodsOfNobody},
	{2, tellPodsOnNodes},
	{12, tellUnit},
	{1, tellUnitsOfOneUID},
	{1, tellUnitsOfMadeUpResources},
	{2, tellNoJSON},
	{2, tellOthers},
	{1, tellCronJob},
	{2, tellRecharged},
	{2, tellLingering},
	{2, tellFirm},
	{1, tellOrphans},
	{2, tellBegunAnew},
	{2, tellAlone},
	{2, tellForeign},
	{1, tellFull},
	{2, tellKeptInDeletion},
	{2, tellBare},
	{2, tellOwned},
	{2, tellFirmMember},
	{2, tellForNothing},
	{2, tellOnAndOff},
	{1, tellPromoted},
	{2, tellSlow},
}

// tellJob makes a job with the worst fields, and changes it later.
func tellJob(g *generator) {
	name := g.name()
	j := job(name)
	g.spoil(j, jobFields)
	g.create(jobKind, name, j)
	change := object{}
	g.spoil(change, join(metadata, jobChanges))
	g.patch(1+g.random.IntN(5), jobKind, name, change)
}

// tellGrowth makes a job that asks for much more once it runs, and then for nothing.
func tellGrowth(g *generator) {
	name := g.name()
	j := job(name)
	put(j, nil, "spec", "completions")
	g.create(jobKind, name, j)
	for i, pods := range []any{2147483647, 40, 0, 1, 2147483647} {
		g.patch(1+i, jobKind, name, object{"spec": object{"parallelism": pods}})
	}
}

// tellFlips resumes and suspends a job by hand, again and again.
func tellFlips(g *generator) {
	name := g.name()
	g.create(jobKind, name, job(name))
	for i := range 8 {
		g.patch(1+i/2, jobKind, name, object{"spec": object{"suspend": i%2 == 1}})
	}
}

// tellRelabelled moves a job from quota to quota and from queue to queue while it waits and runs.
func tellRelabelled(g *generator) {
	name := g.name()
	g.create(jobKind, name, job(name))
	for i, quota := range []any{victimQuota, otherQuota, nil, hostileQuota, "no-such-quota"} {
		g.patch(1+i, jobKind, name, object{"metadata": object{
			"labels":      object{v1alpha1.LabelQuotaName: quota},
			"annotations": object{v1alpha1.QueueNameKey: pick(g, texts)},
		}})
	}
}

// tellKept deletes a job that a finalizer keeps.
func tellKept(g *generator) {
	name := g.name()
	j := job(name)
	put(j, []any{"example.com/kept"}, "metadata", "finalizers")
	g.create(jobKind, name, j)
	g.remove(1+g.random.IntN(3), jobKind, collection(jobKind, hostileNamespace)+"/"+name)
}

// tellUnplaceable makes a job that is admitted and that no node takes.
func tellUnplaceable(g *generator) {
	name := g.name()
	j := job(name)
	put(j, object{"no": "node"}, "spec", "template", "spec", "nodeSelector")
	put(j, 4, "spec", "parallelism")
	put(j, 4, "spec", "completions")
	g.create(jobKind, name, j)
}

// tellMegabyte makes an object of about as many bytes as the API server takes.
func tellMegabyte(g *generator) {
	const megabyte = 1 << 20
	name := g.name()
	env := []any{object{"name": "BIG", "value": long(megabyte)}}
	big := container("main", object{"cpu": "100m"})
	big["env"] = env
	switch g.random.IntN(3) {
	case 0:
		j := job(name)
		put(j, []any{big}, "spec", "template", "spec", "containers")
		g.create(jobKind, name, j)
	case 1:
		j := job(name)
		put(j, many(15000, "label", long(40)), "metadata", "labels")
		put(j, hostileQuota, "metadata", "labels", v1alpha1.LabelQuotaName)
		g.create(jobKind, name, j)
	default:
		u := unit(name)
		put(u, []any{object{"name": "main", "count": 1, "template": object{"spec": object{"containers": []any{big}}}}},
			"spec", "podSet")
		g.create(unitKind, name, u)
	}
}

// tellNoJSON sends what is no object.
func tellNoJSON(g *generator) {
	kind := pick(g, []string{jobKind, podKind, unitKind})
	whole := encode(job("h"))
	bodies := [][]byte{
		{}, []byte("null"), []byte("[]"), []byte(`"text"`), []byte("{"), whole[:len(whole)/2],
		[]byte(`{"apiVersion":"v1","kind":"List","items":[null]}`), encode(deep(2000)), {0xff, 0xfe, 0x00},
	}
	g.createAs(kind, collection(kind, hostileNamespace), g.name(), pick(g, bodies))
}

// tellOthers tries what a tenant has no right to: objects of others, queues, quotas and the configuration.
func tellOthers(g *generator) {
	const queues = v1alpha1.DefaultQueueNamespace
	switch g.random.IntN(8) {
	case 0:
		g.patchAt(0, jobKind, collection(jobKind, victimNamespace)+"/work-00001", object{"spec": object{"parallelism": 0}})
	case 1:
		g.createAs(podKind, collection(podKind, victimNamespace), g.name(), encode(pod("intruder")))
	case 2:
		g.patchAt(0, queueKind, collection(queueKind, queues)+"/"+victimQuota,
			object{"spec": object{"stopPolicy": "HoldAndDrain", "maxAdmitted": 0}})
	case 3:
		name := g.name()
		g.createAs(queueKind, collection(queueKind, hostileNamespace), name, encode(queue(name, hostileNamespace)))
	case 4:
		g.patchAt(0, quotaKind, collection(quotaKind, hostileNamespace)+"/"+hostileQuota,
			object{"spec": object{"max": object{"cpu": pick(g, amounts)}}})
	case 5:
		name := g.name()
		g.createAs(quotaKind, collection(quotaKind, hostileNamespace), name, encode(object{
			"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
			"metadata": object{"name": name, "labels": object{v1alpha1.LabelQuotaParent: companyQuota}},
			"spec":     object{"min": object{"cpu": "1E"}, "max": object{"cpu": pick(g, amounts)}},
		}))
	case 6:
		g.remove(0, unitKind, collection(unitKind, victimNamespace))
	default:
		g.patchAt(0, configKind, collection(configKind, queues)+"/koord-jobqueue-managed-jobs",
			object{"data": object{"managedJobs": "kinds: []"}})
	}
}

func queue(name, namespace string) object {
	return object{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "Queue",
		"metadata": object{"name": name, "namespace": namespace,
			"annotations": object{v1alpha1.AnnotationAvailableQuota: "*"}},
		"spec": object{"queuePolicy": "Block"},
	}
}

// tellCronJob makes a CronJob whose jobs say all that a job may say.
func tellCronJob(g *generator) {
	name := g.name()
	inner := job(fmt.Sprintf("%s-inner", name))
	g.spoil(inner, jobFields)
	delete(inner, "apiVersion")
	delete(inner, "kind")
	g.create(cronKind, name, object{
		"apiVersion": "batch/v1", "kind": "CronJob", "metadata": object{"name": name, "namespace": hostileNamespace},
		"spec": object{"schedule": "* * * * *", "jobTemplate": inner},
	})
}
