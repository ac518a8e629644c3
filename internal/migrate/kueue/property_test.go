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

package kueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/kueue"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// entry is the quota of one ClusterQueue for one flavor and resource; -1 is without a limit.
type entry struct {
	queue, flavor, resource string
	nominal, borrow, lend   int64
}

func draw(t *rapid.T) (documents []document.Document, entries []entry) {
	limits := func(label string) int64 {
		return rapid.OneOf(rapid.Just(int64(-1)), rapid.Int64Range(0, 12)).Draw(t, label)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "queues") {
		name := fmt.Sprintf("q%d", i)
		var flavors []any
		for _, flavor := range []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "flavors")] {
			var resources []any
			for _, r := range []string{"cpu", "memory"}[:rapid.IntRange(1, 2).Draw(t, "resources")] {
				e := entry{name, flavor, r, rapid.Int64Range(0, 10).Draw(t, "nominal"), limits("borrow"), limits("lend")}
				entries = append(entries, e)
				fields := map[string]any{"name": r, "nominalQuota": e.nominal}
				if e.borrow >= 0 {
					fields["borrowingLimit"] = e.borrow
				}
				if e.lend >= 0 {
					fields["lendingLimit"] = e.lend
				}
				resources = append(resources, fields)
			}
			flavors = append(flavors, map[string]any{"name": flavor, "resources": resources})
		}
		documents = append(documents, document.Document{Content: map[string]any{
			"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"cohort": "all", "resourceGroups": []any{map[string]any{"flavors": flavors}}},
		}})
	}
	return documents, entries
}

// TestNothingIsGivenThatWasNotPromised: a ClusterQueue is guaranteed its nominal quota. It gets at most its borrowing
// limit and the lending limits of the others. The cohort has the sum of its ClusterQueues.
func TestNothingIsGivenThatWasNotPromised(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		documents, entries := draw(t)
		var out finding.List
		quotas := map[string]*unstructured.Unstructured{}
		for _, object := range kueue.Convert(documents, &out) {
			if object.GetKind() == "ElasticQuota" {
				quotas[object.GetName()] = object
			}
		}
		amount := func(quota, field, name string) int64 {
			text, _, err := unstructured.NestedString(quotas[quota].Object, "spec", field, name)
			require.NoError(t, err)
			if text == "" {
				return 0
			}
			parsed := resource.MustParse(text)
			return parsed.Value()
		}
		for _, e := range entries {
			quota := nameOf(e.queue, e.flavor, flavorsOf(entries, e.queue))
			cohort := nameOf("all", e.flavor, flavorsOf(entries, ""))
			require.Contains(t, quotas, quota)
			require.Contains(t, quotas, cohort)
			var sum, kept int64
			for _, other := range entries {
				if other.flavor == e.flavor && other.resource == e.resource {
					sum += other.nominal
					if other.queue != e.queue && other.lend >= 0 && other.lend < other.nominal {
						kept += other.nominal
					}
				}
			}
			require.Equal(t, e.nominal, amount(quota, "min", e.resource), "%v", e)
			require.Equal(t, sum, amount(cohort, "max", e.resource), "%v", e)
			most := amount(quota, "max", e.resource)
			require.GreaterOrEqual(t, most, e.nominal, "%v", e)
			require.LessOrEqual(t, most, sum-kept, "%v", e)
			if e.borrow >= 0 {
				require.LessOrEqual(t, most, e.nominal+e.borrow, "%v", e)
			}
		}
	})
}

// flavorsOf a ClusterQueue, or of all.
func flavorsOf(entries []entry, queue string) map[string]bool {
	flavors := map[string]bool{}
	for _, e := range entries {
		if queue == "" || e.queue == queue {
			flavors[e.flavor] = true
		}
	}
	return flavors
}

func nameOf(name, flavor string, of map[string]bool) string {
	if len(of) == 1 {
		return name
	}
	return name + "-" + flavor
}
