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

package quota_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/quotatest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

const card = "nvidia.com/gpu"

// yard is a cluster of nodes with cards, and pods on them, in one quota. ElasticQuota and the adapter follow it in
// goroutines of their own, so either hears of an event first.
type yard struct {
	t     require.TestingT
	live  *quotatest.Live
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod
	// before is the room before an event.
	before int64
}

func newYard(t require.TestingT, nodes ...string) *yard {
	live, err := quotatest.New(true)
	require.NoError(t, err)
	y := &yard{t: t, live: live, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
	eight := corev1.ResourceList{card: resource.MustParse("800")}
	q := &v1alpha1.ElasticQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "default",
		Labels: map[string]string{extension.LabelQuotaParent: extension.RootQuotaName}},
		Spec: v1alpha1.ElasticQuotaSpec{Min: eight, Max: eight}}
	live.OnQuota(nil, q)
	live.Quotas.OnAdd(q, true)
	for _, name := range nodes {
		y.node(name, func(*corev1.Node) {})
	}
	return y
}

func (y *yard) inOrder(adapterFirst bool, live, adapter func()) {
	if adapterFirst {
		live, adapter = adapter, live
	}
	live()
	require.LessOrEqual(y.t, y.free(), max(y.before, y.room()), "one of them has heard of it")
	adapter()
	y.before = y.room()
}

// node comes with four cards, or changes.
func (y *yard) node(name string, change func(*corev1.Node), adapterFirst ...bool) {
	before, there := y.nodes[name]
	after := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{card: resource.MustParse("4")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	if there {
		after = before.DeepCopy()
	}
	change(after)
	y.nodes[name] = after
	y.inOrder(slices.Contains(adapterFirst, true), func() { y.live.OnNode(before, after) }, func() {
		if there {
			y.live.Nodes.OnUpdate(before, after)
		} else {
			y.live.Nodes.OnAdd(after, false)
		}
	})
}

func (y *yard) remove(name string, adapterFirst ...bool) {
	node := y.nodes[name]
	delete(y.nodes, name)
	y.inOrder(slices.Contains(adapterFirst, true),
		func() { y.live.OnNode(node, nil) }, func() { y.live.Nodes.OnDelete(node) })
}

// run has a pod on a node, which asks for so many cards.
func (y *yard) run(name, node, cards string) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			Labels: map[string]string{extension.LabelQuotaName: "q"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{card: resource.MustParse(cards)}}}}},
	}
	y.pods[name] = pod
	y.live.OnPod(nil, pod)
	y.live.Pods.OnAdd(pod, false)
	y.before = y.room()
}

func (y *yard) end(name string, adapterFirst ...bool) {
	pod := y.pods[name]
	delete(y.pods, name)
	y.inOrder(slices.Contains(adapterFirst, true),
		func() { y.live.OnPod(pod, nil) }, func() { y.live.Pods.OnDelete(pod) })
}

// free is how many cards units may still get.
func (y *yard) free() int64 {
	root := y.root()
	limit, _ := root.Limit.Get(card)
	used, _ := root.Used.Get(card)
	return limit - used
}

func (y *yard) root() *capacity.Quota {
	found, _ := y.live.Adapter().Observe([]string{"q"})
	at := slices.IndexFunc(found, func(q capacity.Quota) bool { return q.Name == extension.RootQuotaName })
	require.GreaterOrEqual(y.t, at, 0)
	return &found[at]
}

// room is how many cards of nodes that take pods no pod has.
func (y *yard) room() (cards int64) {
	for _, n := range y.nodes {
		ready := n.Status.Conditions[0].Status == corev1.ConditionTrue
		if !ready || n.Spec.Unschedulable || n.DeletionTimestamp != nil {
			continue
		}
		cards += 4
		for _, p := range y.pods {
			if p.Spec.NodeName == n.Name {
				cards -= p.Spec.Containers[0].Resources.Requests.Name(card, resource.DecimalSI).Value()
			}
		}
	}
	return cards
}

func cordoned(yes bool) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Unschedulable = yes }
}

// A node that takes no pods has no room for a job. Pods that run there still count.
func TestNodesThatTakeNoPodsAreNoRoom(t *testing.T) {
	for name, close := range map[string]func(*corev1.Node){
		"cordoned":      cordoned(true),
		"not ready":     func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
		"unknown":       func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"being deleted": func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, "a", "b")
			y.run("before", "b", "2")
			require.EqualValues(t, 6, y.free())
			y.node("b", close)
			require.EqualValues(t, 4, y.free(), "the free cards of b are none")
			limit, _ := y.root().Limit.Get(card)
			require.EqualValues(t, 6, limit, "those that run on b are")
			most, _ := y.root().Max.Get(card)
			require.EqualValues(t, 8, most, "a job of all cards may fit later")
			y.end("before")
			require.EqualValues(t, 4, y.free(), "what ends there comes back to nobody")
			y.remove("b")
			require.EqualValues(t, 4, y.free())
		})
	}
}

// There is never more room than on nodes that take pods. That holds whether ElasticQuota or the adapter hears first of
// a change. When both have heard of all changes, the room is exact.
func TestTheRoomIsThatOfNodesThatTakePods(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		y := newYard(t)
		names := []string{"a", "b", "c"}
		pods := 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			node := rapid.SampledFrom(names).Draw(t, "node")
			first := rapid.Bool().Draw(t, "adapter first")
			at := y.nodes[node]
			all := []string{"come", "cordon", "uncordon", "unready", "ready", "go", "run", "end"}
			what := rapid.SampledFrom(all).Draw(t, "what")
			switch {
			case what == "come" || at == nil:
				if at == nil {
					y.node(node, cordoned(rapid.Bool().Draw(t, "cordoned")), first)
				}
			case what == "cordon", what == "uncordon":
				y.node(node, cordoned(what == "cordon"), first)
			case what == "unready", what == "ready":
				y.node(node, func(n *corev1.Node) {
					n.Status.Conditions[0].Status = map[bool]corev1.ConditionStatus{
						true: corev1.ConditionTrue, false: corev1.ConditionFalse}[what == "ready"]
				}, first)
			case what == "go":
				for name, p := range y.pods {
					if p.Spec.NodeName == node {
						y.end(name, first)
					}
				}
				y.remove(node, first)
			case what == "run":
				if pods++; y.room() >= 4 && !at.Spec.Unschedulable && at.Status.Conditions[0].Status == corev1.ConditionTrue {
					y.run(fmt.Sprint("p", pods), node, "1")
				}
			case what == "end" && len(y.pods) > 0:
				y.end(slices.Sorted(maps.Keys(y.pods))[0], first)
			}
			require.Equal(t, y.room(), y.free(), "%s %s", what, node)
		}
	})
}
