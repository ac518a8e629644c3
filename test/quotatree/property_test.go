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

package quotatree_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/quotatree"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// drawTree draws a tree of the names a to f, each once at most, with guarantees that add up.
func drawTree(t *rapid.T) map[string]any {
	names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "names")
	names = names[:rapid.IntRange(0, len(names)).Draw(t, "nodes")]
	namespaces := rapid.Permutation([]string{"n1", "n2", "n3", "n4"}).Draw(t, "namespaces")
	type node struct {
		fields map[string]any
		left   int
	}
	root := &node{fields: map[string]any{"name": "root"}, left: rapid.IntRange(0, 20).Draw(t, "min of root")}
	root.fields["max"] = map[string]any{"cpu": int64(20)}
	root.fields["min"] = map[string]any{"cpu": int64(root.left)}
	all := []*node{root}
	for _, name := range names {
		up := all[rapid.IntRange(0, len(all)-1).Draw(t, "parent of "+name)]
		least := rapid.IntRange(0, up.left).Draw(t, "min of "+name)
		up.left -= least
		n := &node{left: least, fields: map[string]any{
			"name": name, "min": map[string]any{"cpu": int64(least)},
			"max": map[string]any{"cpu": int64(rapid.IntRange(least, 20).Draw(t, "max of "+name))},
		}}
		children, _ := up.fields["children"].([]any)
		up.fields["children"] = append(children, n.fields)
		all = append(all, n)
	}
	for _, n := range all {
		if n.fields["children"] != nil || len(namespaces) == 0 {
			continue
		}
		k := rapid.IntRange(0, len(namespaces)).Draw(t, "namespaces of a leaf")
		var own []any
		for _, name := range namespaces[:k] {
			own = append(own, name)
		}
		if k > 0 {
			n.fields["namespaces"], namespaces = own, namespaces[k:]
		}
	}
	return root.fields
}

// From any tree to any other the ElasticQuotas arrive at what is asked, whatever Koordinator's webhook refuses on the
// way, and then rest.
func TestFromAnyTreeToAnyOther(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 4).Draw(rt, "trees") {
			root := drawTree(rt)
			w.setTree(runtime.DeepCopyJSONValue(root))
			w.settle(rt)
			w.compare(rt, root)
		}
	})
}

// settle reconciles until nothing changes.
func (w *world) settle(rt *rapid.T) {
	for round := 0; ; round++ {
		w.out.Reset()
		before := w.state()
		result, err := w.r.Reconcile(w.t.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "tree"}})
		require.NoError(rt, err)
		if w.state() == before {
			require.Zero(rt, result.RequeueAfter, w.out.String())
			require.Empty(rt, w.out.String(), "it rests")
			return
		}
		require.Less(rt, round, 10, "it does not come to rest: %s", w.out.String())
	}
}

func (w *world) compare(rt *rapid.T, root map[string]any) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": root}}}
	tree := &v1beta1.ElasticQuotaTree{}
	require.NoError(rt, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, tree))
	x := quotatree.Expand(tree)
	require.Empty(rt, x.Problems)
	var want, have []string
	for _, q := range x.Quotas {
		slices.Sort(q.Namespaces)
		want = append(want, fmt.Sprintf("%s below %s %s max %s min %s %v", q.Name, q.Parent,
			q.Labels[extension.LabelQuotaIsParent], text(q.Max), text(q.Min), q.Namespaces))
	}
	for _, q := range w.quotas() {
		namespaces := extension.GetAnnotationQuotaNamespaces(&q)
		slices.Sort(namespaces)
		have = append(have, fmt.Sprintf("%s below %s %s max %s min %s %v", q.Name, q.Labels[extension.LabelQuotaParent],
			q.Labels[extension.LabelQuotaIsParent], text(q.Spec.Max), text(q.Spec.Min), namespaces))
	}
	slices.Sort(want)
	slices.Sort(have)
	require.Equal(rt, want, have)
}
