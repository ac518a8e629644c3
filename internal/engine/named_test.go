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

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// Which unit a pod names follows from what is managed, which changes while pods are there.
func TestPodsAreFoundByTheGroupThatTheyNameNow(t *testing.T) {
	r := ready(t, 10)
	pod := podFor("p", "", "4")
	pod.Labels = map[string]string{v1alpha1.LabelQuotaName: testQuota}
	pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: testNamespace + "/other"}
	r.drive.FeedPod(pod, false, false)
	r.step()
	require.Equal(t, 1, r.engine.pods.Naming(testNamespace+"/other"))

	m, err := managedjobs.Parse("kinds: [Pod.v1.]")
	require.NoError(t, err)
	groups, err := managedjobs.NewPredicate(m)
	require.NoError(t, err)
	before := r.engine.facts.managed.Swap(groups)
	plain := pod.DeepCopy()
	plain.Annotations = nil
	r.drive.FeedPod(plain, false, false)
	r.step()
	require.Zero(t, r.engine.pods.Naming(testNamespace+"/other"))
	require.Equal(t, 1, r.engine.pods.Naming(testNamespace+"/p-pods"))

	r.engine.facts.managed.Store(before)
	r.engine.pods.NameAgain()
	require.Zero(t, r.engine.pods.Naming(testNamespace+"/p-pods"))
	r.engine.facts.managed.Store(groups)
	r.engine.pods.NameAgain()
	require.Equal(t, 1, r.engine.pods.Naming(testNamespace+"/p-pods"))
	r.drive.FeedPod(plain, true, false)
	r.step()
	require.Zero(t, r.engine.pods.Naming(testNamespace+"/p-pods"), "nothing is left of a pod that went")
}
