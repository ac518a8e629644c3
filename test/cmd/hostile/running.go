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
	"strconv"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Attacks on own running jobs and pods, to run more than the admission, or for longer.

// runner is a job of more pods than its quota takes at once, each of which runs for some seconds.
func (g *generator) runner() (name string) {
	name = g.name()
	j := job(name)
	put(j, 2, "spec", "parallelism")
	put(j, 12, "spec", "completions")
	put(j, "12s", "spec", "template", "metadata", "annotations", controlplane.RunTimeAnnotation)
	g.create(jobKind, name, j)
	return name
}

// patchPod changes a pod of a job some steps later, if it has one by then.
func (g *generator) patchPod(steps int, job string, change object) {
	g.patchAt(steps, podKind, collection(podKind, hostileNamespace)+"/"+podOfJob(job), change)
}

func labelled(key string, value any) object {
	return object{"metadata": object{"labels": object{key: value}}}
}

// tellRecharged takes the quota's label off pods that run, or changes it, and has their job ask for more.
func tellRecharged(g *generator) {
	name := g.runner()
	for i := range 4 {
		g.patchPod(2+i, name, labelled(v1alpha1.LabelQuotaName, pick(g, []any{nil, otherQuota, victimQuota})))
		g.patch(2+i, jobKind, name, object{"spec": object{"parallelism": 2 * (i + 2)}})
	}
}

// tellLingering deletes the pods of a job again and again, which stay for as long as the tenant may ask.
func tellLingering(g *generator) {
	name := g.runner()
	for i := range 4 {
		seconds := pick(g, []int{30, 600, 3600, 86400})
		if i%2 == 1 {
			g.patchPod(2+i, name, object{"metadata": object{"finalizers": []any{"example.com/kept"}}})
		}
		g.removeWith(2+i, podKind, collection(podKind, hostileNamespace)+"/"+podOfJob(name),
			`{"gracePeriodSeconds":`+strconv.Itoa(seconds)+`}`)
	}
}

// tellFirm says of a job that runs, and of its pods, that they may not be preempted.
func tellFirm(g *generator) {
	name := g.runner()
	change := labelled(v1alpha1.LabelPreemptible, "false")
	g.patch(3, jobKind, name, change)
	g.patch(3, unitKind, name, change)
	g.patchPod(3, name, change)
}

// tellOrphans deletes jobs without their pods, and makes the next one.
func tellOrphans(g *generator) {
	for i := range 3 {
		g.removeWith(2+i, jobKind, collection(jobKind, hostileNamespace)+"/"+g.runner(), `{"propagationPolicy":"Orphan"}`)
	}
}

// tellBegunAnew has a job that no node takes begin again: its unit is deleted, or it leaves the queue for a moment.
func tellBegunAnew(g *generator) {
	name := g.name()
	j := job(name)
	put(j, object{"no": "node"}, "spec", "template", "spec", "nodeSelector")
	g.create(jobKind, name, j)
	for i := range 3 {
		g.remove(2+2*i, unitKind, collection(unitKind, hostileNamespace)+"/"+name)
		g.patch(2+2*i, jobKind, name, labelled(v1alpha1.LabelQuotaName, nil))
		g.patch(3+2*i, jobKind, name, labelled(v1alpha1.LabelQuotaName, hostileQuota))
	}
}

// tellAlone makes a job one pod of which finds a node: no node takes two.
func tellAlone(g *generator) {
	name := g.name()
	j := job(name)
	put(j, 4, "spec", "parallelism")
	put(j, 4, "spec", "completions")
	put(j, object{"alone": name}, "spec", "template", "metadata", "labels")
	put(j, hostileQuota, "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName)
	put(j, object{"kubernetes.io/hostname": controlplane.NodeName(0)}, "spec", "template", "spec", "nodeSelector")
	put(j, object{"podAntiAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": []any{object{
		"topologyKey": "kubernetes.io/hostname", "labelSelector": object{"matchLabels": object{"alone": name}},
	}}}}, "spec", "template", "spec", "affinity")
	g.create(jobKind, name, j)
}

// tellForeign creates units for consumers that nobody watches, and units for a single pod that waits forever.
func tellForeign(g *generator) {
	name := g.name()
	u := unit(name)
	put(u, consumer("PyTorchJob", "p", hostileNamespace, "22222222-2222-2222-2222-222222222222"), "spec", "consumerRef")
	g.create(unitKind, name, u)
	name = g.name()
	g.create(unitKind, name, unit(name))
	p := pod(g.name())
	put(p, hostileNamespace+"/"+name, "metadata", "annotations", v1alpha1.AnnotationRelatedQueueUnit)
	put(p, object{"no": "node"}, "spec", "nodeSelector")
	g.create(podKind, p["metadata"].(object)["name"].(string), p)
}
