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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/ptr"
)

func TestPlace(t *testing.T) {
	zones := []*v1.Node{
		labelled(node("a0", "cpu", "2"), "zone", "a"), labelled(node("a1", "cpu", "2"), "zone", "a"),
		labelled(node("b0", "cpu", "4"), "zone", "b"),
	}
	for name, c := range map[string]struct {
		nodes []*v1.Node
		pods  []*v1.Pod
		sets  []PodSet
		gone  []*v1.Pod
		// spots of a yes, or of the pods placed before a no.
		spots map[string]int
		no    string
	}{
		"the least quotient": {
			nodes: nodes(1, "cpu", "10", "memory", "7Gi", "example.com/gpu", "4"),
			sets:  []PodSet{set(pod("w", "cpu", "1", "memory", "2Gi", "example.com/gpu", "1"), 3)},
			spots: map[string]int{"w on n0": 3},
		},
		"one more than the least quotient": {
			nodes: nodes(1, "cpu", "10", "memory", "7Gi"),
			sets:  []PodSet{set(pod("w", "cpu", "1", "memory", "2Gi"), 4)},
			spots: map[string]int{"w on n0": 3},
			no:    `3 of 4 pods of pod set "w" find a node; 0/1 nodes are available: 1 Insufficient memory.`,
		},
		"pods of a node": {
			nodes: nodes(2, "cpu", "10", "pods", "2"),
			pods:  []*v1.Pod{on("n0", pod("old"))},
			sets:  []PodSet{set(pod("w"), 4)},
			spots: map[string]int{"w on n0": 1, "w on n1": 2},
			no:    `3 of 4 pods of pod set "w" find a node; 0/2 nodes are available: 2 Too many pods.`,
		},
		"the fewest slots first": {
			nodes: []*v1.Node{node("large", "cpu", "8"), node("small", "cpu", "3")},
			sets:  []PodSet{set(pod("w", "cpu", "1"), 4)},
			spots: map[string]int{"w on small": 3, "w on large": 1},
		},
		"the set with fewer slots first": {
			nodes: []*v1.Node{labelled(node("ssd", "cpu", "2"), "disk", "ssd"), node("plain", "cpu", "2")},
			sets:  []PodSet{set(pod("any", "cpu", "2"), 1), set(selecting(pod("ssd", "cpu", "2"), "disk", "ssd"), 1)},
			spots: map[string]int{"any on plain": 1, "ssd on ssd": 1},
		},
		"host ports": {
			nodes: nodes(3, "cpu", "10"),
			pods:  []*v1.Pod{on("n1", hostPort(pod("old")))},
			sets:  []PodSet{set(hostPort(pod("w")), 3)},
			spots: map[string]int{"w on n0": 1, "w on n2": 1},
			no: `2 of 3 pods of pod set "w" find a node; ` +
				`0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.`,
		},
		"apart by node": {
			nodes: nodes(2, "cpu", "10"),
			sets:  []PodSet{set(away(pod("w"), "w", v1.LabelHostname), 2)},
			spots: map[string]int{"w on n0": 1, "w on n1": 1},
		},
		"apart by zone": {
			nodes: zones, sets: []PodSet{set(away(pod("w"), "w", "zone"), 3)},
			spots: map[string]int{"w on a0": 1, "w on b0": 1},
			no: `2 of 3 pods of pod set "w" find a node; 0/3 nodes are available: ` +
				`3 node(s) didn't match pod anti-affinity rules.`,
		},
		"a set away from another": {
			nodes: nodes(2, "cpu", "2"),
			sets:  []PodSet{set(pod("x", "cpu", "1"), 2), set(away(pod("w", "cpu", "1"), "x", v1.LabelHostname), 2)},
			spots: map[string]int{"x on n0": 2, "w on n1": 2},
		},
		"near each other": {
			nodes: zones, sets: []PodSet{set(near(pod("w", "cpu", "1"), "w", "zone"), 4)},
			spots: map[string]int{"w on a0": 2, "w on a1": 2},
		},
		"spread over zones": {
			nodes: zones, sets: []PodSet{set(spread(pod("w", "cpu", "2"), "zone"), 4)},
			spots: map[string]int{"w on a0": 1, "w on a1": 1, "w on b0": 2},
		},
		"reasons by node": {
			nodes: []*v1.Node{
				tainted(node("n0", "cpu", "8")), node("n1", "cpu", "1"), node("n2", "cpu", "1", "memory", "1"),
				{ObjectMeta: metav1.ObjectMeta{Name: "n3"}, Spec: v1.NodeSpec{Unschedulable: true}},
			},
			sets: []PodSet{set(pod("w", "cpu", "2", "memory", "0"), 1)},
			no: `0 of 1 pods of pod set "w" find a node; 0/4 nodes are available: 1 node(s) had untolerated taint(s), ` +
				`1 node(s) were unschedulable, 2 Insufficient cpu.`,
		},
		"no nodes": {
			sets: []PodSet{set(pod("w"), 1)},
			no:   `0 of 1 pods of pod set "w" find a node; no nodes available to schedule pods`,
		},
		"a pod that is gone": {
			nodes: nodes(1, "cpu", "2"),
			pods:  []*v1.Pod{on("n0", pod("old", "cpu", "1"))},
			gone:  []*v1.Pod{on("n0", pod("old")), on("n0", pod("never seen")), on("elsewhere", pod("old"))},
			sets:  []PodSet{set(pod("w", "cpu", "1"), 2)},
			spots: map[string]int{"w on n0": 2},
		},
		"nothing to place": {sets: []PodSet{set(pod("w"), 0)}, spots: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(c.nodes, c.pods)
			a, err := w.placer.Place(t.Context(), Request{Sets: c.sets, Gone: c.gone})
			require.NoError(t, err)
			require.Equal(t, c.no == "", a.Fits)
			if c.spots != nil || a.Fits {
				require.Equal(t, c.spots, spots(a))
			}
			if !a.Fits {
				require.Equal(t, c.no, a.Shortage.String())
			}
		})
	}
}

// The filters have the arguments of the scheduler's profile; those of other plugins change nothing.
func TestArgumentsOfFilters(t *testing.T) {
	w := newWorldWith(t, []config.PluginConfig{
		{Name: names.NodeAffinity, Args: &config.NodeAffinityArgs{AddedAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{
					{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"ssd"}},
				},
			}}},
		}}},
		{Name: "JobQueue"},
	})
	w.add([]*v1.Node{labelled(node("ssd", "cpu", "1"), "disk", "ssd"), node("plain", "cpu", "8")}, nil)
	a, err := w.placer.Place(t.Context(), Request{Sets: []PodSet{set(pod("w", "cpu", "1"), 2)}})
	require.NoError(t, err)
	require.Equal(t, `1 of 2 pods of pod set "w" find a node; 0/2 nodes are available: 1 Insufficient cpu, `+
		`1 node(s) didn't match scheduler-enforced node affinity.`, a.Shortage.String())
}

// A zone without room keeps the least at none, so each of the others takes one pod. PodTopologySpread keeps two zones
// of a map, so the question is repeated.
func TestSpreadOverAZoneThatIsFull(t *testing.T) {
	w := newWorld(t)
	all := nodes(6, "cpu", "10")
	for _, n := range all {
		labelled(n, "zone", n.Name)
	}
	all[0].Status.Allocatable = list("cpu", "0", "pods", "10")
	w.add(all, nil)
	for range 20 {
		a := w.place(set(spread(pod("w", "cpu", "1"), "zone"), 7))
		require.False(t, a.Fits)
		require.Equal(t, 5, a.Shortage.Placed)
	}
}

func TestVolumes(t *testing.T) {
	volume := func(name string, mode v1.PersistentVolumeAccessMode, zone string) []runtime.Object {
		return []runtime.Object{
			&v1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name),
					Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
				Spec: v1.PersistentVolumeClaimSpec{
					VolumeName: name, AccessModes: []v1.PersistentVolumeAccessMode{mode}, StorageClassName: ptr.To(""),
				},
				Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
			},
			&v1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: v1.PersistentVolumeSpec{
					AccessModes: []v1.PersistentVolumeAccessMode{mode},
					ClaimRef:    &v1.ObjectReference{Namespace: "ns", Name: name, UID: types.UID(name)},
					NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
						MatchExpressions: []v1.NodeSelectorRequirement{
							{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{zone}},
						},
					}}}},
				},
			},
		}
	}
	w := newWorld(t, append(volume("shared", v1.ReadWriteMany, "b"), volume("single", v1.ReadWriteOncePod, "a")...)...)
	w.add([]*v1.Node{
		labelled(node("a", "cpu", "4"), "zone", "a"), labelled(node("b", "cpu", "4"), "zone", "b"),
	}, nil)

	require.Equal(t, map[string]int{"w on b": 3}, spots(w.place(set(claiming(pod("w"), "shared"), 3))))
	require.True(t, w.place(set(claiming(pod("w"), "single"), 1)).Fits)
	twice := w.place(set(claiming(pod("w"), "single"), 2))
	require.False(t, twice.Fits)
	require.Equal(t, 1, twice.Shortage.Placed)
	missing := w.place(set(claiming(pod("w"), "none"), 1))
	require.Equal(t, `0 of 1 pods of pod set "w" find a node; 0/2 nodes are available: `+
		`persistentvolumeclaim "none" not found.`, missing.Shortage.String())
	require.Equal(t, map[string]int{`persistentvolumeclaim "none" not found`: 2}, missing.Shortage.Reasons)
}

// Claims that are made for each pod, and claims without a manager of them, never cause a no.
func TestWhatCannotBeKnown(t *testing.T) {
	w := newWorld(t)
	w.add(nodes(1, "cpu", "2"), nil)
	p := pod("w", "cpu", "1")
	p.Spec.ResourceClaims = []v1.PodResourceClaim{
		{Name: "own", ResourceClaimTemplateName: ptr.To("template")}, {Name: "shared", ResourceClaimName: ptr.To("claim")},
	}
	p.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
	before := p.DeepCopy()
	require.True(t, w.place(set(p, 2)).Fits)
	require.Equal(t, before, p)
}

// The API server writes label keys into the selectors of a pod, so a template means the selectors with them.
func TestLabelKeysOfAffinity(t *testing.T) {
	w := newWorld(t)
	old := on("n0", pod("w"))
	old.Labels["job"], old.UID = "1", "old"
	w.add(nodes(1, "cpu", "2"), []*v1.Pod{old})
	p := away(pod("w"), "w", v1.LabelHostname)
	p.Labels["job"] = "2"
	require.False(t, w.place(set(p, 1)).Fits)
	p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].MatchLabelKeys = []string{"job"}
	require.True(t, w.place(set(p, 1)).Fits)
	require.False(t, w.place(set(p, 2)).Fits)
}

func TestPromises(t *testing.T) {
	w := newWorld(t)
	w.add(nodes(2, "cpu", "2"), nil)
	first, second := set(pod("first", "cpu", "1"), 3), set(pod("second", "cpu", "1"), 2)

	a := w.place(first)
	require.True(t, w.place(second).Fits, "an answer alone promises nothing")
	w.placer.Promise(a)
	no := w.place(second)
	require.False(t, no.Fits, "nodes are not promised twice")
	w.placer.Promise(no)
	require.True(t, w.place(first).Fits, "a promise to a unit does not count against that unit")
	w.placer.Promise(w.place(first))
	require.Equal(t, 1, w.place(second).Shortage.Placed, "a second promise takes the place of the first")

	// Two pods of the first unit are bound. One pod is owed still, and gets another node than the promised one.
	bound := []*v1.Pod{on("n0", pod("b0", "cpu", "1")), on("n0", pod("b1", "cpu", "1"))}
	w.add(nil, bound)
	for _, p := range bound {
		require.False(t, w.placer.Bound("first", p.Spec.NodeName))
	}
	require.False(t, w.placer.Bound("nobody", "n0"))
	require.Equal(t, 1, w.place(second).Shortage.Placed)
	require.True(t, w.placer.Bound("first", "n0"))
	require.Empty(t, w.placer.promises)
	require.True(t, w.place(second).Fits)

	w.placer.Promise(w.place(second))
	require.False(t, w.place(set(pod("third", "cpu", "1"), 1)).Fits)
	require.Equal(t, 2, w.placer.Forget("second"))
	require.Zero(t, w.placer.Forget("second"))
	require.True(t, w.place(set(pod("third", "cpu", "1"), 1)).Fits)
}

// A promise on a node that has left the cluster counts nowhere, and it counts again if the node is back.
func TestPromiseOnANodeThatLeft(t *testing.T) {
	w := newWorld(t)
	w.add(nodes(1, "cpu", "1"), nil)
	w.placer.Promise(w.place(set(pod("first", "cpu", "1"), 1)))
	left := w.nodes
	w.clear()
	w.add([]*v1.Node{node("other", "cpu", "1")}, nil)
	require.True(t, w.place(set(pod("second", "cpu", "1"), 1)).Fits)
	w.clear()
	w.add(left, nil)
	require.False(t, w.place(set(pod("second", "cpu", "1"), 1)).Fits)
}

// A change of a node can let pods onto it, or keep them off, without an event of the pods.
func TestNodesThatChange(t *testing.T) {
	for name, change := range map[string]func(*v1.Node){
		"a taint": func(n *v1.Node) { tainted(n) },
		"a label": func(n *v1.Node) { delete(n.Labels, "pool") },
		"cordon":  func(n *v1.Node) { n.Spec.Unschedulable = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			good := labelled(node("n", "cpu", "1"), "pool", "a")
			bad := good.DeepCopy()
			change(bad)
			w.add([]*v1.Node{bad}, nil)
			wanted := set(selecting(pod("w", "cpu", "1"), "pool", "a"), 1)
			require.False(t, w.place(wanted).Fits)
			w.cache.UpdateNode(klog.Background(), bad, good)
			require.True(t, w.place(wanted).Fits)
			w.cache.UpdateNode(klog.Background(), good, bad)
			require.False(t, w.place(wanted).Fits)
		})
	}
}

func TestAGangGroupIsPlacedAsOne(t *testing.T) {
	w := newWorld(t)
	w.add(nodes(1, "cpu", "2"), nil)
	first, second := set(pod("first", "cpu", "1"), 1), set(pod("second", "cpu", "1"), 2)
	require.False(t, w.place(first, second).Fits)
	second.Count = 1
	w.placer.Promise(w.place(first, second))
	w.placer.Forget("first")
	require.Equal(t, 1, w.place(set(pod("third", "cpu", "1"), 2)).Shortage.Placed)
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.add(nodes(2, "cpu", "1"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err := w.placer.Place(ctx, Request{Sets: []PodSet{set(pod("w"), 1)}})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, Answer{Nodes: 2}, a)
	require.True(t, w.place(set(pod("w"), 1)).Fits, "the next question is answered")
}

// shown is all that filters read of the nodes of a snapshot.
func shown(t require.TestingT, p *Placer) (all []string) {
	infos, err := p.snapshot.List()
	require.NoError(t, err)
	for _, n := range infos {
		all = append(all, fmt.Sprint(n.Node().Name, n.GetPods(), n.GetRequested(), n.GetNonZeroRequested(), n.GetUsedPorts(),
			n.GetPVCRefCounts(), len(n.GetPodsWithAffinity()), len(n.GetPodsWithRequiredAntiAffinity()), n.GetGeneration()))
	}
	return all
}

func TestTheSnapshotStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	old := on("n0", away(hostPort(pod("old", "cpu", "1")), "old", v1.LabelHostname))
	w.add(nodes(3, "cpu", "4"), []*v1.Pod{old})
	w.placer.Promise(w.place(set(hostPort(pod("promised", "cpu", "1")), 1)))
	before := shown(t, w.placer)
	for _, s := range []PodSet{
		set(hostPort(pod("counted", "cpu", "1")), 1), set(spread(pod("each", "cpu", "1"), v1.LabelHostname), 4),
		set(pod("many", "cpu", "1"), 100),
	} {
		_, err := w.placer.Place(t.Context(), Request{Sets: []PodSet{s}, Gone: []*v1.Pod{old}})
		require.NoError(t, err)
		require.Equal(t, before, shown(t, w.placer))
		require.Empty(t, w.placer.view.nodes)
	}
}
