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

package checker

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// Resources are amounts by resource name, in thousandths of the unit.
type Resources map[string]int64

func (r Resources) add(other Resources, sign int64) {
	for name, amount := range other {
		r[name] += sign * amount
	}
}

// Quota is an ElasticQuota.
type Quota struct {
	Name, Parent string
	// Max limits the resources that it names. Used is what Koordinator counts.
	Max, Used Resources
}

// Unit is a QueueUnit.
type Unit struct {
	// Key is namespace/name.
	Key, UID     string
	Queue, Quota string
	Priority     int32
	Created      time.Time
	// Request is what it asks for, or was given in part. Held is what its status says that it holds.
	Request, Held Resources
	// Job is the UID of the consumer.
	Job   string
	Phase unit.Phase
	// Admitted: its status holds an admission. AdmittedAt is lastAllocateTime.
	Admitted   bool
	AdmittedAt time.Time
	Attempts   int64
	// Adopted: its pods were bound before anybody asked whether they fit.
	Adopted bool
	// Parked: it is not in its queue, for a reason that is its own.
	Parked bool
	// Takes: it has chosen victims, and waits for what they hold.
	Takes bool
	// Reason and Message say why it holds no quota; empty if it does, or if nobody has said so yet.
	Reason, Message string
}

// Pod is a pod of a job.
type Pod struct {
	UID, Name string
	// Job is the UID of the controlling job.
	Job     string
	Quota   string
	Created time.Time
	// Request of the pod.
	Request                    Resources
	Bound, Terminal, Succeeded bool
}

// Job is a job of any kind.
type Job struct {
	UID, Name string
	// Pods is how many pods it has.
	Pods int
	// Deciding is how many of them have to succeed; when they have, the others may be taken away. 0 means all.
	Deciding         int
	Complete, Failed bool
	// Suspended and Deleting are as its object says. A Part belongs to a job of another kind, which is queued in its
	// place.
	Suspended, Deleting, Part bool
}

func amounts(list corev1.ResourceList) Resources {
	result := Resources{}
	for name, quantity := range list {
		result[string(name)] = quantity.MilliValue()
	}
	return result
}

// QuotaOf reads an ElasticQuota.
func QuotaOf(u *unstructured.Unstructured) (Quota, error) {
	var typed struct {
		Spec struct {
			Max corev1.ResourceList `json:"max"`
		} `json:"spec"`
		Status struct {
			Used corev1.ResourceList `json:"used"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
		return Quota{}, err
	}
	return Quota{
		Name: u.GetName(), Parent: u.GetLabels()[v1alpha1.LabelQuotaParent],
		Max: amounts(typed.Spec.Max), Used: amounts(typed.Status.Used),
	}, nil
}

// queued are the reasons of units that wait in their queue; every other reason keeps a unit out of it.
var queued = []string{"", "Pending", "QuotaExceeded", "MinExceeded", "BlockedByHead", "QueueFull"}

// UnitOf reads a QueueUnit.
func UnitOf(qu *v1alpha1.QueueUnit) Unit {
	held, request := amounts(held(qu)), amounts(qu.Spec.Request)
	if len(request) == 0 {
		request = held
	}
	queueUnit := Unit{
		Key: qu.Namespace + "/" + qu.Name,
		UID: string(qu.UID),
		// Its own word, else the default queue of its quota.
		Queue: cmp.Or(qu.Spec.Queue, qu.Annotations[v1alpha1.QueueNameKey], qu.Labels[v1alpha1.QueueNameKey],
			qu.Labels[v1alpha1.LabelQuotaName]),
		Quota:    qu.Labels[v1alpha1.LabelQuotaName],
		Created:  qu.CreationTimestamp.Time,
		Request:  request,
		Held:     held,
		Phase:    unit.Phase(qu.Status.Phase),
		Attempts: qu.Status.Attempts,
	}
	queueUnit.Admitted = rulebook.Holds(queueUnit.Phase) || len(qu.Status.Admissions) > 0
	if at := qu.Status.Effective; queueUnit.Admitted && at != nil && at.Quota != "" {
		queueUnit.Quota = at.Quota // stays there, whatever quota it names since
	}
	if queueUnit.Admitted && slices.ContainsFunc(qu.Spec.PodSets, inPart) {
		queueUnit.Request = held
	}
	if qu.Spec.Priority != nil {
		queueUnit.Priority = *qu.Spec.Priority
	}
	if qu.Spec.ConsumerRef != nil {
		queueUnit.Job = string(qu.Spec.ConsumerRef.UID)
	}
	if qu.Status.LastAllocateTime != nil {
		queueUnit.AdmittedAt = qu.Status.LastAllocateTime.Time
	}
	queueUnit.Takes = qu.Status.Preemption != nil && len(qu.Status.Preemption.Holds) > 0
	queueUnit.readConditions(qu.Status.Conditions)
	return queueUnit
}

// readConditions takes what the conditions say of a unit whose phase is known.
func (u *Unit) readConditions(conditions []metav1.Condition) {
	admitted := meta.FindStatusCondition(conditions, v1alpha1.ConditionAdmitted)
	u.Adopted = admitted != nil && admitted.Reason == v1alpha1.ReasonAdopted
	reserved := meta.FindStatusCondition(conditions, v1alpha1.ConditionQuotaReserved)
	if reserved != nil && reserved.Status != metav1.ConditionTrue {
		u.Reason, u.Message = reserved.Reason, reserved.Message
	}
	u.Parked = !u.Admitted && u.Phase == unit.PhaseEnqueued && !slices.Contains(queued, u.Reason)
}

// inPart says whether a pod set may be admitted with fewer pods than it asks for.
func inPart(s v1alpha1.PodSet) bool { return s.MinCount != nil }

// held sums what a unit holds.
func held(qu *v1alpha1.QueueUnit) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, admission := range qu.Status.Admissions {
		for name, quantity := range admission.Resources {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

// PodOf reads a Pod.
func PodOf(p *corev1.Pod) Pod {
	pod := Pod{
		UID:       string(p.UID),
		Name:      p.Namespace + "/" + p.Name,
		Quota:     p.Labels[v1alpha1.LabelQuotaName],
		Created:   p.CreationTimestamp.Time,
		Request:   amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})),
		Bound:     p.Spec.NodeName != "",
		Terminal:  p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		Succeeded: p.Status.Phase == corev1.PodSucceeded,
	}
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		pod.Job = string(owner.UID)
	}
	return pod
}

// JobOf reads a Job.
func JobOf(j *batchv1.Job) Job {
	job := Job{
		UID: string(j.UID), Name: j.Namespace + "/" + j.Name, Pods: 1,
		Suspended: j.Spec.Suspend != nil && *j.Spec.Suspend, Deleting: j.DeletionTimestamp != nil,
		Part: metav1.GetControllerOfNoCopy(j) != nil,
	}
	if j.Spec.Completions != nil {
		job.Pods = int(*j.Spec.Completions)
	}
	for _, condition := range j.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			job.Complete = job.Complete || condition.Type == batchv1.JobComplete
			job.Failed = job.Failed || condition.Type == batchv1.JobFailed
		}
	}
	return job
}

// JobOfKind reads a job of another kind, of which it is known how many pods it has and how many of those decide. How it
// ended is a condition, or a word in the place where its operator writes one.
func JobOfKind(j *unstructured.Unstructured, pods, deciding int) Job {
	job := Job{UID: string(j.GetUID()), Name: j.GetNamespace() + "/" + j.GetName(), Pods: pods, Deciding: deciding}
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
			// Phase of a Workflow, JobDeploymentStatus of a RayJob, ApplicationState of a SparkApplication.
			Phase               string `json:"phase"`
			JobDeploymentStatus string `json:"jobDeploymentStatus"`
			ApplicationState    struct {
				State string `json:"state"`
			} `json:"applicationState"`
		} `json:"status"`
	}
	// An unreadable job has not ended.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(j.Object, &typed)
	words := []string{typed.Status.Phase, typed.Status.JobDeploymentStatus, typed.Status.ApplicationState.State}
	for _, condition := range typed.Status.Conditions {
		if condition.Status == metav1.ConditionTrue {
			words = append(words, condition.Type)
		}
	}
	for _, word := range words {
		switch word {
		case "Succeeded", "Complete", "Completed", "COMPLETED":
			job.Complete = true
		case "Failed", "Error", "FAILED":
			job.Failed = true
		}
	}
	return job
}
