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

// metadata are the labels, annotations and other fields that the queue reads of jobs, pods and units.
var metadata = []field{
	{[]string{"metadata", "labels", v1alpha1.LabelQuotaName}, texts},
	{[]string{"metadata", "labels", v1alpha1.LabelQuotaNameFallback1}, texts},
	{[]string{"metadata", "labels", v1alpha1.LabelQuotaNameFallback2}, texts},
	{[]string{"metadata", "labels", v1alpha1.LabelPreemptible}, []any{"false", "true", "", "no"}},
	{[]string{"metadata", "labels", v1alpha1.LabelCreatedBy}, []any{v1alpha1.CreatedByController, "x"}},
	{[]string{"metadata", "labels", "kueue.x-k8s.io/queue-name"}, texts},
	{[]string{"metadata", "labels", "quota.scheduling.koordinator.sh/tree-id"}, texts},
	{[]string{"metadata", "labels", v1alpha1.QueueNameKey}, texts},
	{[]string{"metadata", "labels"}, []any{many(500, "label", "x"), nil}},
	{[]string{"metadata", "annotations", v1alpha1.QueueNameKey}, texts},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationPriority}, []any{
		"2147483647", "-2147483648", "99999999999999999999", "1e3", "", "x", "٣"}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationRelatedQueueUnit}, []any{
		victimNamespace + "/work-00001", hostileNamespace + "/h-00001", "/", "", "x", long(10000)}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationRelatedPodSet}, texts},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationAdopted}, []any{"true", "false", ""}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationSuspendedBy}, []any{"jobqueue-controller", "", "x"}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationResumed}, []any{"", "x", "x/1", "/0"}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationMaxExecutionTime}, []any{"1", "0", "-1", "99999999999", "x"}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationParkedReason}, texts},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationTemplateAdditions}, forgedRecords},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationMinParallelism}, []any{"1", "0", "-1", "2147483648", "x"}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationPartialAdmission}, []any{"true", "x"}},
	{[]string{"metadata", "annotations", v1alpha1.AnnotationWholeCounts}, []any{
		`{"main":{"whole":2147483647,"now":1}}`, `{"h":{"whole":-1,"now":-2,"along":true}}`, `{`, `[]`, `null`}},
	{[]string{"metadata", "annotations", "gang.scheduling.koordinator.sh/name"}, texts},
	{[]string{"metadata", "annotations", "gang.scheduling.koordinator.sh/min-available"}, []any{
		"0", "-1", "2147483648", "x"}},
	{[]string{"metadata", "annotations", "gang.scheduling.koordinator.sh/groups"}, []any{
		`["` + victimNamespace + `/work-00001"]`, `[`, `[""]`}},
	{[]string{"metadata", "annotations"}, []any{many(1000, "note", long(200)), object{"big": long(250 << 10)}, nil}},
	{[]string{"metadata", "finalizers"}, []any{[]any{"example.com/kept"}, []any{"kubernetes"}, []any{long(300)}}},
	{[]string{"metadata", "ownerReferences"}, owners},
	{[]string{"metadata", "deletionTimestamp"}, []any{"2000-01-01T00:00:00Z"}},
	{[]string{"metadata", "uid"}, []any{victimUID}},
	{[]string{"metadata", "creationTimestamp"}, []any{"1970-01-01T00:00:00Z", "x"}},
	{[]string{"metadata", "namespace"}, []any{victimNamespace, "kube-system", ""}},
}

// forgedRecords are records of what resuming wrote into the templates of a job, which only the controller should write.
var forgedRecords = []any{
	`{"h":{"labels":{"` + v1alpha1.LabelQuotaName + `":"` + victimQuota + `"}}}`,
	`{"main":{"labels":["` + v1alpha1.LabelQuotaName + `"]}}`,
	`{`, `[]`, `null`, `"x"`, `{"a":{"b":{"c":[[[[]]]]}}}`, long(100000),
}

// owners are owner references that somebody wrote.
var owners = []any{
	[]any{owner("batch/v1", "Job", "work-00001", victimUID, true)},
	[]any{owner("batch/v1", "Job", "h-00001", uidOf("h-00001"), true)},
	[]any{owner("batch/v1", "CronJob", "c", "00000000-0000-0000-0000-000000000000", false)},
	[]any{owner("scheduling.x-k8s.io/v1alpha1", "QueueUnit", "work-00001", victimUID, true)},
	[]any{owner("batch/v1", "Job", "a", "a", true), owner("batch/v1", "Job", "b", "b", true)},
	[]any{owner("///", "", "", "", true)},
}

func owner(version, kind, name, uid string, controller bool) object {
	return object{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controller}
}

// many is an object of so many keys.
func many(n int, key string, value any) object {
	o := object{}
	for i := range n {
		o[fmt.Sprintf("example.com/%s-%05d", key, i)] = value
	}
	return o
}
