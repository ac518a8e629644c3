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

package migrate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/quotaname"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate"
)

func FuzzFromKueue(f *testing.F)      { fuzz(f, "kueue") }
func FuzzFromYuniKorn(f *testing.F)   { fuzz(f, "yunikorn") }
func FuzzFromVolcano(f *testing.F)    { fuzz(f, "volcano") }
func FuzzFromKoordQueue(f *testing.F) { fuzz(f, "koord-queue") }

// fuzz gives a source any input. The inputs of the golden tables are the seeds.
func fuzz(f *testing.F, name string) {
	var source migrate.Source
	for _, s := range migrate.Sources {
		if s.Name == name {
			source = s
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.txt"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		for _, block := range strings.Split(string(text), "migrate\n")[1:] {
			input, _, _ := strings.Cut(block, "\n----\n")
			f.Add([]byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		objects, findings := convert(source, input)
		again, findingsAgain := convert(source, input)
		require.Equal(t, objects, again, "the same input gives the same objects")
		require.Equal(t, findings, findingsAgain)
		for _, found := range findings {
			require.NotEmpty(t, found.Message)
			require.Less(t, len(found.Object)+len(found.Field)+len(found.Message), 4096)
		}
		if name != "koord-queue" { // that takes over what is there
			checkQuotas(t, objects)
		}
	})
}

// checkQuotas: the quotas are a forest that Koordinator's webhook accepts, parents first.
func checkQuotas(t *testing.T, objects []*unstructured.Unstructured) {
	type quota struct{ min, max, left map[string]resource.Quantity }
	quotas := map[string]quota{}
	for _, object := range objects {
		_, err := json.Marshal(object)
		require.NoError(t, err)
		if object.GetKind() != "ElasticQuota" {
			continue
		}
		name, labels := object.GetName(), object.GetLabels()
		require.True(t, quotaname.Usable(name), "%q", name)
		_, taken := quotas[name]
		require.False(t, taken, "names are unique: %s", name)
		q := quota{min: amountsOf(t, object, "min"), max: amountsOf(t, object, "max"), left: amountsOf(t, object, "min")}
		require.NotEmpty(t, q.max, "a quota without max counts nothing")
		for resourceName, least := range q.min {
			most, ok := q.max[resourceName]
			require.True(t, ok, "min of %s names %s and max does not", name, resourceName)
			require.LessOrEqual(t, least.Cmp(most), 0, "min of %s: %s", name, resourceName)
			require.GreaterOrEqual(t, least.Sign(), 0)
		}
		if parent := labels["quota.scheduling.koordinator.sh/parent"]; parent != "koordinator-root-quota" {
			above, ok := quotas[parent]
			require.True(t, ok, "the quota above %s comes first", name)
			for resourceName, most := range above.max {
				own, ok := q.max[resourceName]
				require.True(t, ok, "%s limits what is above it: %s", name, resourceName)
				require.LessOrEqual(t, own.Cmp(most), 0, "max of %s: %s", name, resourceName)
			}
			require.Len(t, q.max, len(above.max), "%s", name)
			for resourceName, least := range q.min {
				left, ok := above.left[resourceName]
				require.True(t, ok, "%s is guaranteed what is guaranteed above it: %s", name, resourceName)
				left.Sub(least)
				require.GreaterOrEqual(t, left.Sign(), 0, "min of those below %s: %s", parent, resourceName)
				above.left[resourceName] = left
			}
		}
		quotas[name] = q
	}
}

func amountsOf(t *testing.T, object *unstructured.Unstructured, field string) map[string]resource.Quantity {
	texts, found, err := unstructured.NestedStringMap(object.Object, "spec", field)
	require.NoError(t, err)
	require.True(t, found)
	amounts := map[string]resource.Quantity{}
	for name, text := range texts {
		amount, err := resource.ParseQuantity(text)
		require.NoError(t, err)
		amounts[name] = amount
	}
	return amounts
}
