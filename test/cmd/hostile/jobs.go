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
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// podTemplate is that of a small pod of the tenant's quota, which runs for a while.
func podTemplate() object {
	return object{
		"metadata": object{
			"labels":      object{v1alpha1.LabelQuotaName: hostileQuota},
			"annotations": object{controlplane.RunTimeAnnotation: "5s"},
		},
		"spec": object{
			"schedulerName": "koord-scheduler", "restartPolicy": "Never",
			"containers": []any{container("main", object{"cpu": "500m", "memory": "64Mi"})},
		},
	}
}

func container(name string, requests object) object {
	return object{"name": name, "image": "example.invalid/work", "resources": object{"requests": requests}}
}

// job is one that the queue admits and that ends.
func job(name string) object {
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{
			"name": name, "namespace": hostileNamespace, "labels": object{v1alpha1.LabelQuotaName: hostileQuota},
		},
		"spec": object{"parallelism": 1, "completions": 1, "backoffLimit": 0, "suspend": true, "template": podTemplate()},
	}
}

// podSpec are fields of a pod, or of a template of pods, without metadata.
var podSpec = []field{
	{[]string{"spec", "schedulerName"}, []any{"default-scheduler", "koord-scheduler", "", "nobody"}},
	{[]string{"spec", "priority"}, wholeNumbers},
	{[]string{"spec", "priorityClassName"}, []any{"", "no-such-class", "system-node-critical", "system-cluster-critical"}},
	{[]string{"spec", "preemptionPolicy"}, []any{"Never", "PreemptLowerPriority", "x"}},
	{[]string{"spec", "nodeName"}, []any{controlplane.NodeName(1), "no-such-node"}},
	{[]string{"spec", "nodeSelector"}, []any{object{"no": "node"}, many(200, "node", "x")}},
	{[]string{"spec", "schedulingGates"}, []any{[]any{}, []any{object{"name": "example.com/gate"}}}},
	{[]string{"spec", "overhead"}, []any{object{"cpu": "1E"}, object{"cpu": "-1"}}},
	{[]string{"spec", "activeDeadlineSeconds"}, wholeNumbers},
	{[]string{"spec", "terminationGracePeriodSeconds"}, wholeNumbers},
	{[]string{"spec", "resources"}, []any{object{"requests": object{"cpu": "1E"}}}},
	{[]string{"spec", "tolerations"}, []any{[]any{object{"operator": "Exists"}}}},
	{[]string{"spec", "initContainers"}, []any{
		[]any{container("init", object{"cpu": "1E"})},
		[]any{object{"name": "side", "image": "i", "restartPolicy": "Always",
			"resources": object{"requests": object{"cpu": "9223372036854775807"}}}},
	}},
	{[]string{"spec", "containers"}, worstContainers()},
}

func worstContainers() (all []any) {
	for _, amount := range amounts {
		all = append(all,
			[]any{container("main", object{"cpu": amount})},
			[]any{container("main", object{"cpu": "100m", "memory": amount})},
			[]any{container("main", object{"cpu": "100m", "example.com/made-up": amount})})
	}
	all = append(all, []any{}, []any{container("main", object{})}, []any{container("main", madeUp(120))},
		[]any{container("main", object{"": "1", "ключ": "1", "cpu ": "1"})})
	return append(all, crowd(700, object{"cpu": "1m"}), crowd(8, object{"cpu": "9223372036854775807"}))
}

// crowd is so many containers.
func crowd(n int, requests object) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = container(fmt.Sprintf("c-%d", i), requests)
	}
	return all
}

// madeUp asks for so many resources that nobody has.
func madeUp(n int) object { return many(n, "resource", "1") }

// jobFields are fields of a Job and of its pods.
var jobFields = join(metadata, under(metadata, "spec", "template"), under(podSpec, "spec", "template"), []field{
	{[]string{"spec", "parallelism"}, wholeNumbers},
	{[]string{"spec", "completions"}, wholeNumbers},
	{[]string{"spec", "backoffLimit"}, wholeNumbers},
	{[]string{"spec", "activeDeadlineSeconds"}, wholeNumbers},
	{[]string{"spec", "ttlSecondsAfterFinished"}, wholeNumbers},
	{[]string{"spec", "suspend"}, []any{true, false, nil, "true"}},
	{[]string{"spec", "completionMode"}, []any{"Indexed", "NonIndexed", "x"}},
	{[]string{"spec", "podReplacementPolicy"}, []any{"Failed", "TerminatingOrFailed"}},
	{[]string{"spec", "managedBy"}, []any{
		"example.com/nobody", "kueue.x-k8s.io/multikueue", "kubernetes.io/job-controller"}},
	{[]string{"spec", "manualSelector"}, []any{true}},
	{[]string{"spec", "template", "spec", "restartPolicy"}, []any{"OnFailure", "Always", ""}},
	{[]string{"spec", "template"}, []any{object{}, nil}},
	{[]string{"metadata", "name"}, []any{"", "UPPER", "work-00001", long(63), long(253), "-"}},
	{[]string{"status"}, []any{object{"active": 2147483647,
		"conditions": []any{object{"type": "Complete", "status": "True"}}}}},
})

var jobChanges = []field{
	{[]string{"spec", "parallelism"}, wholeNumbers},
	{[]string{"spec", "completions"}, wholeNumbers},
	{[]string{"spec", "suspend"}, []any{true, false, nil}},
	{[]string{"spec", "activeDeadlineSeconds"}, wholeNumbers},
	{[]string{"spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName}, texts},
	{[]string{"spec", "template", "spec", "nodeSelector"}, []any{object{"no": "node"}, nil}},
}
