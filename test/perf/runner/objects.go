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

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

func groupName(i int) string { return fmt.Sprintf("group-%03d", i) }
func queueName(i int) string { return fmt.Sprintf("queue-%05d", i) }

// unitBody is a unit as the controller writes one, without a job behind it.
func unitBody(name, quota string, priority int32, cpu string) []byte {
	return encode(unitObject(name, quota, priority, cpu))
}

func unitObject(name, quota string, priority int32, cpu string) map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(),
		"kind":       "QueueUnit",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{v1alpha1.LabelQuotaName: quota}},
		"spec": map[string]any{
			"queue": quota, "priority": priority,
			"request": map[string]any{"cpu": cpu},
			"podSet": []any{map[string]any{
				"name": "main", "count": 1,
				"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
					"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}},
				}}}},
			}},
		},
	}
}

// jobSpec is a Job as a user submits it.
type jobSpec struct {
	name, quota string // no quota for ""
	suspend     bool
	pods        int
	cpu         string // of each pod
	runTime     time.Duration
	// priority is in the annotation of the queue, priorityClass in the pods; "" for none.
	priority, priorityClass string
}

func (j *jobSpec) body() []byte {
	labels := map[string]any{}
	if j.quota != "" {
		labels[v1alpha1.LabelQuotaName] = j.quota
	}
	metadata := map[string]any{"name": j.name, "labels": labels}
	if j.priority != "" {
		metadata["annotations"] = map[string]any{v1alpha1.AnnotationPriority: j.priority}
	}
	pod := map[string]any{
		"schedulerName": "koord-scheduler", "restartPolicy": "Never",
		"containers": []any{map[string]any{
			"name": "main", "image": "example.invalid/work",
			"resources": map[string]any{"requests": map[string]any{"cpu": j.cpu}},
		}},
	}
	if j.priorityClass != "" {
		pod["priorityClassName"] = j.priorityClass
	}
	return encode(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": metadata,
		"spec": map[string]any{
			"suspend": j.suspend, "backoffLimit": 0, "parallelism": j.pods, "completions": j.pods,
			"template": map[string]any{
				"metadata": map[string]any{
					"labels":      labels,
					"annotations": map[string]any{controlplane.RunTimeAnnotation: j.runTime.String()},
				},
				"spec": pod,
			},
		},
	})
}

// finishedBody is what the controller writes when the job of a unit has succeeded, as far as anybody reads it.
var finishedBody = encode(map[string]any{"status": map[string]any{
	"phase": string(v1alpha1.PhaseSucceed), "admissions": []any{}, "message": "the job succeeded",
}})

// admittedBody is as large as the status that the scheduler writes.
func admittedBody() []byte {
	const at = "2026-01-02T03:04:05Z"
	condition := func(kind, message string) map[string]any {
		return map[string]any{
			"type": kind, "status": "True", "reason": kind, "message": message, "observedGeneration": 1,
			"lastTransitionTime": at,
		}
	}
	return encode(map[string]any{"status": map[string]any{
		"phase": string(v1alpha1.PhaseDequeued), "attempts": 1, "lastAllocateTime": at, "lastUpdateTime": at,
		"admissions": []any{
			map[string]any{"name": "main", "replicas": 1, "running": 0, "resources": map[string]any{"cpu": "1"}},
		},
		"conditions": []any{
			condition(v1alpha1.ConditionQuotaReserved, "quota is reserved: cpu=1"),
			condition(v1alpha1.ConditionAdmitted, "admitted, attempt 1"),
		},
	}})
}

func encode(object any) []byte {
	raw, err := json.Marshal(object)
	if err != nil { // maps of strings and numbers
		panic(err)
	}
	return raw
}

func namespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": name, "annotations": map[string]any{v1alpha1.AnnotationMaxPriority: "1000"},
		},
	}}
}

const (
	quotasPath = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/" + unitNamespace + "/elasticquotas"
	queuesPath = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/" + v1alpha1.DefaultQueueNamespace + "/queues"
)

func quotaBody(name, parent string, isParent bool, least, most string) []byte {
	labels := map[string]any{"quota.scheduling.koordinator.sh/is-parent": fmt.Sprint(isParent)}
	if parent != "" {
		labels["quota.scheduling.koordinator.sh/parent"] = parent
	}
	return encode(map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]any{"name": name, "labels": labels},
		"spec":     map[string]any{"min": map[string]any{"cpu": least}, "max": map[string]any{"cpu": most}},
	})
}

func queueBody(name string, spec map[string]any) []byte {
	return encode(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Queue",
		"metadata": map[string]any{"name": name}, "spec": spec,
	})
}

// createQueues creates the quotas of the groups, those of the queues below them, and the queues, which otherwise the
// controller makes of the quotas.
func (r *run) createQueues(ctx context.Context) error {
	w := r.Workload
	sum := w.Quota.Min.DeepCopy()
	sum.Mul(int64(w.QueuesPerGroup))
	err := r.client.each(ctx, w.Groups, func(ctx context.Context, i int) error {
		return r.client.create(ctx, quotasPath, quotaBody(groupName(i), "", true, sum.String(), w.Quota.GroupMax.String()))
	})
	if err != nil {
		return err
	}
	err = r.client.each(ctx, w.Queues(), func(ctx context.Context, i int) error {
		parent := groupName(i / w.QueuesPerGroup)
		if err := r.client.create(ctx, quotasPath,
			quotaBody(queueName(i), parent, false, w.Quota.Min.String(), w.Quota.Max.String())); err != nil {
			return err
		}
		return r.client.create(ctx, queuesPath,
			queueBody(queueName(i), map[string]any{"queuePolicy": string(w.QueuePolicy)}))
	})
	if err == nil {
		r.screen.line(fmt.Sprintf("%d groups and %d queues are created", w.Groups, w.Queues()))
	}
	return err
}
