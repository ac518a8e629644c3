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

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

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

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limited(parent string, names ...corev1.ResourceName) QuotaLimits {
	return QuotaLimits{Parent: parent, Limited: sets.New(names...)}
}

// What cannot be is said when the job is queued.
func TestWhatCannotBeIsSaidEarly(t *testing.T) {
	gang := func(least string) map[string]any {
		return map[string]any{extension.AnnotationGangName: "g", extension.AnnotationGangMinNum: least}
	}
	annotate := func(s *scene, least string) *scene {
		return s.job(gang(least), "spec", "template", "metadata", "annotations")
	}
	with := func(c *Cluster) func(*scene) *scene {
		return func(s *scene) *scene { return s.with(func(o *Observation) { o.Cluster = c }) }
	}
	for name, c := range map[string]struct {
		edit func(*scene) *scene
		want string
	}{
		"nothing is known":    {with(nil), ""},
		"gang that is whole":  {func(s *scene) *scene { return annotate(s, "2") }, ""},
		"gang that is short":  {func(s *scene) *scene { return annotate(s, "3") }, `gang "g" asks for 3 pods and the job has 2`},
		"gang of no number":   {func(s *scene) *scene { return annotate(s, "many") }, ""},
		"no nodes":            {with(&Cluster{}), ""},
		"some node has it":    {with(&Cluster{Nodes: []corev1.ResourceList{amounts("cpu", "100m"), amounts("cpu", "1")}}), ""},
		"no node has it":      {with(&Cluster{Nodes: []corev1.ResourceList{amounts("cpu", "100m"), amounts("cpu", "400m")}}), "500m of cpu, and no node that is there now has as much with all else that it asks for (400m)"},
		"no quota":            {with(&Cluster{Quotas: map[string]QuotaLimits{"b": limited("")}}), ""},
		"its quota limits it": {with(&Cluster{Quotas: map[string]QuotaLimits{"a": limited("", "cpu")}}), ""},
		"its parent limits it": {with(&Cluster{Quotas: map[string]QuotaLimits{
			"a": limited("b"), "b": limited("", "cpu")}}), ""},
		"nothing limits it": {with(&Cluster{Quotas: map[string]QuotaLimits{
			"a": limited("b", "memory"), "b": limited("a")}}), `quota "a" has no max for cpu, nor has one above it`},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			actions := Plan(c.edit(unqueued(t)).Observation)
			require.IsType(t, CreateUnit{}, actions[0])
			for _, action := range actions[1:] {
				tell, ok := action.(Tell)
				require.True(t, ok)
				require.Equal(t, "Doubtful", tell.Event.Reason)
				require.Equal(t, corev1.EventTypeWarning, tell.Event.Type)
				said = append(said, tell.Event.Note)
			}
			if c.want == "" {
				require.Empty(t, said)
				return
			}
			require.Len(t, said, 1)
			require.Contains(t, said[0], c.want)
		})
	}
}

// The survey keeps the different sizes of nodes, and looks again when some minutes are over.
func TestSurvey(t *testing.T) {
	scheme, err := Scheme()
	require.NoError(t, err)
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for i := range 5 {
		builder = builder.WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Status: corev1.NodeStatus{Allocatable: amounts("cpu", fmt.Sprint(1+i%2))}})
	}
	quota := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "namespace": "any", "labels": map[string]any{v1alpha1.LabelQuotaParent: "b"}},
		"spec":     map[string]any{"max": map[string]any{"cpu": "4"}},
	}}
	quota.SetGroupVersionKind(ElasticQuotaKind)
	lists, refuse := 0, false
	live := builder.WithObjects(quota).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if lists++; refuse {
				return errors.New("no")
			}
			return c.List(ctx, list, o...)
		},
	}).Build()
	clock := clocktesting.NewFakePassiveClock(epoch.Time)
	s := NewSurvey(live, clock)
	seen := s.look(t.Context())
	require.ElementsMatch(t, []corev1.ResourceList{amounts("cpu", "1"), amounts("cpu", "2")}, seen.Nodes)
	require.Equal(t, map[string]QuotaLimits{"a": limited("b", "cpu")}, seen.Quotas)
	require.Same(t, seen, s.look(t.Context()))
	require.Equal(t, 2, lists)
	clock.SetTime(epoch.Add(clusterRefresh))
	refuse = true
	seen = s.look(t.Context())
	require.Empty(t, seen.Nodes, "who cannot look warns of nothing")
	require.Empty(t, seen.Quotas)
	require.Nil(t, (*Survey)(nil).look(t.Context()))
}
