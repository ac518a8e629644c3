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

package placement

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// oracle asks the default profile of kube-scheduler about one pod at a time, and binds it. It makes a snapshot for each
// question, and shares nothing with the placer.
type oracle struct {
	*cache.Snapshot
	ctx       context.Context
	framework framework.Framework
	nodes     []*v1.Node
	pods      []*v1.Pod
}

func newOracle(t *testing.T) *oracle {
	o := &oracle{Snapshot: cache.NewEmptySnapshot(), ctx: t.Context()}
	defaults, err := latest.Default()
	require.NoError(t, err)
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	o.framework, err = runtime.NewFramework(o.ctx, plugins.NewInTreeRegistry(), &defaults.Profiles[0],
		runtime.WithSnapshotSharedLister(o), runtime.WithInformerFactory(factory), runtime.WithParallelism(1))
	require.NoError(t, err)
	factory.Start(o.ctx.Done())
	factory.WaitForCacheSync(o.ctx.Done())
	return o
}

// reasons are counts of nodes by reason, and the names of the nodes that take the pod.
func (o *oracle) reasons(t require.TestingT, p *v1.Pod) (reasons map[string]int, fits sets.Set[string]) {
	*o.Snapshot = *cache.NewSnapshot(o.pods, o.nodes)
	reasons, fits = map[string]int{}, sets.New[string]()
	state := framework.NewCycleState()
	result, status, _ := o.framework.RunPreFilterPlugins(o.ctx, state, p)
	require.True(t, status.IsSuccess())
	require.True(t, result.AllNodes())
	infos, err := o.List()
	require.NoError(t, err)
	for _, n := range infos {
		status := o.framework.RunFilterPlugins(o.ctx, state, p, n)
		if status.IsSuccess() {
			fits.Insert(n.Node().Name)
			continue
		}
		for _, reason := range status.Reasons() {
			reasons[reason]++
		}
	}
	return reasons, fits
}

func (o *oracle) bind(p *v1.Pod, node string) {
	p.Spec.NodeName = node
	o.pods = append(o.pods, p)
}

// next is a pod of a set that no other pod is equal to.
func (o *oracle) next(set PodSet) *v1.Pod {
	p := set.Template.DeepCopy()
	p.Name = fmt.Sprintf("pod-%d", len(o.pods))
	p.UID = types.UID(p.Name)
	return p
}

// holds binds the pods of an answer one by one. If the answer is no, the next pod of the set finds no node, for the
// same reasons.
func (o *oracle) holds(t require.TestingT, a Answer, sets ...PodSet) {
	byName := map[string]PodSet{}
	left := map[string]int{}
	for _, s := range sets {
		byName[s.Name], left[s.Name] = s, s.Count
	}
	for _, placed := range a.Placed {
		for range placed.Count {
			p := o.next(byName[placed.Set])
			reasons, fits := o.reasons(t, p)
			require.True(t, fits.Has(placed.Node), "%s does not take a pod of %s: %v", placed.Node, placed.Set, reasons)
			o.bind(p, placed.Node)
		}
		left[placed.Set] -= placed.Count
	}
	if a.Fits {
		for name, n := range left {
			require.Zero(t, n, "pods of %s without a node", name)
		}
		return
	}
	short := a.Shortage
	require.Equal(t, short.Count-short.Placed, left[short.Set])
	require.Positive(t, left[short.Set])
	reasons, fits := o.reasons(t, o.next(byName[short.Set]))
	require.Empty(t, fits, "nodes for %s", short.Set)
	require.Equal(t, reasons, short.Reasons)
	require.Equal(t, len(o.nodes), short.Nodes)
}

// firstFit binds all pods of a set, each to the first node that takes it, and says whether all were bound.
func (o *oracle) firstFit(t require.TestingT, set PodSet) bool {
	for range set.Count {
		p := o.next(set)
		_, fits := o.reasons(t, p)
		if fits.Len() == 0 {
			return false
		}
		o.bind(p, sets.List(fits)[0])
	}
	return true
}

// drawAmounts draws amounts of which about half are none.
func drawAmounts(t *rapid.T, most int) (amounts []string) {
	for _, name := range []string{"cpu", "memory", "example.com/gpu"} {
		if rapid.Bool().Draw(t, name) {
			amounts = append(amounts, name, fmt.Sprint(rapid.IntRange(0, most).Draw(t, "amount")))
		}
	}
	return amounts
}

func drawNode(t *rapid.T, name string) *v1.Node {
	n := node(name, append(drawAmounts(t, 8), "pods", fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "pods")))...)
	for _, key := range []string{"zone", "disk"} {
		if rapid.IntRange(0, 4).Draw(t, key) > 0 {
			labelled(n, key, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, key))
		}
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind of node") {
	case 0, 1:
		tainted(n)
	case 2:
		n.Spec.Unschedulable = true
	case 3:
		delete(n.Labels, v1.LabelHostname)
	}
	return n
}

var topologies = []string{v1.LabelHostname, "zone"}

// drawPod draws a pod that may have terms towards pods of its set and of others.
func drawPod(t *rapid.T, name string, most int) *v1.Pod {
	p := pod(name, drawAmounts(t, most)...)
	p.Labels["app"] = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app")
	other, key := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "other"), rapid.SampledFrom(topologies).Draw(t, "topology")
	if rapid.IntRange(0, 4).Draw(t, "other namespace") == 0 {
		p.Namespace = "other"
	}
	if rapid.IntRange(0, 2).Draw(t, "tolerates") == 0 {
		p.Spec.Tolerations = []v1.Toleration{{Key: "team", Operator: v1.TolerationOpExists}}
	}
	if rapid.IntRange(0, 3).Draw(t, "selects") == 0 {
		selecting(p, "disk", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "disk"))
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind of pod") {
	case 0, 1:
		hostPort(p)
	case 2, 3:
		away(p, other, key)
	case 4:
		away(p, other, key)
		terms := p.Spec.Affinity.PodAntiAffinity
		terms.RequiredDuringSchedulingIgnoredDuringExecution = append(
			terms.RequiredDuringSchedulingIgnoredDuringExecution, term(p.Labels["app"], topologies[1]))
	case 5:
		near(p, other, key)
	case 6:
		spread(p, key)
	}
	return p
}

func drawSets(t *rapid.T, prefix string) (all []PodSet) {
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		all = append(all, set(drawPod(t, fmt.Sprint(prefix, i), 3), rapid.IntRange(1, 6).Draw(t, "count")))
	}
	return all
}

// TestAnswersHold: the default profile of kube-scheduler accepts the pods of each answer one by one, together with
// earlier promises. If the answer is no, the profile refuses the next pod for the reasons in the answer.
func TestAnswersHold(t *testing.T) {
	w, o := newWorld(t), newOracle(t)
	effort.Check(t, func(t *rapid.T) {
		w.t = t
		w.clear()
		var all []*v1.Node
		for i := range rapid.IntRange(0, effort.Steps(6)).Draw(t, "nodes") {
			all = append(all, drawNode(t, fmt.Sprint("n", i)))
		}
		// Pods may be more than a node takes: nodes shrink, and other programs bind pods too.
		var old, gone []*v1.Pod
		o.nodes, o.pods = all, nil
		for i := range rapid.IntRange(0, effort.Steps(6)).Draw(t, "old pods") {
			if len(all) == 0 {
				break
			}
			p := drawPod(t, fmt.Sprint("old", i), 3)
			old = append(old, on(rapid.SampledFrom(all).Draw(t, "node").Name, p))
			if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
				gone = append(gone, p)
			} else {
				o.pods = append(o.pods, p)
			}
		}
		w.add(all, old)

		for _, unit := range []string{"first", "second"} {
			sets := drawSets(t, unit)
			a, err := w.placer.Place(w.ctx, Request{Sets: sets, Gone: gone})
			require.NoError(t, err)
			before := o.pods
			o.holds(t, a, sets...)
			if !a.Fits {
				o.pods = before
			}
			w.placer.Promise(a)
			defer forget(w.placer, sets)
		}
	})
}

func forget(p *Placer, sets []PodSet) {
	for _, s := range sets {
		p.Forget(s.Unit)
	}
}

// TestEqualPodsAreAllPlaced: if arithmetic suffices for a set, any order of placement is as good. So the placer says no
// only if first fit does not place all pods.
func TestEqualPodsAreAllPlaced(t *testing.T) {
	w, o := newWorld(t), newOracle(t)
	effort.Check(t, func(t *rapid.T) {
		w.t = t
		w.clear()
		var all []*v1.Node
		for i := range rapid.IntRange(1, effort.Steps(6)).Draw(t, "nodes") {
			all = append(all, drawNode(t, fmt.Sprint("n", i)))
		}
		s := set(drawPod(t, "w", 3), rapid.IntRange(1, 12).Draw(t, "count"))
		m, err := newModel(s, false)
		require.NoError(t, err)
		if !m.counted || len(m.apart) > 1 {
			t.Skip("the order of placement counts")
		}
		w.add(all, nil)
		o.nodes, o.pods = all, nil
		fits := w.place(s).Fits
		require.Equal(t, o.firstFit(t, s), fits)
	})
}
