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

import "github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"

// pod is a small one outside of any job.
func pod(name string) object {
	p := podTemplate()
	p["apiVersion"], p["kind"] = "v1", "Pod"
	put(p, name, "metadata", "name")
	put(p, hostileNamespace, "metadata", "namespace")
	return p
}

var podFields = join(metadata, podSpec, []field{
	{[]string{"metadata", "name"}, []any{"", "UPPER", long(253), "-"}},
	{[]string{"spec", "restartPolicy"}, []any{"Always", "OnFailure", "x"}},
	{[]string{"spec", "hostname"}, texts},
	{[]string{"status"}, []any{object{"phase": "Succeeded"}, object{"phase": "x"}}},
})

// tellPod makes a pod with the worst fields, and relabels it later.
func tellPod(g *generator) {
	name := g.name()
	p := pod(name)
	g.spoil(p, podFields)
	g.create(podKind, name, p)
	change := object{}
	g.spoil(change, metadata)
	g.patch(1+g.random.IntN(5), podKind, name, change)
}

// tellPodsOfNobody makes pods that say they belong to a job, of the tenant or of another one.
func tellPodsOfNobody(g *generator) {
	theirs := g.name()
	g.create(jobKind, theirs, job(theirs))
	refs := []any{
		owner("batch/v1", "Job", theirs, uidOf(theirs), true),
		owner("batch/v1", "Job", theirs, victimUID, true),
		owner("batch/v1", "Job", "work-00001", victimUID, true),
	}
	for _, ref := range refs {
		name := g.name()
		p := pod(name)
		put(p, []any{ref}, "metadata", "ownerReferences")
		g.create(podKind, name, p)
	}
}

// tellPodsOnNodes makes pods, and a job of pods, that are on a node from the beginning: no scheduler is asked.
func tellPodsOnNodes(g *generator) {
	const most, nodes = 8, 4
	for range most {
		name := g.name()
		p := pod(name)
		put(p, []any{container("main", object{"cpu": "1"})}, "spec", "containers")
		put(p, controlplane.NodeName(g.random.IntN(nodes)), "spec", "nodeName")
		g.create(podKind, name, p)
	}
	name := g.name()
	j := job(name)
	put(j, controlplane.NodeName(g.random.IntN(nodes)), "spec", "template", "spec", "nodeName")
	put(j, false, "spec", "suspend")
	put(j, most, "spec", "parallelism")
	put(j, most, "spec", "completions")
	g.create(jobKind, name, j)
}
