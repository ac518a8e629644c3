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

package quotatree

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
)

// treeOf reads the root of a tree in YAML.
func treeOf(t *testing.T, root string) (*v1beta1.ElasticQuotaTree, error) {
	t.Helper()
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(root), &fields))
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": fields}}}
	object.SetNamespace("kube-system")
	object.SetName("tree")
	return decodeTree(object)
}

// TestExpand plays testdata/expand.txt: each input is the root of a tree, each output all that it asks for. Run with
// -rewrite to regenerate.
func TestExpand(t *testing.T) {
	datadriven.RunTest(t, "testdata/expand.txt", func(t *testing.T, d *datadriven.TestData) string {
		tree, err := treeOf(t, d.Input)
		if err != nil {
			return "unreadable: " + err.Error() + "\n"
		}
		if d.HasArg("policy") {
			policy := ""
			d.ScanArgs(t, "policy", &policy)
			tree.Labels = map[string]string{"koord-queue/queue-policy": policy}
		}
		x := Expand(tree)
		again := Expand(tree)
		require.Equal(t, x, again, "the same tree, the same answer")
		var b strings.Builder
		for i := range x.Quotas {
			print(&b, &x.Quotas[i])
		}
		for _, p := range x.Problems {
			parked := ""
			if p.Parked {
				parked = "parked: "
			}
			fmt.Fprintf(&b, "%s%s\n", parked, p.text())
		}
		if x.Keep.Len() > 0 {
			fmt.Fprintf(&b, "keep: %s\n", strings.Join(sets.List(x.Keep), " "))
		}
		return b.String()
	})
}

// print leaves out what every quota has.
func print(b *strings.Builder, q *Quota) {
	fmt.Fprintf(b, "%s (%s) below %s: max %s min %s\n", q.Name, q.Node, q.Parent, encode(q.Max), encode(q.Min))
	labels, annotations := maps.Clone(q.Labels), maps.Clone(q.Annotations)
	for _, key := range []string{LabelTree, "koord-queue/created-by", "quota.scheduling.koordinator.sh/parent"} {
		delete(labels, key)
	}
	if labels[labelAllowForceUpdate] == "true" {
		delete(labels, labelAllowForceUpdate)
	}
	delete(annotations, annotationNode)
	if annotations[annotationWeight] == encode(q.Max) {
		delete(annotations, annotationWeight)
	}
	for _, m := range []map[string]string{labels, annotations} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(b, "  %s: %s\n", key, m[key])
		}
	}
	if len(q.Namespaces) > 0 {
		fmt.Fprintf(b, "  namespaces: %s\n", strings.Join(q.Namespaces, " "))
	}
}
