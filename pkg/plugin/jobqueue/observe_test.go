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

package jobqueue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// No pod of an observed namespace is held, whatever is known of its job and its unit.
func TestPodsOfObservedNamespacesPass(t *testing.T) {
	strict := managedjobs.Jobs{Mode: managedjobs.ModeObserve, UnmanagedJobs: managedjobs.UnmanagedGate}
	w := newWorld()
	w.snapshot.consumers["waits"] = false
	for _, job := range []string{"waits", "unknown"} {
		pod := jobPod(job, quotaLabel)
		require.NotNil(t, w.gate(t, managedjobs.Jobs{}).Check(pod), job)
		require.Nil(t, w.gate(t, strict).Check(pod), job)
		w.namespaces["team"][v1alpha1.LabelMode] = "Observe"
		require.Nil(t, w.gate(t, managedjobs.Jobs{}).Check(pod), job)
		require.False(t, w.gate(t, managedjobs.Jobs{}).Admitted(pod), "it uses nothing of what is reserved")
		w.namespaces["team"][v1alpha1.LabelMode] = "Manage"
		require.NotNil(t, w.gate(t, strict).Check(pod), job)
		delete(w.namespaces["team"], v1alpha1.LabelMode)
	}
	unowned := jobPod("x", unlabelled)
	unowned.OwnerReferences = nil
	require.Nil(t, w.gate(t, strict).Check(unowned))
}
