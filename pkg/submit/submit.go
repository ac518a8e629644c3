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

// Package submit labels jobs for a queue system, in programs that create jobs. One call works for every kind of jobs
// that koord-jobqueue knows, and for every supported queue system.
//
//	driver, err := submit.New(submit.Options{Driver: "kueue"})
//	labelled, groups, err := driver.Label(submit.Job{Queue: "team"}, object)
//
// Every function is pure: it does not change its arguments, and equal arguments give equal results.
package submit

import "time"

// Job says about an object what a queueing system has to know. The name and the namespace are those of the object. Both
// have to be final: a second attempt at a job needs a name of its own. An object with generateName in place of a name
// is an ErrInvalid if the driver names an application or a gang by it.
type Job struct {
	// Queue in which the job waits. It is the name of a LocalQueue of Kueue, of a queue of Volcano or KAI, or of an
	// ElasticQuota of Koordinator. For YuniKorn, or a tree of Koordinator, it is a path such as root.research.ray.
	Queue string
	// Quota, for the driver koord alone, is the ElasticQuota if Queue names a Queue that several quotas share.
	Quota string
	// Quotas, for the driver koord alone, are those in which the job may be admitted, in order, in place of Quota. The job
	// waits for the first. Pods get the label of the one that it is admitted in, so their templates have none.
	Quotas []string
	// NoQuota, for the driver koord alone: Queue names a Queue, and the quota is that of the namespace.
	NoQuota bool
	// User and Groups, for the driver yunikorn alone, are the identity that its quotas of users count.
	User   string
	Groups []string
	// PriorityClass of the job in its queue, for the drivers kueue and volcano. Others read the pod templates.
	PriorityClass string
	// MaxRunTime of the job, in whole seconds, for the drivers koord and kueue; zero is no bound.
	MaxRunTime time.Duration
	// NonPreemptible jobs keep what they hold.
	NonPreemptible bool
	// PodGroup, for single pods and the drivers koord and kueue, is the group that the pod is a part of.
	PodGroup *PodGroup
	// Gang, if it is set, lets the pods of the job be placed together or not at all.
	Gang *Gang
}

// PodGroup is a number of pods that are one job, such as the pods of a Dask cluster.
type PodGroup struct {
	Name string
	// Size is the number of all pods of the group.
	Size int32
}

// Metadata are labels and annotations.
type Metadata struct {
	Labels, Annotations map[string]string
}
