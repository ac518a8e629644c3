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

// Package formerkey lists the labels and annotations of the stand-alone Koord-Queue, with the effect of each in this
// project. The controller, "kubectl jobqueue doctor" and docs/operators/koord-queue.md read the list.
package formerkey

import (
	"slices"
	"strconv"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Condition of a Queue that has ignored keys. It is absent from other Queues.
const Condition = "KeysIgnored"

// Reason of that condition, of the events of other objects, and of the finding of doctor.
const Reason = "IgnoredKey"

// Object is the kind of object that has the key.
type Object string

// The objects.
const (
	Queue     Object = "Queue"
	Quota     Object = "ElasticQuota"
	Namespace Object = "Namespace"
	Job       Object = "job"
)

// Fate is what becomes of a key.
type Fate string

// The fates.
const (
	// Honoured keys mean what they meant.
	Honoured Fate = "honoured"
	// Told keys have no effect, and their object says so.
	Told Fate = "told"
	// ByKind keys are honoured for jobs of some kinds, and told for others.
	ByKind Fate = "by kind"
	// Record keys are written by Koord-Queue for itself. Nobody reads them.
	Record Fate = "record"
)

// Row is one key of one object.
type Row struct {
	Object Object
	Key    string
	Fate   Fate
	// Use says what has the effect of the key, or how it is honoured.
	Use string
	// idle values of a told key ask for nothing.
	idle []string
	// reads says which values of an honoured key are read; nil is all.
	reads func(value string) bool
}

// Values that ask for nothing.
var (
	empty = []string{""}
	off   = []string{"", "false"}
	on    = []string{"", "true"}
)

// enable is written as a label or as an annotation.
const enable = "quota-koord-queue-enable"

var table = []Row{
	{Queue, "koord-queue/wait-for-pods-running", Told, "use spec.timeouts.podsReadySeconds, which suspends a job whose " +
		"pods are not ready in time, or spec.maxAdmitted", off, nil},
	{Queue, "koord-queue/enable-queueunit-preemption", Told, "use spec.preemption.withinQueue: LowerPriority, which " +
		"suspends running jobs too", off, nil},
	{Queue, v1alpha1.AnnotationMaxDepth, Honoured, "it is spec.maxPending, a whole number of at least 1", nil, isDepth},
	{Queue, "koord-queue/queue-args", Told, "use fields of the spec", empty, nil},
	{Queue, "koord-queue/disable-show-queue-items", Told, "the status lists a bounded number of units", off, nil},
	{Queue, "koord-queue/queue-items-refresh-interval", Told, "use the argument statusRefreshInterval of the plugin " +
		"JobQueue", empty, nil},
	{Queue, enable, Told, "use spec.stopPolicy: Hold to stop a Queue", on, nil},
	{Queue, v1alpha1.AnnotationAvailableQuota, Honoured, "", nil, nil},
	{Queue, v1alpha1.AnnotationAvailableQuotaShort, Honoured, "", nil, nil},
	{Queue, v1alpha1.AnnotationPriorityThreshold, Honoured, "", nil, nil},
	{Queue, "koord-queue/quota-fullname", Record, "", nil, nil},
	{Queue, "koord-queue/parent-quota-fullname", Record, "", nil, nil},
	{Queue, "alibabacloud.com/queue-*used", Record, "use kubectl jobqueue top", nil, nil},

	{Quota, v1alpha1.LabelQueuePolicy, Honoured, "", nil, nil},
	{Quota, enable, Told, "use spec.stopPolicy: Hold of the Queue to stop it", on, nil},
	{Quota, "koord-queue/wait-for-pods-running", Told, "use spec.timeouts.podsReadySeconds of the Queue", off, nil},
	{Quota, "koord-queue/enable-queueunit-preemption", Told, "use spec.preemption.withinQueue of the Queue", off, nil},
	{Quota, v1alpha1.AnnotationMaxDepth, Told, "use spec.maxPending of the Queue", empty, nil},
	{Quota, "koord-queue/queue-args", Told, "use fields of the spec of the Queue", empty, nil},

	{Namespace, "koord-queue/available-quota-in-namespace", Told, useOfQuotas, empty, nil},
	{Namespace, v1alpha1.AnnotationAvailableQuotaShort, Told, useOfQuotas, empty, nil},
	{Namespace, "koord-queue/available-queue-in-namespace", Record, "", nil, nil},
	{Namespace, "koord-queue/available-queue", Record, "", nil, nil},

	{Job, v1alpha1.AnnotationActive, Honoured, "false is koord-queue/hold: true, which counts first", on,
		func(value string) bool { return value == "false" }},
	{Job, v1alpha1.AnnotationMaxExecutionTime, Honoured, "", nil, nil},
	{Job, v1alpha1.AnnotationPriority, Honoured, "it is bounded by koord-queue/max-priority of the namespace", nil, nil},
	{Job, v1alpha1.LabelPreemptibleFallback, ByKind, "use " + v1alpha1.LabelPreemptible + "; kinds that can be " +
		"suspended honour both", empty, nil},
	{Job, Suspend, ByKind, "use spec.suspend; kinds whose operator reads the annotation honour it", off, nil},
	{Job, "scheduling.x-k8s.io/placement", Told, "use nodeSelector or affinity of the pod template", empty, nil},
	{Job, "koord-queue/job-enqueue-timestamp", Told, "the position follows the creation of the QueueUnit", empty, nil},
	{Job, "koord-queue/job-has-enqueued", Record, "", nil, nil},
	{Job, "koord-queue/job-dequeue-timestamp", Record, "", nil, nil},
}

// Suspend is the annotation by which some operators suspend a job. The kinds of those operators name it.
const Suspend = "scheduling.x-k8s.io/suspend"

const useOfQuotas = "use the annotation quota.scheduling.koordinator.sh/namespaces of the ElasticQuota, and the verb " +
	"use on it"

// Table has a row for each key, by object.
func Table() []Row { return slices.Clone(table) }

// Ignored names the keys without effect that an object has, and what to use instead. "" if it has none. No value of the
// object is part of the text, and the table bounds its length. The kind of a job honours the keys except.
func Ignored(of Object, labels, annotations map[string]string, except ...string) string {
	var words []string
	for i := range table {
		if r := &table[i]; r.Object == of && !slices.Contains(except, r.Key) &&
			(r.ignores(labels) || r.ignores(annotations)) {
			words = append(words, r.Key+" has no effect: "+r.Use)
		}
	}
	return strings.Join(words, ". ")
}

// ignores says whether the set has the key with a value that has no effect.
func (r *Row) ignores(set map[string]string) bool {
	value, has := set[r.Key]
	switch {
	case !has || slices.Contains(r.idle, value):
		return false
	case r.Fate == Honoured:
		return r.reads != nil && !r.reads(value)
	default:
		return r.Fate == Told || r.Fate == ByKind
	}
}

// MaxPending of a Queue with the annotation koord-queue/max-depth, a whole number of at least 1. Nil without one.
func MaxPending(annotations map[string]string) *int32 {
	if n, err := strconv.ParseInt(annotations[v1alpha1.AnnotationMaxDepth], 10, 32); err == nil && n > 0 {
		depth := int32(n)
		return &depth
	}
	return nil
}

func isDepth(value string) bool {
	return MaxPending(map[string]string{v1alpha1.AnnotationMaxDepth: value}) != nil
}
