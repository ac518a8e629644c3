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

package jobplan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIgnoredKeys: a job is told when it enters the queue. No value of it is in the event.
func TestIgnoredKeys(t *testing.T) {
	s := unqueued(t).job(map[string]any{
		"koord-queue/job-enqueue-timestamp": strings.Repeat("x", 1<<16), "scheduling.x-k8s.io/suspend": "true",
	}, "metadata", "annotations")
	require.Equal(t, "create unit [Queued]; tell [IgnoredKey]", describe(s.decide()))
	note := s.decide().Do[1].(Tell).Event.Note
	require.Contains(t, note, "scheduling.x-k8s.io/suspend has no effect")
	require.NotContains(t, note, "xx")

	s.Kind.SuspendAnnotation = "scheduling.x-k8s.io/suspend"
	require.NotContains(t, s.decide().Do[1].(Tell).Event.Note, "scheduling.x-k8s.io/suspend")
}
