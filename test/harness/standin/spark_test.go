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

package standin

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// The queue asks for as many executors as Spark starts. Both rules are written apart from each other.
func TestSparkStartsAsManyExecutorsAsTheQueueAsksFor(t *testing.T) {
	kind, ok := jobkind.Find("SparkApplication.v1beta2.sparkoperator.k8s.io")
	require.True(t, ok)
	effort.Check(t, func(t *rapid.T) {
		part := func(name string, values map[string][]any) map[string]any {
			out := map[string]any{}
			for _, field := range slices.Sorted(maps.Keys(values)) {
				if value := rapid.SampledFrom(append(values[field], nil)).Draw(t, name+" "+field); value != nil {
					out[field] = value
				}
			}
			return out
		}
		numbers, texts := []any{int64(0), int64(1), int64(3)}, []any{"0", "2", "4"}
		spec := map[string]any{
			"driver":   map[string]any{},
			"executor": part("executor", map[string][]any{"instances": numbers}),
		}
		spec["dynamicAllocation"] = part("dynamicAllocation", map[string][]any{
			"enabled": {true, false}, "minExecutors": numbers, "initialExecutors": numbers,
		})
		spec["sparkConf"] = part("sparkConf", map[string][]any{
			sparkDynamic + "enabled": {"true", "false"}, "spark.executor.instances": texts,
			sparkDynamic + "minExecutors": texts, sparkDynamic + "initialExecutors": texts,
		})
		app := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		app.SetName("app")
		sets, err := jobs.Open(kind, app).PodSets()
		require.NoError(t, err)
		wanted, err := sparkExecutors(app)
		require.NoError(t, err)
		require.Len(t, sets, 2)
		require.EqualValues(t, wanted, sets[1].Count)
	})
}
