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
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
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

// TestSparkStartsWithTheGreatest: fields of the application go before the configuration of Spark. With dynamic
// allocation Spark starts the greatest of three numbers. An application that names none needs one executor at its first
// task.
func TestSparkStartsWithTheGreatest(t *testing.T) {
	kind, ok := jobkind.Find("SparkApplication.v1beta2.sparkoperator.k8s.io")
	require.True(t, ok)
	const on = "spark.dynamicAllocation.enabled: 'true'"
	for _, tc := range []struct {
		name, spec string
		want       int32
	}{
		{"nothing", "executor: {}", 1},
		{"instances", "executor: {instances: 3}", 3},
		{"instances of the configuration", "executor: {}, sparkConf: {spark.executor.instances: '3'}", 3},
		{"instances of both", "executor: {instances: 2}, sparkConf: {spark.executor.instances: '3'}", 2},
		{"no instances", "executor: {instances: 0}", 0},
		{"switched off", "executor: {instances: 2}, dynamicAllocation: {enabled: false, minExecutors: 4}", 2},
		{"not switched on", "executor: {instances: 2}, dynamicAllocation: {minExecutors: 4}", 2},
		{"dynamic", "executor: {}, dynamicAllocation: {enabled: true}", 1},
		{"dynamic, none at first", "executor: {}, dynamicAllocation: {enabled: true, initialExecutors: 0}", 1},
		{"minimum", "executor: {}, dynamicAllocation: {enabled: true, minExecutors: 2}", 2},
		{"initial", "executor: {}, dynamicAllocation: {enabled: true, minExecutors: 2, initialExecutors: 5}", 5},
		{"initial below the minimum",
			"executor: {}, dynamicAllocation: {enabled: true, minExecutors: 4, initialExecutors: 2}", 4},
		{"instances above both",
			"executor: {instances: 7}, dynamicAllocation: {enabled: true, minExecutors: 2, initialExecutors: 5}", 7},
		{"instances below both", "executor: {instances: 1}, dynamicAllocation: {enabled: true, minExecutors: 2}", 2},
		{"configured instances above both",
			"executor: {}, dynamicAllocation: {enabled: true}, sparkConf: {spark.executor.instances: '6'}", 6},
		{"switched on by the configuration", "executor: {instances: 2}, sparkConf: {" + on + "}", 2},
		{"all of the configuration", "executor: {}, sparkConf: {" + on + `,
			spark.dynamicAllocation.minExecutors: '2', spark.dynamicAllocation.initialExecutors: '5'}`, 5},
		{"configuration without a switch", "executor: {}, sparkConf: {spark.dynamicAllocation.minExecutors: '5'}", 1},
		{"fields that are off do not count", "executor: {}, dynamicAllocation: {enabled: false, minExecutors: 9}, " +
			"sparkConf: {" + on + ", spark.dynamicAllocation.minExecutors: '2'}", 2},
		{"a field before the configuration", "executor: {}, dynamicAllocation: {enabled: true, minExecutors: 2}, " +
			"sparkConf: {spark.dynamicAllocation.minExecutors: '9'}", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sets, err := Open(kind, object(t, "spec: {driver: {}, "+tc.spec+"}")).PodSets()
			require.NoError(t, err)
			require.Len(t, sets, 2)
			require.Equal(t, tc.want, sets[1].Count)
		})
	}
	for _, text := range []string{"-1", "many", "1e3", "99999999999999999999", ""} {
		_, err := Open(kind, object(t, "spec: {driver: {}, executor: {}, sparkConf: {spark.executor.instances: '"+
			text+"'}}")).PodSets()
		require.ErrorIs(t, err, podtemplate.ErrMalformed, text)
	}
}

// TestExecutorsThatHaveToBeReady: with dynamic allocation Spark may give back all executors but the minimum.
func TestExecutorsThatHaveToBeReady(t *testing.T) {
	kind, ok := jobkind.Find("SparkApplication.v1beta2.sparkoperator.k8s.io")
	require.True(t, ok)
	for spec, want := range map[string]int64{
		"executor: {}":             2,
		"executor: {instances: 3}": 4,
		"executor: {instances: 3}, dynamicAllocation: {minExecutors: 2}":                                           4,
		"executor: {instances: 3}, dynamicAllocation: {enabled: true}":                                             1,
		"executor: {instances: 3}, dynamicAllocation: {enabled: true, minExecutors: 2}":                            3,
		"executor: {}, sparkConf: {spark.executor.instances: '3'}":                                                 4,
		"executor: {}, sparkConf: {spark.dynamicAllocation.enabled: 'true'}":                                       1,
		"executor: {}, dynamicAllocation: {enabled: true}, sparkConf: {spark.dynamicAllocation.minExecutors: '2'}": 3,
	} {
		require.Equal(t, want, kind.All.Number(object(t, "spec: {driver: {}, "+spec+"}").Object), spec)
	}
}
