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

package operators_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The API server decides which kinds can be managed: those that it serves, with the field that suspends.
func TestAvailability(t *testing.T) {
	c := start(t, "availability", controlplane.Options{})
	t.Cleanup(func() { _ = c.Stop() })
	require.NoError(t, c.ApplyStandInCRDs(t.Context()))
	index, err := served.New(c.RESTConfig(controlplane.ControllerIdentity), clock.RealClock{})
	require.NoError(t, err)
	availability := func(name string) served.Availability {
		kind, ok := jobkind.Find(name)
		require.True(t, ok, name)
		require.NoError(t, index.Look())
		answer := index.Kinds([]jobkind.Kind{*kind})[0]
		if answer.Err == nil {
			require.Equal(t, answer.Availability == served.Available, answer.Reason == "")
		}
		return answer.Availability // nothing, while the API server does not say
	}
	for name, want := range map[string]served.Availability{
		"Job.v1.batch":                           served.Available,
		"Deployment.v1.apps":                     served.Available,
		"Workflow.v1alpha1.argoproj.io":          served.Available,
		"MPIJob.v2beta1.kubeflow.org":            served.Available,
		"MPIJob.v1.kubeflow.org":                 served.NotInstalled,
		"JobSet.v1alpha2.jobset.x-k8s.io":        served.NotInstalled,
		"TrainJob.v1alpha1.trainer.kubeflow.org": served.NotInstalled,
	} {
		require.Eventually(t, func() bool { return availability(name) == want }, soon, pace, name)
	}
	const spark = "SparkApplication.v1beta2.sparkoperator.k8s.io"
	require.Eventually(t, func() bool { return availability(spark) == served.Available }, soon, pace)
	older, err := os.ReadFile("../harness/standin/crds/older/sparkapplications.yaml")
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), older))
	require.Eventually(t, func() bool { return availability(spark) == served.Unsupported }, soon, pace)
}
