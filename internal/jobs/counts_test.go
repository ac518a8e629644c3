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

package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// TestAnOperatorKeepsToItsBounds: a number outside of the bounds that a job names is not the number of its pods.
func TestAnOperatorKeepsToItsBounds(t *testing.T) {
	const (
		pods   = "template: {spec: {containers: [{name: c}]}}"
		spark  = "SparkApplication.v1beta2.sparkoperator.k8s.io"
		ray    = "RayCluster.v1.ray.io"
		scales = "enableInTreeAutoscaling: true, "
	)
	executors := func(instances, bounds string) string {
		return "spec: {driver: {}, executor: {" + instances + "}, dynamicAllocation: {enabled: true" + bounds + "}}"
	}
	workers := func(cluster, bounds string) string {
		return "{" + cluster + "headGroupSpec: {" + pods + "}, " +
			"workerGroupSpecs: [{groupName: g, " + bounds + ", " + pods + "}]}"
	}
	for name, tc := range map[string]struct {
		kind, job string
		want      int32
	}{
		"executors, at least":                 {spark, executors("", ", minExecutors: 3"), 3},
		"executors that begin below":          {spark, executors("", ", minExecutors: 3, initialExecutors: 1"), 3},
		"executors that begin above":          {spark, executors("", ", minExecutors: 3, initialExecutors: 4"), 4},
		"executors, as many as without":       {spark, executors("instances: 5", ", initialExecutors: 4"), 5},
		"workers below the least":             {ray, "spec: " + workers("", "replicas: 1, minReplicas: 3"), 3},
		"workers above the most":              {ray, "spec: " + workers("", "replicas: 9, maxReplicas: 4"), 4},
		"workers between":                     {ray, "spec: " + workers("", "replicas: 3, minReplicas: 1"), 3},
		"workers of several hosts":            {ray, "spec: " + workers("", "minReplicas: 2, numOfHosts: 4"), 8},
		"workers below the least, that scale": {ray, "spec: " + workers(scales, "replicas: 1, minReplicas: 3"), 3},
		"workers above the most, that scale":  {ray, "spec: " + workers(scales, "replicas: 9, maxReplicas: 4"), 4},
		"workers of a job": {"RayJob.v1.ray.io",
			"spec: {submissionMode: HTTPMode, rayClusterSpec: " + workers("", "replicas: 1, minReplicas: 3") + "}", 3},
		"workers of a job that scale": {"RayJob.v1.ray.io",
			"spec: {submissionMode: HTTPMode, rayClusterSpec: " + workers(scales, "replicas: 9, maxReplicas: 4") + "}", 4},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := jobkind.Find(tc.kind)
			require.True(t, ok)
			sets, err := Open(kind, object(t, tc.job)).PodSets()
			require.NoError(t, err)
			require.Len(t, sets, 2)
			require.Equal(t, tc.want, sets[1].Count)
		})
	}
}
