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

package v1alpha1

// Labels and annotations of the API contract; the strings are those of Koordinator and of the stand-alone Koord-Queue.
const (
	// DefaultQueueNamespace is where Queues live.
	DefaultQueueNamespace = "koord-queue"
	// DefaultRequirementPodSet names the one admission of a unit that is admitted as a whole.
	DefaultRequirementPodSet = "koord-queue/default-requirement"
	// QueueItemsActiveKey is the key of status.queueItemDetails that holds the waiting units.
	QueueItemsActiveKey = "active"

	// LabelQuotaName puts a job or pod under an ElasticQuota; see QuotaLabels.
	LabelQuotaName          = "quota.scheduling.koordinator.sh/name"
	LabelQuotaNameFallback1 = "alibabacloud.com/quota-name"
	LabelQuotaNameFallback2 = "quota.scheduling.alibabacloud.com/name"
	// AnnotationQuotaNames on a job lists the quotas in which it may be admitted, in order, comma separated. The first is
	// that of its label.
	AnnotationQuotaNames = "koord-queue/quota-names"
	// LabelPreemptible with value "false" makes a job draw on min only. The former label is read where the other is absent
	// or empty.
	LabelPreemptible         = "quota.scheduling.koordinator.sh/preemptible"
	LabelPreemptibleFallback = "quota.scheduling.alibabacloud.com/preemptible"
	// LabelManaged on a namespace that a quota takes has its jobs managed although they name neither quota nor queue.
	LabelManaged = "koord-queue/managed"
	// LabelMode on a namespace says what the queue does about its jobs: Observe or Manage. Without it the configuration of
	// managed jobs says so.
	LabelMode = "koord-queue/mode"
	// LabelQuotaParent on an ElasticQuota names its parent quota.
	LabelQuotaParent = "quota.scheduling.koordinator.sh/parent"

	// QueueNameKey (annotation or label) names the Queue of a job or unit.
	QueueNameKey = "koord-queue/queue-name"
	// QueuePathKey (annotation or label) names the quota of a job by its path, as root.organization1.ray. On a unit it is
	// the path that gave the quota.
	QueuePathKey = "koord-queue/queue-path"
	// LabelQueuePolicy on an ElasticQuota is the policy of its default Queue.
	LabelQueuePolicy = "koord-queue/queue-policy"
	// LabelCreatedBy marks objects that the controller made and may change or delete.
	LabelCreatedBy = "koord-queue/created-by"
	// CreatedByController is the value of LabelCreatedBy.
	CreatedByController = "jobqueue-controller"
	// AnnotationMaxJobs on an ElasticQuota is how many jobs may be admitted in it and in all quotas below it, a whole
	// number. The same name among the resources of spec.max means the same.
	AnnotationMaxJobs = "koord-queue/max-jobs"
	// AnnotationAvailableQuota on a Queue lists the quotas that it accepts, comma separated, or "*". The short form is
	// read where the other is absent or empty.
	AnnotationAvailableQuota      = "koord-queue/available-quota-in-queue"
	AnnotationAvailableQuotaShort = "koord-queue/available-quota"
	// AnnotationPriorityThreshold on a Queue with policy Intelligent; default 4.
	AnnotationPriorityThreshold = "koord-queue/priority-threshold"
	// AnnotationMaxDepth on a Queue is spec.maxPending where that is absent: a whole number, at least 1.
	AnnotationMaxDepth = "koord-queue/max-depth"

	// AnnotationPriority on a job is the priority of its unit, up to what it may be: see AnnotationMaxPriority.
	AnnotationPriority = "scheduling.x-k8s.io/priority"
	// AnnotationMaxPriority on a namespace bounds the priority number of its jobs (default: that of their class) and the
	// priority with which they preempt (default: 0).
	AnnotationMaxPriority = "koord-queue/max-priority"
	// AnnotationMaxExecutionTime on a job is for how many seconds it may run; see spec.maximumExecutionTimeSeconds of its
	// unit.
	AnnotationMaxExecutionTime = "scheduling.x-k8s.io/max-exec-time-seconds"
	// AnnotationGrace on a job is its grace in seconds after an eviction for others, up to spec.preemption.maxGraceSeconds
	// of its queue. Other text is no grace.
	AnnotationGrace = "koord-queue/grace-seconds"
	// AnnotationPreemptable on a job, with value "false" at its admission, keeps it from being suspended for others, if
	// its queue has spec.preemption.allowUnpreemptable.
	AnnotationPreemptable = "koord-queue/preemptable"
	// AnnotationSuspendAt on a pod is when its job will be suspended, in RFC 3339. The controller writes it.
	AnnotationSuspendAt = "koord-queue/suspend-at"
	// AnnotationCheckpointed on a pod, or on its job, is the time of its last checkpoint, in RFC 3339. After an eviction
	// it acknowledges the notice.
	AnnotationCheckpointed = "koord-queue/checkpointed"
	// OverridePrefix begins the annotations by which an operator changes a unit; the controller keeps them. It never
	// copies them from a job.
	OverridePrefix = "koord-queue/override-"
	// AnnotationOverrideQueue on a unit is the queue of the unit, in place of that of its job.
	AnnotationOverrideQueue = OverridePrefix + "queue"
	// AnnotationOverridePriority on a unit is the priority of the unit, in place of that of its job.
	AnnotationOverridePriority = OverridePrefix + "priority"
	// AnnotationHold on a job: "true" keeps it out of its queue, at its position and without quota. "false" resumes a job
	// that its owner had suspended, and is removed.
	AnnotationHold = "koord-queue/hold"
	// AnnotationActive on a job, with value "false", holds a job that has no AnnotationHold.
	AnnotationActive = "scheduling.x-k8s.io/active"
	// AnnotationResumed on a job is the UID of the unit and the attempt that it was resumed for, as UID/attempt.
	AnnotationResumed = "koord-queue/resumed"
	// AnnotationGangGroup on a unit lists the gangs of its namespace that are admitted together, and AnnotationGangs its
	// own: sorted, comma separated. The controller writes both.
	AnnotationGangGroup = "koord-queue/gang-group"
	AnnotationGangs     = "koord-queue/gangs"
	// AnnotationJobDefaults on a unit has the defaults that its job was read with. The controller writes it, and keeps it
	// while the unit holds quota.
	AnnotationJobDefaults = "koord-queue/job-defaults"
	// AnnotationHeartbeat on a unit without consumer is when its creator last said that it uses the unit, in RFC 3339.
	AnnotationHeartbeat = "koord-queue/heartbeat"
	// AnnotationRelatedQueueUnit on a pod names its unit as namespace/name.
	AnnotationRelatedQueueUnit = "koord-queue/related-queueunit"
	// AnnotationPodUpdateKeys on an AdmissionCheck lists the labels and annotations that its controller may write into
	// pods, comma separated: keys, or domains such as example.com/*.
	AnnotationPodUpdateKeys = "koord-queue/pod-update-keys"
	// AnnotationRelatedPodSet on a pod names its pod set.
	AnnotationRelatedPodSet = "koord-queue/related-podset-name"
	// AnnotationAdopted on a unit: its job had bound pods when the queue first saw it. The unit begins as admitted, and
	// its job is not suspended.
	AnnotationAdopted = "koord-queue/adopted"
	// AnnotationUnsuspendable on a unit says that its job cannot be suspended, although others of its kind can.
	AnnotationUnsuspendable = "koord-queue/unsuspendable"
	// AnnotationSuspendedBy on a job records that the controller, and nobody else, suspended it.
	AnnotationSuspendedBy = "koord-queue/suspended-by"
	// AnnotationTemplateAdditions on a job records which keys resuming wrote into its pod templates, to take them back.
	AnnotationTemplateAdditions = "koord-queue/template-additions"
	// AnnotationMinParallelism on a Job of Kubernetes is the least number of pods that it may be admitted with when there
	// is no room for all. Kueue's annotation means the same.
	AnnotationMinParallelism      = "koord-queue/min-parallelism"
	AnnotationMinParallelismKueue = "kueue.x-k8s.io/job-min-parallelism"
	// AnnotationPartialAdmission on a job, with value "true", permits partial admission by a minimum of pods that the job
	// has anyway, as a RayCluster does.
	AnnotationPartialAdmission = "koord-queue/partial-admission"
	// AnnotationWholeCounts on a job records the numbers of pods that it asks for while it has those that it was admitted
	// with.
	AnnotationWholeCounts = "koord-queue/whole-counts"
	// AnnotationParkedReason on a unit says why the controller made it inactive: its job names no one quota, or
	// cannot be read. The controller writes the same reason into condition QuotaReserved; the scheduler leaves
	// that condition alone while the annotation is there.
	AnnotationParkedReason = "koord-queue/parked-reason"
	// AnnotationDoubts on a unit says why its job may never run, a line each, as it was when the job was queued.
	AnnotationDoubts = "koord-queue/doubts"
)

// ProvisioningController is the controllerName of AdmissionChecks that ask a cluster autoscaler for capacity, with
// parameters of kind ProvisioningRequestConfig. jobqueue-controller answers them.
const ProvisioningController = "koord-queue/provisioning-request"

// PlacementController is the controllerName of AdmissionChecks that the scheduler answers: a job is released when all
// its pods find a node.
const PlacementController = "koord-queue/placement"

// ReservationController is the controllerName of AdmissionChecks that create one Reservation of Koordinator for each
// pod. A job is released when all of them are on nodes. jobqueue-controller answers them.
const ReservationController = "koord-queue/reservation"

// QuotaLabels name the quota of a job or unit; the first that is there and not empty counts.
var QuotaLabels = [...]string{LabelQuotaName, LabelQuotaNameFallback1, LabelQuotaNameFallback2}
