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

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const crdDir = "../../../manifests/base/crd"

// applyLimit is the size above which `kubectl apply` can no longer keep its annotation of the last applied object.
const applyLimit = 262144

// definition is a CustomResourceDefinition, prepared as the API server prepares it.
type definition struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func definitions(t *testing.T) map[string]definition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdDir, "scheduling.x-k8s.io_*.yaml"))
	require.NoError(t, err)
	out := map[string]definition{}
	for _, file := range files {
		kind, d := prepare(t, file)
		out[kind] = d
	}
	require.Contains(t, out, "Queue")
	require.Contains(t, out, "QueueUnit")
	return out
}

func readCRD(t testing.TB, file string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Less(t, len(raw), applyLimit/2, "%s leaves no room for the annotation of kubectl apply", file)
	var v1 apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(raw, &v1))
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var crd apiextensions.CustomResourceDefinition
	require.NoError(t,
		apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil))
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	return &crd
}

func prepare(t testing.TB, file string) (string, definition) {
	t.Helper()
	crd := readCRD(t, file)
	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}
	s, err := schema.NewStructural(props.OpenAPIV3Schema)
	require.NoError(t, err)
	require.NoError(t, defaulting.PruneDefaults(s))
	v, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	require.NoError(t, err)
	rules := cel.NewValidator(s, true, celconfig.PerCallLimit)
	return crd.Spec.Names.Kind, definition{structural: s, schema: v, rules: rules}
}

// admit does with obj what the API server does before it stores it, in its order.
// old is nil at creation.
func (d definition) admit(obj, old map[string]any) field.ErrorList {
	pruning.Prune(obj, d.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, d.structural)
	defaulting.Default(obj, d.structural)
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateCustomResource(nil, obj, d.schema)
	} else {
		errs = validation.ValidateCustomResourceUpdate(nil, obj, old, d.schema)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, obj)...)
	if len(errs) > 0 {
		// The API server does not run rules over an object that does not match its schema.
		return errs
	}
	var oldSelf any
	if old != nil {
		oldSelf = old
	}
	errs, _ = d.rules.Validate(context.Background(), nil, d.structural, obj, oldSelf, celconfig.RuntimeCELCostBudget)
	return errs
}

// TestDefinitionsAreValid runs the checks of the API server on applied definitions, with its estimate of the cost of
// rules.
func TestDefinitionsAreValid(t *testing.T) {
	for _, name := range []string{"queues", "queueunits"} {
		t.Run(name, func(t *testing.T) {
			crd := readCRD(t, filepath.Join(crdDir, "scheduling.x-k8s.io_"+name+".yaml"))
			require.Empty(t, crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd))
			require.NotNil(t, statusSubresource(crd), "status is a subresource")
		})
	}
}

func statusSubresource(crd *apiextensions.CustomResourceDefinition) *apiextensions.CustomResourceSubresourceStatus {
	s := crd.Spec.Subresources
	if s == nil {
		s = crd.Spec.Versions[0].Subresources
	}
	if s == nil {
		return nil
	}
	return s.Status
}

// TestRules runs testdata/rules; test/integration/api runs the same cases against a real API server.
func TestRules(t *testing.T) {
	type ruleCase struct {
		Name    string         `json:"name"`
		Kind    string         `json:"kind"`
		Before  map[string]any `json:"before"`
		Change  map[string]any `json:"change"`
		Status  bool           `json:"status"`
		Refused string         `json:"refused"`
	}
	raw, err := os.ReadFile("testdata/rules/rules.yaml")
	require.NoError(t, err)
	var cases []ruleCase
	require.NoError(t, yaml.UnmarshalStrict(raw, &cases))
	crds := definitions(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			obj := normalise(t, c.Before)
			obj["apiVersion"], obj["kind"] = schedulingv1alpha1.SchemeGroupVersion.String(), c.Kind
			obj["metadata"] = map[string]any{"name": "case", "namespace": "default"}
			d := crds[c.Kind]
			errs := d.admit(obj, nil)
			if c.Change != nil {
				require.Empty(t, errs, "before the change")
				changed := merge(t, obj, c.Change)
				errs = d.admit(changed, obj)
			}
			if c.Refused == "" {
				require.Empty(t, errs)
				return
			}
			require.NotEmpty(t, errs)
			require.Contains(t, errs.ToAggregate().Error(), c.Refused)
		})
	}
}

// TestEveryRuleIsRefusedOnce keeps the table of cases complete: no rule without a case that it refuses.
func TestEveryRuleIsRefusedOnce(t *testing.T) {
	cases, err := os.ReadFile("testdata/rules/rules.yaml")
	require.NoError(t, err)
	for _, d := range definitions(t) {
		walk(d.structural, func(s *schema.Structural) {
			for _, rule := range s.XValidations {
				require.NotEmpty(t, rule.Message, "rule %q has no message of its own", rule.Rule)
				require.Contains(t, string(cases), "refused: "+rule.Message, "no case is refused by the rule %q", rule.Rule)
			}
		})
	}
}

func walk(s *schema.Structural, visit func(*schema.Structural)) {
	if s == nil {
		return
	}
	visit(s)
	for _, p := range s.Properties {
		walk(&p, visit)
	}
	walk(s.Items, visit)
	if s.AdditionalProperties != nil {
		walk(s.AdditionalProperties.Structural, visit)
	}
}

// TestPredecessorObjectsAreKept applies objects of the stand-alone Koord-Queue. The API server refuses none and drops
// only fields of other versions. Our types read and write them without loss.
func TestPredecessorObjectsAreKept(t *testing.T) {
	files, err := filepath.Glob("testdata/koord-queue/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	crds := definitions(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			var obj map[string]any
			require.NoError(t, yaml.Unmarshal(raw, &obj))
			obj = normalise(t, obj)
			sent := normalise(t, obj)
			kind := obj["kind"].(string)
			require.Empty(t, crds[kind].admit(obj, nil))

			if filepath.Base(file) == "queueunit-unknown-fields.yaml" {
				requireUnknownDropped(t, obj)
			} else {
				requireContains(t, "", obj, sent)
			}
			if kind == "Queue" {
				requireRoundTrip[schedulingv1alpha1.Queue](t, obj)
				return
			}
			requireRoundTrip[schedulingv1alpha1.QueueUnit](t, obj)
		})
	}
}

func requireUnknownDropped(t *testing.T, obj map[string]any) {
	t.Helper()
	spec := obj["spec"].(map[string]any)
	require.NotContains(t, spec, "shape")
	podSet := spec["podSet"].([]any)[0].(map[string]any)
	require.NotContains(t, podSet, "colour")
	require.Contains(t, podSet["template"].(map[string]any)["spec"], "notYetInvented", "templates are kept as written")
	require.NotContains(t, obj["status"], "mood")
}

// requireContains fails unless everything in want is in got; got may have more, by defaults.
func requireContains(t *testing.T, path string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		m, isMap := got.(map[string]any)
		require.True(t, isMap, path)
		for k, v := range want {
			require.Contains(t, m, k, path)
			requireContains(t, path+"."+k, m[k], v)
		}
	case []any:
		l, isList := got.([]any)
		require.True(t, isList, path)
		require.Len(t, l, len(want), path)
		for i := range want {
			requireContains(t, path+"[]", l[i], want[i])
		}
	default:
		require.Equal(t, want, got, path)
	}
}

// requireRoundTrip decodes obj into T strictly, encodes and decodes it again, and compares.
func requireRoundTrip[T any](t *testing.T, obj map[string]any) {
	t.Helper()
	raw, err := json.Marshal(obj)
	require.NoError(t, err)
	var first, second T
	require.NoError(t, yaml.UnmarshalStrict(raw, &first))
	raw, err = json.Marshal(&first)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &second))
	require.True(t, equality.Semantic.DeepEqual(first, second))
}

// TestNewUnitIsEnqueued pins the default that saves a write for every unit that waits.
func TestNewUnitIsEnqueued(t *testing.T) {
	obj := map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{"name": "a", "namespace": "default"},
	}
	require.Empty(t, definitions(t)["QueueUnit"].admit(obj, nil))
	require.Equal(t, map[string]any{"phase": string(schedulingv1alpha1.PhaseEnqueued), "attempts": int64(0)},
		obj["status"])
}

// TestStoredAmountsStay: a unit with an amount that a former definition accepted can still be changed elsewhere.
func TestStoredAmountsStay(t *testing.T) {
	d := definitions(t)["QueueUnit"]
	unit := func(priority int64, cpu, held string) map[string]any {
		return map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"metadata": map[string]any{"name": "a", "namespace": "default"},
			"spec":     map[string]any{"priority": priority, "request": map[string]any{"cpu": cpu}},
			"status": map[string]any{"attempts": priority, "admissions": []any{
				map[string]any{"name": "main", "replicas": int64(1), "running": int64(0), "resources": map[string]any{"cpu": held}},
			}},
		}
	}
	update := func(obj, old map[string]any) field.ErrorList {
		both := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: d.structural})
		return validation.ValidateCustomResourceUpdate(nil, obj, old, d.schema, validation.WithRatcheting(both))
	}
	stored := unit(1, "-0", "-0")
	require.Len(t, validation.ValidateCustomResource(nil, stored, d.schema), 2, "neither could be stored now")
	require.Empty(t, update(unit(2, "-0", "-0"), stored))
	require.Empty(t, update(unit(2, "0", "0"), stored))
	require.Len(t, update(unit(1, "-1", "-1"), stored), 2)
}

// BenchmarkRules runs the rules as a status write does, for units that hold more and more amounts: they must not cost
// more.
func BenchmarkRules(b *testing.B) {
	_, d := prepare(b, filepath.Join(crdDir, "scheduling.x-k8s.io_queueunits.yaml"))
	for _, size := range []struct{ podSets, amounts int }{{1, 1}, {2, 4}, {8, 6}} {
		unit := func() map[string]any {
			amounts := map[string]any{}
			for i := range size.amounts {
				amounts[fmt.Sprintf("example.test/%d", i)] = "100m"
			}
			var admissions []any
			for i := range size.podSets {
				admissions = append(admissions, map[string]any{"name": fmt.Sprint(i), "replicas": int64(1), "resources": amounts})
			}
			return map[string]any{
				"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "a"},
				"spec":   map[string]any{"request": amounts},
				"status": map[string]any{"phase": "Dequeued", "attempts": int64(1), "admissions": admissions},
			}
		}
		obj, old := unit(), unit()
		b.Run(fmt.Sprintf("podSets=%d/amounts=%d", size.podSets, size.amounts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				both := cel.WithRatcheting(common.NewCorrelatedObject(obj, old, &model.Structural{Structural: d.structural}))
				errs, _ := d.rules.Validate(b.Context(), nil, d.structural, obj, old, celconfig.RuntimeCELCostBudget, both)
				require.Empty(b, errs)
			}
		})
	}
}

func merge(t *testing.T, obj, patch map[string]any) map[string]any {
	t.Helper()
	o, err := json.Marshal(obj)
	require.NoError(t, err)
	p, err := json.Marshal(patch)
	require.NoError(t, err)
	merged, err := jsonpatch.MergePatch(o, p)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(merged, &out))
	return out
}

// normalise copies obj with numbers as the API server decodes them.
func normalise(t *testing.T, obj map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(obj)
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &out))
	if out == nil {
		out = map[string]any{}
	}
	return out
}
