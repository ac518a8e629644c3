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
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Pods of a queue that preempts by priority get the label that keeps other preemption away. Reclaim, which is on by
// default, compares no priorities, and leaves Koordinator's preemption as it is.
func TestPodsOfAQueueThatPreempts(t *testing.T) {
	for name, tc := range map[string]struct {
		preemption *v1alpha1.QueuePreemption
		want       string
	}{
		"says nothing": {nil, ""},
		"protects its jobs, and preempts none": {&v1alpha1.QueuePreemption{
			Reclaim: ptr.To(v1alpha1.PreemptNever), MinRunTimeSeconds: ptr.To[int32](60),
		}, ""},
		"reclaims": {&v1alpha1.QueuePreemption{Reclaim: ptr.To(v1alpha1.PreemptAny)}, ""},
		"preempts within itself": {
			&v1alpha1.QueuePreemption{WithinQueue: ptr.To(v1alpha1.PreemptLowerPriority)}, "true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(), &v1alpha1.Queue{
				ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultQueueNamespace, Name: "a"},
				Spec:       v1alpha1.QueueSpec{Preemption: tc.preemption},
			})
			w.settle()
			w.admit()
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
			require.Equal(t, tc.want, w.job().Spec.Template.Labels[extension.LabelDisablePreemptible])
		})
	}
}
