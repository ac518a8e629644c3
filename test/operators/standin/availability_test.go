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

package standin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// What an API server serves decides which kinds can be managed: those that are there, with the field that suspends.
func TestAvailability(t *testing.T) {
	cp, _ := start(t, controlplane.Options{})
	found, err := discovery.NewDiscoveryClientForConfig(cp.RESTConfig(controlplane.ControllerIdentity))
	require.NoError(t, err)
	availability := func(name string) controller.Availability {
		kind, ok := jobs.Find(name)
		require.True(t, ok, name)
		served := &controller.Served{Discovery: found, Schemas: openapi3.NewRoot(found.OpenAPIV3())}
		is, why, err := served.Availability(kind)
		if err == nil {
			require.Equal(t, is == controller.Available, why == "")
		}
		return is // nothing, while the API server does not say
	}
	for name, want := range map[string]controller.Availability{
		"Job.v1.batch":                           controller.Available,
		"Deployment.v1.apps":                     controller.Available,
		"RayJob.v1.ray.io":                       controller.Available,
		"MPIJob.v2beta1.kubeflow.org":            controller.Available,
		"MPIJob.v1.kubeflow.org":                 controller.NotInstalled,
		"JobSet.v1alpha2.jobset.x-k8s.io":        controller.NotInstalled,
		"TrainJob.v1alpha1.trainer.kubeflow.org": controller.NotInstalled,
	} {
		require.Eventually(t, func() bool { return availability(name) == want }, waitFor, poll, name)
	}
	const spark = "SparkApplication.v1beta2.sparkoperator.k8s.io"
	require.Eventually(t, func() bool { return availability(spark) == controller.Available }, waitFor, poll)
	older := files(t, "../../harness/standin/crds/older/*.yaml")["sparkapplications.yaml"]
	require.NoError(t, cp.ApplyObjects(t.Context(), older))
	require.Eventually(t, func() bool { return availability(spark) == controller.Unsupported }, waitFor, poll)
}
