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

package priority

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestBoundOfANamespace(t *testing.T) {
	for text, want := range map[string]*int32{
		"": nil, "x": nil, "2147483648": nil, "7": ptr.To[int32](7), "-3": ptr.To[int32](-3),
	} {
		require.Equal(t, want, BoundOf(map[string]string{v1alpha1.AnnotationMaxPriority: text}), text)
	}
	require.Nil(t, BoundOf(nil))
}

func TestPrioritiesAreCompared(t *testing.T) {
	lower := ptr.To(v1alpha1.PreemptLowerPriority)
	require.True(t, Compared(&v1alpha1.QueuePreemption{WithinQueue: lower}))
	require.True(t, Compared(&v1alpha1.QueuePreemption{Reclaim: lower}))
	require.False(t, Compared(&v1alpha1.QueuePreemption{Reclaim: ptr.To(v1alpha1.PreemptAny)}))
	require.False(t, Compared(nil))
}
