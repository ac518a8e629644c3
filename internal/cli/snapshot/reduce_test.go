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

package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const unit = `
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata:
  name: train
  namespace: secret-team
  labels: {quota.scheduling.koordinator.sh/name: secret-quota, owner: secret-person}
  annotations: {koord-queue/queue-name: secret-queue, koord-queue/gangs: "secret-a,secret-b", note: secret,
    koord-queue/queue-path: root.secret-company.secret-quota}
  managedFields: [{manager: secret}]
spec:
  queue: secret-queue
  priority: 7
  consumerRef: {kind: Job, name: secret-job, namespace: secret-team, uid: secret-uid}
  podSet:
  - name: secret-set
    count: 2
    template:
      metadata: {labels: {job-name: secret, quota.scheduling.koordinator.sh/name: secret-quota}}
      spec:
        containers:
        - {name: secret-container, env: [{name: PASSWORD, value: secret}], resources: {requests: {cpu: 1}}}
status:
  phase: Enqueued
  message: secret
  admissions: [{name: secret-set, replicas: 2}]
  effective: {queue: secret-queue, quota: secret-quota}
  conditions: [{type: QuotaReserved, status: "False", reason: QuotaExceeded, message: secret,
	lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

func reduce(t *testing.T, key []byte) (*unstructured.Unstructured, string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(unit), &u.Object))
	require.NoError(t, Reduce(u, key))
	text, err := yaml.Marshal(u)
	require.NoError(t, err)
	return u, string(text)
}

// TestHashedNamesTellNothing: no text of a person is left, equal names have equal hashes, and amounts stay.
func TestHashedNamesTellNothing(t *testing.T) {
	u, text := reduce(t, []byte("key"))
	require.NotContains(t, text, "secret")
	queue, _, _ := unstructured.NestedString(u.Object, "spec", "queue")
	require.NotEmpty(t, queue)
	require.Equal(t, queue, u.GetAnnotations()["koord-queue/queue-name"])
	for _, kept := range []string{"priority: 7", "QuotaExceeded", "cpu:", "count: 2"} {
		require.Contains(t, text, kept)
	}
	_, other := reduce(t, []byte("another key"))
	require.NotContains(t, other, queue)
}

// TestTemplatesAreReduced also where names stay.
func TestTemplatesAreReduced(t *testing.T) {
	_, text := reduce(t, nil)
	require.NotContains(t, text, "PASSWORD")
	require.NotContains(t, text, "secret-person")
	require.Contains(t, text, "secret-queue")
}
