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

package notice

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestPodOf(t *testing.T) {
	pod := &metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}
	require.Equal(t, Pod{Name: "p", ResourceVersion: "7"}, PodOf(pod))
	pod.Annotations = map[string]string{
		v1alpha1.AnnotationSuspendAt: "soon", v1alpha1.AnnotationCheckpointed: "2026-01-02T03:04:05.5+00:00",
	}
	require.Zero(t, PodOf(pod).SuspendAt)
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC), PodOf(pod).Checkpointed.UTC())
}
