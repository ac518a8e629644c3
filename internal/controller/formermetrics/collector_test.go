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

package formermetrics

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// reader has these units, and quotas with their parents.
type reader struct {
	client.Reader
	units  []v1alpha1.QueueUnit
	quotas map[string]string
	err    error
}

func (r *reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *v1alpha1.QueueUnitList:
		l.Items = r.units
	case *metav1.PartialObjectMetadataList:
		for name, parent := range r.quotas {
			l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{v1alpha1.LabelQuotaParent: parent},
			}})
		}
	}
	return r.err
}

const units = `
- metadata: {namespace: one, name: waits}
  spec: {queue: q, consumerRef: {kind: Job}}
- metadata: {namespace: one, name: told}
  spec: {consumerRef: {kind: Job}}
  status: {phase: Enqueued, effective: {queue: q, quota: leaf}}
- metadata: {namespace: one, name: on-hold}
  spec: {queue: q, active: false, consumerRef: {kind: Job}}
- metadata: {namespace: one, name: in-back-off}
  spec: {queue: q, consumerRef: {kind: RayJob}}
  status: {phase: TimeoutBackoff}
- metadata: {namespace: one, name: runs, labels: {quota.scheduling.koordinator.sh/name: other}}
  spec: {queue: q, consumerRef: {kind: Job}}
  status:
    phase: Running
    effective: {queue: q, quota: leaf}
    admissions: [{name: a, resources: {cpu: 1500m}}, {name: b, resources: {cpu: 500m, memory: 1Ki}}]
- metadata: {namespace: two, name: by-hand, labels: {quota.scheduling.koordinator.sh/name: round}}
  status: {phase: Dequeued, admissions: [{name: a, resources: {cpu: "1"}}]}
- metadata: {namespace: two, name: over}
  status: {phase: Succeed}
`

func TestValuesOfFormerMetrics(t *testing.T) {
	elected := make(chan struct{})
	r := &reader{quotas: map[string]string{"leaf": "top", "top": "", "round": "round"}}
	require.NoError(t, yaml.Unmarshal([]byte(units), &r.units))
	c := &Collector{Reader: r, Elected: elected}
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(""))) // another replica leads
	close(elected)
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP queueunits_in_active_queue Number of units that wait in a queue.
# TYPE queueunits_in_active_queue gauge
queueunits_in_active_queue{queue="q"} 2
# HELP queueunits_in_backoff_queue Number of units of a queue that are in back-off.
# TYPE queueunits_in_backoff_queue gauge
queueunits_in_backoff_queue{queue="q"} 1
# HELP queueunits_by_job_type Number of units of a kind of jobs.
# TYPE queueunits_by_job_type gauge
queueunits_by_job_type{namespace="one",type="Job"} 4
queueunits_by_job_type{namespace="one",type="RayJob"} 1
# HELP dequeued_quota_usage_by_namespace Amount that admitted units of a namespace hold.
# TYPE dequeued_quota_usage_by_namespace gauge
dequeued_quota_usage_by_namespace{namespace="one",resource="cpu"} 2
dequeued_quota_usage_by_namespace{namespace="one",resource="memory"} 1024
dequeued_quota_usage_by_namespace{namespace="two",resource="cpu"} 1
`), "queueunits_in_active_queue", "queueunits_in_backoff_queue", "queueunits_by_job_type",
		"dequeued_quota_usage_by_namespace"))
	sums := sum(r.units, map[string]string{"leaf": "top", "top": "", "round": "round"})
	require.InDelta(t, 2, sums[series{ofQuota, "leaf", "cpu"}], 1e-9)
	require.InDelta(t, 2, sums[series{ofQuota, "top", "cpu"}], 1e-9)
	require.InDelta(t, 1024, sums[series{ofQuota, "top", "memory"}], 1e-9)
	require.Zero(t, sums[series{ofQuota, "other", "cpu"}], "the quota that it was admitted in counts")

	r.err = errors.New("no cache")
	require.ErrorContains(t, testutil.CollectAndCompare(c, strings.NewReader("")), "no cache")
}
