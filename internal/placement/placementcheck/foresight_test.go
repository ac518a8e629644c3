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

package placementcheck

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/internal/placement"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// foresees says what was answered to questions, in their order.
func (w *world) foresees(questions ...witness.Question) (answers []string) {
	w.t.Helper()
	for _, q := range questions {
		q.Answer = func(fits bool, why string) {
			require.Equal(w.t, fits, why == "")
			answers = append(answers, why)
		}
		w.Foresee(q)
	}
	for w.queue.Len() > 0 {
		require.True(w.t, w.answer(w.t.Context()))
	}
	require.Empty(w.t, w.foreseen)
	require.Empty(w.t, w.nodes.promised)
	return answers
}

func TestForesee(t *testing.T) {
	broken := reserved("broken", 1, 1)
	broken.Spec.PodSets[0].Template.Raw = []byte(unreadable)
	for name, c := range map[string]struct {
		unit  string
		uid   types.UID
		nodes nodes
		why   string
	}{
		"all fit":           {unit: "a", uid: "a", nodes: nodes{room: 3}},
		"one finds no node": {unit: "a", uid: "a", nodes: nodes{room: 2}, why: `pod set "second"`},
		"another of the name": {
			unit: "a", uid: "former", nodes: nodes{room: 3}, why: "the unit is gone",
		},
		"deleted":       {unit: "deleted", uid: "a", nodes: nodes{room: 3}, why: "the unit is gone"},
		"no key":        {uid: "a", nodes: nodes{room: 3}, why: "the unit is gone"},
		"no template":   {unit: "broken", uid: "broken", nodes: nodes{room: 3}, why: `pod set "first"`},
		"no answer":     {unit: "a", uid: "a", nodes: nodes{err: errors.New("no snapshot")}, why: "no snapshot"},
		"no end of it":  {unit: "a", uid: "a", nodes: nodes{endless: true}, why: "is not over after 1ns"},
		"waits in line": {unit: "waits", uid: "waits", nodes: nodes{room: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			waits := reserved("waits", 1, 2)
			waits.Status = v1alpha1.QueueUnitStatus{}
			w := newWorld(t, 0, reserved("a", 1, 2), broken.DeepCopy(), waits)
			c.nodes.promised = map[types.UID]int{}
			*w.nodes = c.nodes
			if c.nodes.endless {
				w.searchTime = time.Nanosecond
			}
			answers := w.foresees(witness.Question{Key: "ns/" + c.unit, UID: c.uid})
			require.Len(t, answers, 1)
			require.Contains(t, answers[0], c.why)
			require.Equal(t, c.why == "", answers[0] == "")
		})
	}
}

// Of two questions about a unit the second is answered, if nobody has looked at the first.
func TestASecondForesightTakesThePlaceOfTheFirst(t *testing.T) {
	w := newWorld(t, 9, reserved("a", 1, 2), reserved("b", 1, 2))
	gone := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "gone"}}}
	first, second, other := witness.Question{Key: "ns/a", UID: "a"}, witness.Question{Key: "ns/a", UID: "a", Gone: gone},
		witness.Question{Key: "ns/b", UID: "b"}
	require.Len(t, w.foresees(first, other, second), 2)
	require.Equal(t, [][]*corev1.Pod{gone, nil}, w.nodes.gone)
	require.Len(t, w.foresees(first), 1, "it is asked again")
}

// However many units of a namespace are asked about, one of another waits for one of them at most.
func TestNamespacesTakeTurns(t *testing.T) {
	w := newWorld(t, 0)
	for _, key := range []string{"a/1", "a/2", "a/3", "a/1"} {
		w.Unit(key, "", unit.PhaseReserved)
	}
	w.Foresee(witness.Question{Key: "a/1"})
	w.Unit("b/1", "", unit.PhaseReserved)
	w.Foresee(witness.Question{Key: "b/1"})
	w.Check("nodes")
	var order []item
	for w.queue.Len() > 0 {
		next, _ := w.queue.Get()
		order = append(order, next)
		w.queue.Done(next)
	}
	require.Equal(t, []item{
		{"a", "1", false}, {"b", "1", false}, {"", "nodes", false}, {"a", "2", false}, {"b", "1", true}, {"a", "3", false},
		{"a", "1", true},
	}, order)
}

// The placer looks at nodes as if the pods were gone, and keeps none.
func TestForeseeNodes(t *testing.T) {
	metrics.Register()
	live := cache.New(klog.NewContext(t.Context(), klog.Background()), 0, nil)
	live.AddNode(klog.Background(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("9"),
		}},
	})
	victim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "victim", UID: "victim"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}
	require.NoError(t, live.AddPod(klog.Background(), victim))
	placer, err := placement.New(t.Context(), placement.Config{
		Source: live, Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
	})
	require.NoError(t, err)
	w := newWorld(t, 0, reserved("a", 1, 1))
	w.placer = placer

	ask := witness.Question{Key: "ns/a", UID: "a"}
	require.Equal(t, []string{
		`0 of 1 pods of pod set "second" find a node; 0/1 nodes are available: 1 Insufficient cpu.`,
	}, w.foresees(ask))
	ask.Gone = []*corev1.Pod{victim}
	require.Equal(t, []string{""}, w.foresees(ask))
	require.False(t, placer.Promised("a"))
}
