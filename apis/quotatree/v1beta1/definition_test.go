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

package v1beta1_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
)

// TestDefinition: the API server accepts the definition, and the definition keeps every field of a tree. The Go types
// read and write the tree without loss, even below the levels whose schema is written out.
func TestDefinition(t *testing.T) {
	raw, err := os.ReadFile("../../../manifests/components/elasticquotatree/scheduling.sigs.k8s.io_elasticquotatrees.yaml")
	require.NoError(t, err)
	require.Less(t, len(raw), 262144/2, "it leaves no room for the annotation of kubectl apply")
	var v1 apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(raw, &v1))
	require.NotEmpty(t, v1.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], "the group is protected")
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var crd apiextensions.CustomResourceDefinition
	require.NoError(t,
		apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil))
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	require.Empty(t, crdvalidation.ValidateCustomResourceDefinition(t.Context(), &crd))

	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}
	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	require.NoError(t, err)
	validator, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	require.NoError(t, err)

	text, err := os.ReadFile("testdata/sample.yaml")
	require.NoError(t, err)
	sample, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	var object map[string]any
	require.NoError(t, json.Unmarshal(sample, &object))
	require.Empty(t, validation.ValidateCustomResource(nil, object, validator))
	pruning.Prune(object, structural, true)
	kept, err := json.Marshal(object)
	require.NoError(t, err)
	require.JSONEq(t, string(sample), string(kept))

	var tree v1beta1.ElasticQuotaTree
	require.NoError(t, json.Unmarshal(sample, &tree))
	back, err := json.Marshal(map[string]any{
		"apiVersion": tree.APIVersion, "kind": tree.Kind,
		"metadata": map[string]any{"name": tree.Name, "namespace": tree.Namespace}, "spec": tree.Spec,
	})
	require.NoError(t, err)
	require.JSONEq(t, string(sample), string(back))
}
