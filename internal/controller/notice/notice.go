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

// Package notice tells the pods of an evicted job when the job will be suspended. It is pure: it has neither a client
// nor a clock.
//
// A job that is evicted for others may run on for a grace, so that it can write a checkpoint. Its running pods get a
// notice: the time at which the job will be suspended. The job is suspended as soon as all of them have acknowledged.
//
// The end of the grace depends on the eviction in the status of the unit, and on the annotation of the job. The bound
// of its queue is the most. So the end is the same after a restart, and no later edit moves it beyond the bound.
package notice

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// Pod is a pod that runs.
type Pod struct {
	Name, ResourceVersion string
	// SuspendAt is the time in its notice, Checkpointed that of its last checkpoint; zero if it has none.
	SuspendAt, Checkpointed time.Time
}

// PodOf reads a pod. Text that is no time counts as none.
func PodOf(pod metav1.Object) Pod {
	return Pod{
		Name: pod.GetName(), ResourceVersion: pod.GetResourceVersion(),
		SuspendAt:    timeIn(pod, v1alpha1.AnnotationSuspendAt),
		Checkpointed: timeIn(pod, v1alpha1.AnnotationCheckpointed),
	}
}

func timeIn(object metav1.Object, annotation string) time.Time {
	at, err := time.Parse(time.RFC3339, object.GetAnnotations()[annotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// Notice is that a job will be suspended.
type Notice struct {
	// Evicted is when its unit was evicted, SuspendAt when it is suspended at the latest.
	Evicted, SuspendAt time.Time
	// Reason and Message are those of the eviction.
	Reason, Message string
}

// Time of the suspension, as pods and events have it.
func (n *Notice) Time() string { return n.SuspendAt.UTC().Format(time.RFC3339) }

// Patch is the merge patch that gives a pod the notice, or takes away the one that it has if there is none.
func (n *Notice) Patch(pod Pod) ([]byte, error) {
	annotations := map[string]any{v1alpha1.AnnotationSuspendAt: nil, extension.AnnotationSoftEviction: nil}
	if n != nil {
		soft, err := json.Marshal(extension.SoftEvictionSpec{
			Timestamp: &metav1.Time{Time: n.Evicted}, Initiator: v1alpha1.CreatedByController, Reason: n.Reason,
		})
		if err != nil {
			return nil, err
		}
		annotations[v1alpha1.AnnotationSuspendAt], annotations[extension.AnnotationSoftEviction] = n.Time(), string(soft)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": pod.ResourceVersion, "annotations": annotations,
	}})
}

// Of an eviction, for a job with this grace; nil if the job is suspended now.
func Of(eviction *metav1.Condition, job *jobs.Job, grace time.Duration, now time.Time) *Notice {
	n := &Notice{
		Evicted: eviction.LastTransitionTime.Time, SuspendAt: eviction.LastTransitionTime.Add(grace),
		Reason: eviction.Reason, Message: eviction.Message,
	}
	if !now.Before(n.SuspendAt) || n.acknowledged(timeIn(job.Object, v1alpha1.AnnotationCheckpointed)) {
		return nil
	}
	return n
}

// Grace of a job is what it asks for, up to the bound of its queue. The job is read with the defaults of its kind.
func Grace(job *jobs.Job, most time.Duration) time.Duration {
	seconds, err := strconv.ParseInt(job.Object.GetAnnotations()[v1alpha1.AnnotationGrace], 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, most)
}

// acknowledged by a checkpoint of this time. Times of evictions are whole seconds.
func (n *Notice) acknowledged(checkpoint time.Time) bool { return !checkpoint.Before(n.Evicted) }

// Acknowledged says whether all of these pods have acknowledged. Untold are those that have not, and lack the notice.
func (n *Notice) Acknowledged(pods []Pod) (untold []Pod, all bool) {
	all = true
	for _, pod := range pods {
		if n.acknowledged(pod.Checkpointed) {
			continue
		}
		all = false
		if !pod.SuspendAt.Equal(n.SuspendAt) {
			untold = append(untold, pod)
		}
	}
	return untold, all
}
