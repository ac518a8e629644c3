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

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// definition is one generated CustomResourceDefinition and the name of its file.
type definition struct {
	file string
	crd  apiextensionsv1.CustomResourceDefinition
}

// deepCopies writes zz_generated.deepcopy.go into each package that asks for it.
func deepCopies(roots ...string) error {
	out := genall.OutputArtifacts{Config: crdDir}
	return generate(deepcopy.Generator{HeaderFile: headerFile}, out, roots)
}

// definitions generates the CustomResourceDefinitions of the types under roots, ordered by file name.
func definitions(roots ...string) ([]definition, error) {
	files := memory{}
	if err := generate(crd.Generator{}, files, roots); err != nil {
		return nil, err
	}
	out := make([]definition, 0, len(files))
	for name, content := range files {
		d := definition{file: name}
		if err := yaml.UnmarshalStrict(content.Bytes(), &d.crd); err != nil {
			return nil, fmt.Errorf("reading the generated %s: %w", name, err)
		}
		complete(&d.crd)
		out = append(out, d)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].file < out[j].file })
	return out, nil
}

func generate(with genall.Generator, to genall.OutputRule, roots []string) error {
	rt, err := genall.Generators{&with}.ForRoots(roots...)
	if err != nil {
		return fmt.Errorf("loading %v: %w", roots, err)
	}
	rt.OutputRules = genall.OutputRules{Default: to}
	if failed := rt.Run(); failed {
		return fmt.Errorf("generating from %v: see the messages above", roots)
	}
	return nil
}

// complete does what markers cannot say. The version annotation is dropped: it names how this
// program was built, not what it was built from, and would differ between machines.
func complete(c *apiextensionsv1.CustomResourceDefinition) {
	approved := c.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]
	c.Annotations = nil
	if approved != "" {
		c.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: approved}
	}
	for i := range c.Spec.Versions {
		s := c.Spec.Versions[i].Schema.OpenAPIV3Schema
		bound(s)
		if c.Spec.Group == schedulingv1alpha1.GroupName {
			amounts(s)
			keepReference(s.Properties["spec"].Properties["consumerRef"])
		}
		unroll(s.Properties["spec"].Properties)
	}
}

// treeDepth is the number of levels of a tree whose schema is written out.
const treeDepth = 8

// unroll writes out the schema of a node that has nodes as children, because a structural schema cannot refer to
// itself. Deeper levels are kept unchanged, and the controller validates them.
func unroll(spec map[string]apiextensionsv1.JSONSchemaProps) {
	root, ok := spec["root"]
	if !ok {
		return
	}
	keep := true
	below := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	for range treeDepth - 1 {
		node := *root.DeepCopy()
		node.Properties["children"] = childrenOf(below)
		undescribe(&node)
		below = node
	}
	children := childrenOf(below)
	children.Description = root.Properties["children"].Description
	root.Properties["children"] = children
	spec["root"] = root
}

func childrenOf(node apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Type: "array", MaxItems: ptrTo[int64](4096),
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &node},
	}
}

// undescribe drops what the same fields of the root say already.
func undescribe(node *apiextensionsv1.JSONSchemaProps) {
	node.Description = ""
	for name, p := range node.Properties {
		p.Description = ""
		node.Properties[name] = p
	}
}

// Bounds of resource lists and references, which are types of Kubernetes without markers. They are far above any
// meaningful value. Without bounds, the cost of a rule over such a field is estimated from the size of the whole
// request.
const (
	maxQuantityLength = 64
	maxResourceNames  = 64
)

// referenceLengths bounds the fields of an object reference by what the API server lets names be.
var referenceLengths = map[string]int64{
	"apiVersion": 317, "kind": 63, "name": 253, "namespace": 63, "uid": 128, "resourceVersion": 128, "fieldPath": 1024,
}

func bound(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	if s.Type == "integer" && s.Format == "int32" {
		// The API server does not enforce the format, and a reader could not decode a greater number.
		s.Minimum = orDefault(s.Minimum, math.MinInt32)
		s.Maximum = orDefault(s.Maximum, math.MaxInt32)
	}
	if s.XIntOrString && s.Pattern != "" {
		s.MaxLength = ptrTo[int64](maxQuantityLength)
	}
	_, reference := s.Properties["fieldPath"]
	for name, p := range s.Properties {
		bound(&p)
		if n, known := referenceLengths[name]; reference && known {
			p.MaxLength = ptrTo(n)
		}
		s.Properties[name] = p
	}
	if s.AdditionalProperties != nil {
		bound(s.AdditionalProperties.Schema)
		if s.AdditionalProperties.Schema.XIntOrString && s.MaxProperties == nil {
			s.MaxProperties = ptrTo[int64](maxResourceNames)
		}
	}
	if s.Items != nil {
		bound(s.Items.Schema)
	}
}

// keepReference makes the reference to the job of a unit immutable. Markers do not reach its fields, and a rule on the
// whole reference would copy the schema of all fields for each access.
func keepReference(s apiextensionsv1.JSONSchemaProps) {
	for _, name := range []string{"kind", "name", "uid"} {
		p, ok := s.Properties[name]
		if !ok {
			continue // no unit
		}
		p.XValidations = append(p.XValidations, apiextensionsv1.ValidationRule{
			Rule: "self == oldSelf", Message: "spec.consumerRef." + name + " must not change once it is set",
		})
		s.Properties[name] = p
	}
}

// amountPattern is the pattern of controller-tools for a quantity, with two restrictions. It has no minus sign, and at
// most two digits in the exponent: a number with eight takes minutes to read.
const amountPattern = `^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`

// amounts restricts the values of every resource list to amounts. Markers do not reach them, and a rule for it would
// run at every status write.
func amounts(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	for name, p := range s.Properties {
		amounts(&p)
		s.Properties[name] = p
	}
	if s.AdditionalProperties != nil {
		if of := s.AdditionalProperties.Schema; of != nil && of.XIntOrString && of.Pattern != "" {
			of.Pattern = amountPattern
			of.Minimum = ptrTo(0.0)
		}
		amounts(s.AdditionalProperties.Schema)
	}
	if s.Items != nil {
		amounts(s.Items.Schema)
	}
}

// holdsAmounts reports whether amounts has made s a list of amounts.
func holdsAmounts(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil &&
		s.AdditionalProperties.Schema.Pattern == amountPattern
}

func ptrTo[T any](v T) *T { return &v }

func orDefault[T any](p *T, v T) *T {
	if p != nil {
		return p
	}
	return &v
}

// writeDefinitions replaces the generated files of dir.
func writeDefinitions(dir string, crds []definition) error {
	for _, d := range crds {
		content, err := encode(&d.crd)
		if err != nil {
			return fmt.Errorf("writing %s: %w", d.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, d.file), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// alsoIn has the definitions serve a newer version of the same fields, and store objects in it.
func alsoIn(version string, crds []definition) []definition {
	for i := range crds {
		versions := &crds[i].crd.Spec.Versions
		newer := *(*versions)[0].DeepCopy()
		newer.Name, (*versions)[0].Storage = version, false
		*versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{newer}, *versions...)
	}
	return crds
}

func encode(c *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	raw, err := yaml.Marshal(c)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	body, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return append([]byte("# Generated from apis/ by hack/generate.sh. DO NOT EDIT.\n---\n"), body...), nil
}

// memory keeps what a generator writes.
type memory map[string]*bytes.Buffer

// Open implements genall.OutputRule.
func (m memory) Open(_ *loader.Package, path string) (io.WriteCloser, error) {
	b := &bytes.Buffer{}
	m[path] = b
	return nopCloser{b}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
