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

// Package defaultqueue creates a default Queue for each ElasticQuota. It has the name of its quota.
package defaultqueue

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
)

// defaultQueuePriority of Queues that the controller makes, as in the stand-alone Koord-Queue.
const defaultQueuePriority int32 = 1000

// unqueuedQuotas are levels of Koordinator itself: no job is charged to them by name.
var unqueuedQuotas = sets.New("koordinator-root-quota", "koordinator-system-quota")

// observation is all that a decision on one default Queue depends on.
type observation struct {
	// Namespace of queues, and Name of the queue and of its quotas.
	Namespace, Name string
	// Quotas are the ElasticQuotas of this name, in any namespace.
	Quotas []metav1.PartialObjectMetadata
	// Queue is nil when there is none.
	Queue *v1alpha1.Queue
	// Reclaim of a Queue that is created; empty is Never.
	Reclaim v1alpha1.PreemptionPolicy
}

// plan is what to do about one default Queue; at most one of Create, Patch and Delete is set.
type plan struct {
	Create, Patch, Delete *v1alpha1.Queue
	// Refused is a policy that the quota asks for and that no Queue can have; it is told on Quota. Which policies the
	// scheduler knows it says itself, in the condition of the Queue.
	Refused string
	Quota   *metav1.PartialObjectMetadata
}

func (p *plan) writes() bool { return p.Create != nil || p.Patch != nil || p.Delete != nil }

// planFor a default queue. A Queue that a person made is neither changed nor deleted. Of a default queue, the
// controller sets the policy from the label of the quota. People may set everything else, and also the policy if the
// quota has no label.
func planFor(o observation) plan {
	quota := firstQuota(o.Quotas)
	ours := o.Queue != nil && o.Queue.Labels[v1alpha1.LabelCreatedBy] == v1alpha1.CreatedByController
	if unqueuedQuotas.Has(o.Name) || quota == nil {
		if ours && o.Queue.DeletionTimestamp == nil {
			return plan{Delete: o.Queue}
		}
		return plan{}
	}
	if o.Queue != nil && !ours {
		return plan{}
	}
	var p plan
	policy := v1alpha1.QueuePolicy(quota.Labels[v1alpha1.LabelQueuePolicy])
	if policy != "" && !policy.WellFormed() {
		p.Refused, p.Quota = string(policy), quota
		policy = ""
	}
	switch {
	case o.Queue == nil:
		p.Create = defaultQueue(o.Namespace, o.Name, policy)
		if o.Reclaim != "" && o.Reclaim != v1alpha1.PreemptNever {
			p.Create.Spec.Preemption = &v1alpha1.QueuePreemption{Reclaim: &o.Reclaim}
		}
	case policy != "" && o.Queue.Spec.QueuePolicy != policy:
		p.Patch = o.Queue.DeepCopy()
		p.Patch.Spec.QueuePolicy = policy
	}
	return p
}

// firstQuota is the oldest of the quotas that stay, by name of the namespace among those of one age.
func firstQuota(quotas []metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	var first *metav1.PartialObjectMetadata
	for i := range quotas {
		q := &quotas[i]
		if q.DeletionTimestamp != nil {
			continue
		}
		if first == nil || q.CreationTimestamp.Before(&first.CreationTimestamp) ||
			q.CreationTimestamp.Equal(&first.CreationTimestamp) && q.Namespace < first.Namespace {
			first = q
		}
	}
	return first
}

func defaultQueue(namespace, name string, policy v1alpha1.QueuePolicy) *v1alpha1.Queue {
	if policy == "" {
		policy = v1alpha1.PolicyPriority
	}
	priority := defaultQueuePriority
	return &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController},
		},
		Spec: v1alpha1.QueueSpec{QueuePolicy: policy, Priority: &priority},
	}
}

func refusedPolicy(policy string) *event.Event {
	return event.Warning("UnknownPolicy", "Queue",
		fmt.Sprintf("label %s: %q is not the name of a policy; the queue keeps its policy",
			v1alpha1.LabelQueuePolicy, event.Short(policy)))
}
