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

package alias

import (
	"slices"
	"strings"
)

// Fate is what becomes of a key of another system.
type Fate string

// The fates.
const (
	// Honoured keys mean what they mean there.
	Honoured Fate = "honoured"
	// Told keys have no effect, and an event says so.
	Told Fate = "told"
	// Needless keys ask for what holds without them.
	Needless Fate = "needless"
)

// Row is one label or annotation of a job of another system, or of its pod templates.
type Row struct {
	System System
	Key    string
	Fate   Fate
	// Use says how it is honoured, what has its effect, or why nothing has to be done.
	Use string
}

const (
	priorityClass = "kueue.x-k8s.io/priority-class"
	maximumTime   = "kueue.x-k8s.io/max-exec-time-seconds"
)

// table has a row for each key that users of these systems write on jobs.
var table = []Row{
	{Kueue, "kueue.x-k8s.io/queue-name", Honoured, ""},
	{Kueue, priorityClass, Honoured, "it is a number of priorities of the entry, up to koord-queue/max-priority"},
	{Kueue, maximumTime, Honoured, "it counts from when all pods are ready, and not from admission"},
	{Kueue, "kueue.x-k8s.io/job-min-parallelism", Honoured, "it needs no alias"},
	{Kueue, "kueue.x-k8s.io/pod-group-name", Told, "use a job: a group of pods is not read by this label"},
	{Kueue, "kueue.x-k8s.io/podset-required-topology", Told, "use an admission check, or affinity of the pod template"},
	{Kueue, "kueue.x-k8s.io/podset-preferred-topology", Told, "use affinity of the pod template"},

	{YuniKorn, "yunikorn.apache.org/queue", Honoured, ""},
	{YuniKorn, "queue", Honoured, "the other one counts first"},
	{YuniKorn, "yunikorn.apache.org/app-id", Needless, "the job is the application"},
	{YuniKorn, "applicationId", Needless, "the job is the application"},
	{YuniKorn, "yunikorn.apache.org/task-group-name", Needless, "a job is admitted with all of its pods"},
	{YuniKorn, "yunikorn.apache.org/task-groups", Told, "quota is for all pods at once; use annotations of a gang to " +
		"have them bound together"},
	{YuniKorn, "yunikorn.apache.org/schedulingPolicyParameters", Told, "use spec.timeouts of the Queue"},
	{YuniKorn, "yunikorn.apache.org/allow-preemption", Told, "use quota.scheduling.koordinator.sh/preemptible, which " +
		"draws on min alone, or koord-queue/preemptable"},
	{YuniKorn, "yunikorn.apache.org/user.info", Told, "quotas are not for users; use the verb use"},

	{Volcano, "volcano.sh/queue-name", Honoured, ""},
	{Volcano, volcanoAnnotation, Honoured, "on a pod template"},
	{Volcano, "scheduling.k8s.io/group-name", Told, "use annotations of a gang: PodGroups of Volcano are not read"},
	{Volcano, "volcano.sh/preemptable", Told, "use quota.scheduling.koordinator.sh/preemptible, which draws on min " +
		"alone, or koord-queue/preemptable"},
}

// Rows of all keys, by system.
func Rows() []Row { return slices.Clone(table) }

// Further is what a job asks for in the words of the system whose queue it names.
type Further struct {
	// MaximumTime is for how many seconds the job may run, as the job has it; empty if it does not say.
	MaximumTime string
	// Priority that the entry gives to its class; nil for none.
	Priority *int32
	// Ignored says of its keys without effect what to use instead; empty for none. No text of the job is part of it.
	Ignored string
}

// Further reads a job that names a queue of one system. all has the labels and annotations of the job and of its pod
// templates.
func (t Table) Further(namespaceLabels, jobLabels map[string]string, queues, all []map[string]string) (f Further) {
	found := t.find(namespaceLabels, queues)
	if len(found) != 1 {
		return f
	}
	c := found[0].of
	var ignored []string
	if c.system == Kueue {
		f.MaximumTime = jobLabels[maximumTime]
		switch value, listed := c.priorities[jobLabels[priorityClass]]; {
		case listed:
			f.Priority = &value
		case jobLabels[priorityClass] != "":
			ignored = append(ignored, priorityClass+" has no effect: priorities of the alias do not list it")
		}
	}
	for i := range table {
		r := &table[i]
		has := func(set map[string]string) bool { return set[r.Key] != "" }
		if r.System == c.system && r.Fate == Told && slices.ContainsFunc(all, has) {
			ignored = append(ignored, r.Key+" has no effect: "+r.Use)
		}
	}
	f.Ignored = strings.Join(ignored, ". ")
	return f
}
