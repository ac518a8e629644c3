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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// world is a cluster: the cache of a scheduler, and a placer on it.
type world struct {
	t      require.TestingT
	ctx    context.Context
	cache  cache.Cache
	placer *Placer
	nodes  []*v1.Node
	pods   []*v1.Pod
}

// newWorld has further objects that the filters read.
func newWorld(t testing.TB, objects ...runtime.Object) *world {
	t.Helper()
	return newWorldWith(t, nil, objects...)
}

func newWorldWith(t testing.TB, args []config.PluginConfig, objects ...runtime.Object) *world {
	t.Helper()
	metrics.Register()
	ctx, logger := t.Context(), klog.Background()
	w := &world{t: t, ctx: ctx, cache: cache.New(klog.NewContext(ctx, logger), 0, nil)}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	var err error
	w.placer, err = New(ctx, Config{Source: w.cache, Informers: factory, PluginConfig: args})
	require.NoError(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return w
}

func (w *world) add(nodes []*v1.Node, pods []*v1.Pod) {
	for _, n := range nodes {
		w.cache.AddNode(klog.Background(), n)
	}
	for _, p := range pods {
		require.NoError(w.t, w.cache.AddPod(klog.Background(), p))
	}
	w.nodes, w.pods = append(w.nodes, nodes...), append(w.pods, pods...)
}

func (w *world) clear() {
	for _, p := range w.pods {
		require.NoError(w.t, w.cache.RemovePod(klog.Background(), p))
	}
	for _, n := range w.nodes {
		require.NoError(w.t, w.cache.RemoveNode(klog.Background(), n))
	}
	w.nodes, w.pods = nil, nil
}

func (w *world) place(sets ...PodSet) Answer {
	a, err := w.placer.Place(w.ctx, Request{Sets: sets})
	require.NoError(w.t, err)
	return a
}

// snapshot of the cache that nothing else has touched.
func (w *world) snapshot() *cache.Snapshot {
	s := cache.NewEmptySnapshot()
	require.NoError(w.t, w.cache.UpdateSnapshot(klog.Background(), s))
	return s
}

func list(amounts ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for i := 0; i < len(amounts); i += 2 {
		l[v1.ResourceName(amounts[i])] = resource.MustParse(amounts[i+1])
	}
	return l
}

// node has a hostname, 110 pods, and amounts.
func node(name string, amounts ...string) *v1.Node {
	all := list(amounts...)
	if _, ok := all[v1.ResourcePods]; !ok {
		all[v1.ResourcePods] = resource.MustParse("110")
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Allocatable: all},
	}
}

func nodes(n int, amounts ...string) (all []*v1.Node) {
	for i := range n {
		all = append(all, node(fmt.Sprintf("n%d", i), amounts...))
	}
	return all
}

func labelled(n *v1.Node, key, value string) *v1.Node {
	n.Labels[key] = value
	return n
}

func tainted(n *v1.Node) *v1.Node {
	n.Spec.Taints = []v1.Taint{{Key: "team", Value: "ml", Effect: v1.TaintEffectNoSchedule}}
	return n
}

// pod asks for amounts and is labelled app=NAME.
func pod(name string, amounts ...string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name), Labels: map[string]string{"app": name},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: list(amounts...)},
		}}},
	}
}

func on(node string, p *v1.Pod) *v1.Pod {
	p.Spec.NodeName = node
	return p
}

func hostPort(p *v1.Pod) *v1.Pod {
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: v1.ProtocolTCP}}
	return p
}

func selecting(p *v1.Pod, key, value string) *v1.Pod {
	p.Spec.NodeSelector = map[string]string{key: value}
	return p
}

func affinity(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

func term(app, key string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key,
	}
}

func away(p *v1.Pod, app, key string) *v1.Pod {
	affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(app, key)},
	}
	return p
}

func near(p *v1.Pod, app, key string) *v1.Pod {
	affinity(p).PodAffinity = &v1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(app, key)},
	}
	return p
}

func spread(p *v1.Pod, key string) *v1.Pod {
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}},
	}}
	return p
}

func claiming(p *v1.Pod, claim string) *v1.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: claim, VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
	return p
}

// set is a pod set of the unit of the same name.
func set(p *v1.Pod, count int) PodSet {
	return PodSet{Unit: types.UID(p.Name), Name: p.Name, Template: p, Count: count}
}

// spots are the pods of an answer by set and node.
func spots(a Answer) map[string]int {
	all := map[string]int{}
	for _, p := range a.Placed {
		all[p.Set+" on "+p.Node] += p.Count
	}
	return all
}
