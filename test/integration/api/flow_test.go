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

package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// TestWritesOfTheQueueStandBehindPeople asks the API server in which order it serves requests.
func TestWritesOfTheQueueStandBehindPeople(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	const (
		units = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/any/queueunits/u/status"
		jobs  = "/apis/batch/v1/namespaces/any/jobs"
		event = "/apis/events.k8s.io/v1/namespaces/any/events"
		lease = "/apis/coordination.k8s.io/v1/namespaces/any/leases/l"
	)
	for name, c := range map[string]struct {
		who          controlplane.Identity
		method, path string
		want         string
	}{
		"the scheduler writes status":     {controlplane.SchedulerIdentity, http.MethodPatch, units, "koord-jobqueue"},
		"the controller resumes a job":    {controlplane.ControllerIdentity, http.MethodPatch, jobs + "/j", "koord-jobqueue"},
		"the controller writes an event":  {controlplane.ControllerIdentity, http.MethodPost, event, "koord-jobqueue"},
		"the controller renews its lease": {controlplane.ControllerIdentity, http.MethodPut, lease, "koord-jobqueue-leases"},
		"the scheduler renews its lease":  {controlplane.SchedulerIdentity, http.MethodPut, lease, "koord-jobqueue-leases"},
		"the controller lists":            {controlplane.ControllerIdentity, http.MethodGet, jobs, "service-accounts"},
		"the scheduler writes of its own": {controlplane.SchedulerIdentity, http.MethodPost, event, "service-accounts"},
		"another user creates a job":      {controlplane.KWOKIdentity, http.MethodPost, jobs, "global-default"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := rest.HTTPClientFor(server.RESTConfig(c.who))
			require.NoError(t, err)
			ctx := t.Context()
			// The API server reads the configuration some time after it was written.
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				schema, err := admin.FlowcontrolV1().FlowSchemas().Get(ctx, c.want, metav1.GetOptions{})
				require.NoError(t, err)
				request, err := http.NewRequestWithContext(ctx, c.method, server.RESTConfig(c.who).Host+c.path, http.NoBody)
				require.NoError(t, err)
				response, err := client.Do(request)
				require.NoError(t, err)
				_ = response.Body.Close()
				require.Equal(t, string(schema.UID), response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))
			}, 30*time.Second, 100*time.Millisecond)
		})
	}
}
