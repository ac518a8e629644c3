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

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Attacks to keep quota that is taken back, and to have quota of others taken in vain.

func annotated(key string, value any) object {
	return object{"metadata": object{"annotations": object{key: value}}}
}

// mostAnnotations is what the API server takes of an object, in bytes.
const mostAnnotations = 256 << 10

// tellFull leaves no room for a mark on a job that runs, and has it taken off the queue: of these sizes one just fits.
func tellFull(g *generator) {
	name := g.runner()
	for i := range 8 {
		g.patch(2, jobKind, name, annotated("fill", long(mostAnnotations-100*(i+1))))
	}
	g.patch(4, unitKind, name, object{"spec": object{"active": false}})
}

// tellKeptInDeletion has a finalizer keep a job that runs, and deletes it.
func tellKeptInDeletion(g *generator) {
	name := g.runner()
	g.patch(2, jobKind, name, object{"metadata": object{"finalizers": []any{"example.com/kept"}}})
	g.remove(3, jobKind, collection(jobKind, hostileNamespace)+"/"+name)
	g.patch(12, jobKind, name, object{"metadata": object{"finalizers": nil}})
}

// tellBare makes pods that name the quota and belong to no unit, so that they take what is freed.
func tellBare(g *generator) {
	for range 6 {
		name := g.name()
		p := pod(name)
		put(p, hostileQuota, "metadata", "labels", v1alpha1.LabelQuotaName)
		g.create(podKind, name, p)
	}
}

// tellOwned names a controlling owner in a job that runs, and puts the job on hold.
func tellOwned(g *generator) {
	owner, name := g.runner(), g.runner()
	g.patch(2, jobKind, name, object{"metadata": object{"ownerReferences": []any{object{
		"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": uidOf(owner), "controller": true,
	}}}})
	g.patch(3, jobKind, name, annotated(v1alpha1.AnnotationHold, "true"))
}

// tellFirmMember has a tiny job that may not be preempted protect the others of its gang group.
func tellFirmMember(g *generator) {
	names := []string{g.name(), g.name()}
	group := fmt.Sprintf(`["%[1]s/%[2]s","%[1]s/%[3]s"]`, hostileNamespace, names[0], names[1])
	for i, name := range names {
		j := job(name)
		for _, at := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
			put(j, name, append(at, "annotations", extension.AnnotationGangName)...)
			put(j, group, append(at, "annotations", extension.AnnotationGangGroups)...)
		}
		if i == 0 {
			put(j, 1, "spec", "parallelism")
			put(j, 1, "spec", "completions")
			put(j, "false", "metadata", "labels", v1alpha1.LabelPreemptible)
		}
		g.create(jobKind, name, j)
	}
}

// tellForNothing creates and deletes jobs that fit no node. Each of them may have others evicted, because it is within
// the min of a quota that borrows nothing.
func tellForNothing(g *generator) {
	for i := range 4 {
		name := g.name()
		j := job(name)
		put(j, object{"no": "node"}, "spec", "template", "spec", "nodeSelector")
		put(j, otherQuota, "metadata", "labels", v1alpha1.LabelQuotaName)
		put(j, otherQuota, "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName)
		g.create(jobKind, name, j)
		g.remove(1+i, jobKind, collection(jobKind, hostileNamespace)+"/"+name)
	}
}

// tellOnAndOff holds a job and releases it, again and again: it counts as admitted often.
func tellOnAndOff(g *generator) {
	name := g.runner()
	for i := range 8 {
		g.patch(2+i, jobKind, name, annotated(v1alpha1.AnnotationHold, pick(g, []any{"true", "false"})))
	}
}

// tellPromoted raises the priority of a job to the greatest, and the bound of its namespace, which the tenant may not.
func tellPromoted(g *generator) {
	g.patchAt(0, namespaceKind, "/api/v1/namespaces/"+hostileNamespace,
		annotated(v1alpha1.AnnotationMaxPriority, pick(g, []any{"2147483647", "0", "", "x", nil})))
	name := g.name()
	j := job(name)
	put(j, "2147483647", "metadata", "annotations", v1alpha1.AnnotationPriority)
	g.create(jobKind, name, j)
	g.patch(2, jobKind, name, annotated(v1alpha1.AnnotationPriority, "-2147483648"))
}

// tellSlow makes jobs in a namespace that only an alias has queued. One ends as it should, and others would keep their
// quota for long after it was taken back.
func tellSlow(g *generator) {
	for _, change := range []object{
		{},
		{"metadata": object{"finalizers": []any{"example.com/kept"}}},
		{"spec": object{"terminationGracePeriodSeconds": 365 * 24 * 3600}},
	} {
		name := g.name()
		j := job(name)
		put(j, aliasedNamespace, "metadata", "namespace")
		put(j, object{aliasLabel: "theirs"}, "metadata", "labels")
		put(j, nil, "spec", "template", "metadata", "labels")
		for part, fields := range change {
			for key, value := range fields.(object) {
				put(j, value, "spec", "template", part, key)
			}
		}
		g.createAs(jobKind, collection(jobKind, aliasedNamespace), name, encode(j))
	}
}
