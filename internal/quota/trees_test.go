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

package quota

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	k8sfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/features"
	utilfeature "github.com/koordinator-sh/koordinator/pkg/util/feature"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func inTree(tree string) quotaOption {
	return func(q *v1alpha1.ElasticQuota) { q.Labels[extension.LabelQuotaTreeID] = tree }
}

// treeTop is the quota at the top of a tree. Its annotation has the total of the tree, which Koordinator's controller
// of quota profiles computes from the nodes of the profile.
func treeTop(tree, total string) *v1alpha1.ElasticQuota {
	return elasticQuota(tree+"-top", total, total, inTree(tree), isParent, func(q *v1alpha1.ElasticQuota) {
		q.Labels[extension.LabelQuotaIsRoot] = "true"
		raw, _ := json.Marshal(cpu(total))
		q.Annotations = map[string]string{extension.AnnotationTotalResource: string(raw)}
	})
}

// newForest has 100 cpus on nodes: 30 for the tree east, 20 for the tree west, and the rest for the default tree. Each
// has one leaf that may use all of it.
func newForest(t *testing.T) *world {
	t.Helper()
	restore := utilfeature.SetFeatureGateDuringTest(t, k8sfeature.DefaultMutableFeatureGate, features.MultiQuotaTree, true)
	t.Cleanup(restore)
	w := newWorld(t, newRealPlugin(t))
	w.setNode("node", cpu("100"), false)
	w.setQuota(elasticQuota("here", "0", "100"), false)
	for tree, total := range map[string]string{"east": "30", "west": "20"} {
		w.setQuota(treeTop(tree, total), false)
		w.setQuota(elasticQuota(tree, "0", "100", inTree(tree), under(tree+"-top")), false)
	}
	w.quiet()
	return w
}

// ask submits a job of one pod.
func (w *world) ask(name, quota, amount string) *worldJob {
	w.now = w.now.Add(1e9)
	j := &worldJob{size: cpu(amount)}
	j.unit = unit.Unit{
		Key: "default/" + name, UID: name, Quota: quota, Queue: "priority", Created: w.now, Active: true,
		Request: toList(cpu(amount)), Pods: 1,
	}
	w.submit(j)
	w.quiet()
	return j
}

func (w *world) total(quota string) int64 {
	w.t.Helper()
	found, gone := w.adapter.Observe([]string{quota})
	if len(gone) > 0 {
		w.t.Fatalf("%s is gone", quota)
	}
	levels := map[string]admission.Quota{}
	for _, q := range found {
		levels[q.Name] = q
	}
	at := levels[quota]
	for at.Parent != "" {
		at = levels[at.Parent]
	}
	amount, limited := at.Limit.Get("cpu")
	if !limited {
		w.t.Fatalf("%s does not end in a root: %v", quota, found)
	}
	return amount / 1000
}

func (w *world) whyNot(j *worldJob) unit.Reason {
	reason, _, _ := w.state.Why(j.unit.Key)
	return reason
}

func TestATreeHasTheTotalOfItsAnnotationAndTheDefaultTreeTheRest(t *testing.T) {
	w := newForest(t)
	require.EqualValues(t, 30, w.total("east"))
	require.EqualValues(t, 20, w.total("west"))
	require.EqualValues(t, 50, w.total("here"))

	w.setNode("more", cpu("40"), false)
	w.quiet()
	require.EqualValues(t, 30, w.total("east"), "nodes reach a tree through its annotation only")
	require.EqualValues(t, 90, w.total("here"))
}

func TestTheTotalOfEachTreeIsCompared(t *testing.T) {
	w := newForest(t)
	moved := func(change func()) bool {
		require.False(t, w.adapter.TotalMoved())
		change()
		moved := w.adapter.TotalMoved()
		w.allDirty = true
		w.quiet()
		return moved
	}
	require.False(t, moved(func() { w.ask("e1", "east", "30") }))
	require.True(t, moved(func() { w.live.GetGroupQuotaManagerForTree("").UpdateClusterTotalResource(cpu("1")) }))
	require.True(t, moved(func() { w.live.GetGroupQuotaManagerForTree("east").UpdateClusterTotalResource(cpu("1")) }))
}

func TestTreesDoNotCompete(t *testing.T) {
	w := newForest(t)
	east := w.ask("e1", "east", "30")
	require.True(t, east.admitted)
	require.False(t, w.ask("e2", "east", "1").admitted, "its own tree is full")
	west := w.ask("w1", "west", "20")
	require.True(t, west.admitted, "another tree is not")
	here := w.ask("h1", "here", "50")
	require.True(t, here.admitted)
	require.False(t, w.ask("h2", "here", "1").admitted, "the default tree has lost what the others have")
	for _, j := range []*worldJob{east, west, here} {
		w.createPods(j, false)
	}
	for name, p := range w.pods {
		require.Empty(t, w.schedule(p), name)
	}
	w.quiet()
	require.Empty(t, w.state.Audit().Ledger())
	w.finish(west)
	w.quiet()
	require.Equal(t, unit.ReasonQuotaExceeded, w.whyNot(w.jobs["default/e2"]),
		"what ends in one tree frees nothing in another")
}

func TestATotalThatAloneChangesIsFollowed(t *testing.T) {
	for _, adapterFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("the adapter first: %v", adapterFirst), func(t *testing.T) {
			w := newForest(t)
			job := w.ask("e1", "east", "40")
			require.Equal(t, unit.ReasonExceedsMax, w.whyNot(job))
			other := w.ask("h1", "here", "45")
			require.True(t, other.admitted)

			top := w.quotas["east-top"].DeepCopy()
			top.Spec.Max, top.Spec.Min = cpu("60"), cpu("30")
			w.setQuota(top, adapterFirst)
			w.quiet()
			require.False(t, job.admitted, "max is no total")
			raw, err := json.Marshal(cpu("45"))
			require.NoError(t, err)
			top = top.DeepCopy()
			top.Annotations[extension.AnnotationTotalResource] = string(raw)
			w.setQuota(top, adapterFirst)
			w.quiet()
			require.True(t, job.admitted)
			require.EqualValues(t, 35, w.total("here"))
			require.False(t, w.ask("h2", "here", "1").admitted, "the default tree is over its total now")
		})
	}
}

func TestATreeThatGoesAndComesBack(t *testing.T) {
	w := newForest(t)
	running := w.ask("e1", "east", "20")
	require.True(t, running.admitted)
	w.createPods(running, false)
	require.Empty(t, w.schedule(w.pods["e1-0"]))
	waiting := w.ask("e2", "east", "20")
	require.Equal(t, unit.ReasonQuotaExceeded, w.whyNot(waiting))

	leaf, top := w.quotas["east"], w.quotas["east-top"]
	w.deleteQuota("east", false)
	w.quiet()
	require.Equal(t, unit.ReasonUnknownQuota, w.whyNot(waiting))
	w.deleteQuota("east-top", false)
	w.quiet()
	require.Equal(t, unit.ReasonUnknownQuota, w.whyNot(waiting))
	require.EqualValues(t, 80, w.total("here"), "what the tree had is the default tree's again")

	w.setQuota(top, false)
	w.quiet()
	require.Equal(t, unit.ReasonUnknownQuota, w.whyNot(waiting), "its quota is not there yet")
	w.setQuota(leaf, false)
	w.quiet()
	require.Equal(t, unit.ReasonQuotaExceeded, w.whyNot(waiting),
		"what runs still counts, though ElasticQuota has not heard of it again")
	require.EqualValues(t, 50, w.total("here"))
	w.finish(running)
	w.quiet()
	require.True(t, waiting.admitted)
}

func TestATreeWithoutItsTopIsUnknown(t *testing.T) {
	w := newForest(t)
	top := w.quotas["east-top"]
	w.deleteQuota("east-top", false)
	w.quiet()
	job := w.ask("e1", "east", "10")
	require.Equal(t, unit.ReasonUnknownQuota, w.whyNot(job))
	pod := w.newPod("p", "east", "", cpu("1"), false).pod
	w.live.OnPodAdd(pod)
	require.NotEmpty(t, w.live.refuses(testContext, pod), "ElasticQuota has nowhere to count it either")

	// The new manager of the tree hears of the leaf when the leaf changes.
	w.setQuota(top, false)
	w.quiet()
	require.Equal(t, unit.ReasonUnknownQuota, w.whyNot(job))
	leaf := w.quotas["east"].DeepCopy()
	leaf.Annotations = map[string]string{extension.AnnotationRuntime: "{}"}
	w.setQuota(leaf, false)
	w.quiet()
	require.True(t, job.admitted)
}

// The feature is off: a tree's label means nothing, and all quotas share the nodes.
func TestWithoutTheFeatureThereIsOneTree(t *testing.T) {
	w := newWorld(t, newRealPlugin(t))
	w.setNode("node", cpu("100"), false)
	w.setQuota(treeTop("east", "30"), false)
	w.setQuota(elasticQuota("east", "0", "100", inTree("east"), under("east-top")), false)
	w.quiet()
	require.EqualValues(t, 100, w.total("east"))
}
