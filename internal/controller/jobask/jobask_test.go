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

package jobask

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// TestProblem puts a job right step by step. The first problem of the list counts. The unit is inactive as long as
// there is one.
func TestProblem(t *testing.T) {
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  namespace: team
  labels: {quota.scheduling.koordinator.sh/name: a}
  annotations: {koord-queue/hold: "true", scheduling.x-k8s.io/max-exec-time-seconds: "0"}
spec:
  suspend: true
  template:
    metadata: {labels: {quota.scheduling.koordinator.sh/name: b}}
    spec:
      terminationGracePeriodSeconds: 60
      containers: [{name: c, resources: {requests: {cpu: 500m}}}]
`), &object.Object))
	kind, ok := jobkind.Find("Job.v1.batch")
	require.True(t, ok)
	in := Input{Terms: Terms{
		Creation: &podrequest.Creation{}, PathError: errors.New("no quota has the path"), Schedulers: []string{"ours"},
		Termination: 10,
	}}
	set := func(value string, fields ...string) {
		require.NoError(t, unstructured.SetNestedField(object.Object, value, fields...))
	}
	for _, step := range []struct {
		reason string
		mend   func()
	}{
		{"QuotaMismatch", func() { set("a", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName) }},
		{"InvalidRequest", func() { set("60", "metadata", "annotations", v1alpha1.AnnotationMaxExecutionTime) }},
		{"UnknownQuota", func() { in.Terms.PathError = nil }},
		{"OtherScheduler", func() { in.Terms.Schedulers = nil }},
		{"SlowTermination", func() { in.Terms.Termination = 60 }},
		{"HeldByOwner", func() { set("false", "metadata", "annotations", v1alpha1.AnnotationHold) }},
	} {
		in.Job = jobs.Open(kind, object)
		ask := Of(in)
		require.NotNil(t, ask.Problem(), step.reason)
		require.Equal(t, step.reason, ask.Problem().Reason)
		require.Equal(t, step.reason, ask.Unit.Annotations[v1alpha1.AnnotationParkedReason])
		require.False(t, *ask.Unit.Spec.Active)
		step.mend()
	}
	in.Job = jobs.Open(kind, object)
	ask := Of(in)
	require.Nil(t, ask.Problem())
	require.Nil(t, ask.Unit.Spec.Active)
	require.Equal(t, "a", ask.Unit.Labels[v1alpha1.LabelQuotaName])
}
