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

package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// `kubectl delete --cascade=orphan` of a running job: its pods kept their quota without end (S2).
func TestPodsThatADeletedJobLeavesEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		mode managedjobs.LeftPods
		ends []string
	}{"Keep": {"", nil}, "End": {managedjobs.LeftPodsEnd, []string{"left"}}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob())
			var err error
			w.r.Options.Predicate, err = managedjobs.NewPredicate(managedjobs.Jobs{LeftPods: tc.mode})
			require.NoError(t, err)
			w.settle()
			w.admit()
			w.settle()
			w.jobStatus(runs(2))
			w.settle()
			job := w.job()
			for name, edit := range map[string]func(*corev1.Pod){
				"left":           func(p *corev1.Pod) { p.OwnerReferences = nil },
				"owned":          func(*corev1.Pod) {},
				"pending":        func(p *corev1.Pod) { p.OwnerReferences, p.Spec.NodeName = nil, "" },
				"ended":          func(p *corev1.Pod) { p.OwnerReferences, p.Status.Phase = nil, corev1.PodSucceeded },
				"of other units": func(p *corev1.Pod) { p.OwnerReferences, p.Annotations = nil, nil },
			} {
				pod := podOf(job, "node")
				pod.Name, pod.Labels = name, nil
				pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "team/j"}
				edit(pod)
				require.NoError(t, w.base.Create(context.Background(), pod))
			}
			require.NoError(t, w.base.Delete(context.Background(), job))
			w.settle()
			require.Nil(t, w.unit())
			pods := &corev1.PodList{}
			require.NoError(t, w.base.List(context.Background(), pods, client.InNamespace("team")))
			var ended []string
			for i := range pods.Items {
				if pods.Items[i].Spec.ActiveDeadlineSeconds != nil {
					ended = append(ended, pods.Items[i].Name)
				}
			}
			require.Equal(t, tc.ends, ended)
		})
	}
}
