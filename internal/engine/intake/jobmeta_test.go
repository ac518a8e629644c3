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

package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// TestWhatIsKeptOfAJobIsBounded: its author may write labels, annotations and owners of any length.
func TestWhatIsKeptOfAJobIsBounded(t *testing.T) {
	trim := TrimJobs([]string{v1alpha1.QueueNameKey, v1alpha1.LabelQuotaName})
	long, controller := strings.Repeat("x", 1<<20), true
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "j", UID: "u",
		Labels:      map[string]string{v1alpha1.LabelQuotaName: "a", "other": long},
		Annotations: map[string]string{v1alpha1.QueueNameKey: long, v1alpha1.QueuePathKey: "root.a", "other": long},
	}}
	trimmed, err := trim(meta)
	require.NoError(t, err)
	kept, ok := trimmed.(*JobMeta)
	require.True(t, ok)
	require.Equal(t, map[string]string{v1alpha1.LabelQuotaName: "a"}, kept.Labels())
	require.Equal(t, map[string]string{v1alpha1.QueueNameKey: long[:longestKept], v1alpha1.QueuePathKey: "root.a"},
		kept.Annotations())
	require.Nil(t, kept.Owner())
	again, err := trim(kept)
	require.NoError(t, err)
	require.Same(t, kept, again)

	for name, want := range map[string]bool{"w": true, long: false} {
		meta.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "argoproj.io/v1", Kind: "Workflow", Name: name, UID: "w", Controller: &controller},
		}
		trimmed, err = trim(meta)
		require.NoError(t, err)
		require.Equal(t, want, trimmed.(*JobMeta).Owner() != nil)
	}
	gone := cache.DeletedFinalStateUnknown{Key: "team/j"}
	same, err := trim(gone)
	require.NoError(t, err)
	require.Equal(t, gone, same)
}
