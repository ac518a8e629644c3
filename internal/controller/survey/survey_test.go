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

package survey

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(amount)}
}

// The survey keeps the different sizes and labels of nodes, and looks again when some minutes are over.
func TestSurvey(t *testing.T) {
	builder := fake.NewClientBuilder()
	for i := range 5 {
		builder = builder.WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i),
			Labels: map[string]string{corev1.LabelHostname: fmt.Sprint("n", i), "pool": fmt.Sprint(i / 4)}},
			Status: corev1.NodeStatus{Allocatable: cpu(fmt.Sprint(1 + i%2))}})
	}
	quota := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "namespace": "any", "labels": map[string]any{
			v1alpha1.LabelQuotaParent: "b", "quota.scheduling.koordinator.sh/is-parent": "true"}},
		"spec": map[string]any{"max": map[string]any{"cpu": "4"}},
	}}
	quota.SetGroupVersionKind(elasticquota.Kind)
	lists, refuse := 0, false
	live := builder.WithObjects(quota).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if lists++; refuse {
				return errors.New("no")
			}
			return c.List(ctx, list, o...)
		},
	}).Build()
	clock := clocktesting.NewFakePassiveClock(epoch)
	s := New(live, clock)
	seen := s.Look(t.Context())
	require.ElementsMatch(t, []Node{
		{cpu("1"), map[string]string{"pool": "0"}}, {cpu("2"), map[string]string{"pool": "0"}},
		{cpu("1"), map[string]string{"pool": "1"}}}, seen.Nodes, "nodes that differ in their names alone are one")
	require.Equal(t, map[string]Quota{
		"a": {Parent: "b", IsParent: true, Limited: sets.New[corev1.ResourceName]("cpu")}}, seen.Quotas)
	require.Same(t, seen, s.Look(t.Context()))
	require.Equal(t, 2, lists)
	clock.SetTime(epoch.Add(clusterRefresh))
	refuse = true
	seen = s.Look(t.Context())
	require.Empty(t, seen.Nodes, "who cannot look warns of nothing")
	require.Empty(t, seen.Quotas)
	require.Nil(t, (*Survey)(nil).Look(t.Context()))
}

// Jobs that enter while another caller looks are warned of as well.
func TestLookBesideAnother(t *testing.T) {
	reading, goOn := make(chan bool), make(chan bool)
	live := fake.NewClientBuilder().WithObjects(&corev1.Node{Status: corev1.NodeStatus{Allocatable: cpu("1")}}).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if _, nodes := list.(*corev1.NodeList); nodes {
					reading <- true
					<-goOn
				}
				return c.List(ctx, list, o...)
			},
		}).Build()
	clock := clocktesting.NewFakePassiveClock(epoch)
	s, seen := New(live, clock), make(chan *Cluster)
	look := func() { seen <- s.Look(t.Context()) }
	go look()
	<-reading
	go look()
	goOn <- true
	first := <-seen
	require.NotNil(t, first)
	require.Same(t, first, <-seen, "the first look is waited for")

	clock.SetTime(epoch.Add(clusterRefresh))
	go look()
	<-reading
	require.Same(t, first, s.Look(t.Context()), "what was seen last, and nobody waits")
	goOn <- true
	require.NotSame(t, first, <-seen)
}
