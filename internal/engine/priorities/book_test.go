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

package priorities

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
)

func TestPriorityOfAClass(t *testing.T) {
	c := NewBook()
	require.Zero(t, c.Of("high"))
	for _, step := range []struct {
		name               string
		class              *objects.Class
		changed, byDefault bool
		high, otherwise    int32
	}{
		{"high", &objects.Class{Value: 9}, true, false, 9, 0},
		{"high", &objects.Class{Value: 9}, false, false, 9, 0},
		{"usual", &objects.Class{Value: 5, GlobalDefault: true}, true, true, 9, 5},
		{"low", &objects.Class{Value: 1, GlobalDefault: true}, true, true, 9, 1},
		{"high", nil, true, false, 1, 1},
		{"low", &objects.Class{Value: 1}, true, true, 5, 5},
		{"usual", nil, true, true, 0, 0},
	} {
		changed, byDefault := c.SetClass(step.name, step.class)
		require.Equal(t, []bool{step.changed, step.byDefault}, []bool{changed, byDefault}, "%+v", step)
		require.Equal(t, []int32{step.high, step.otherwise}, []int32{c.Of("high"), c.Of("")}, "%+v", step)
	}
}

func TestBoundOfANamespace(t *testing.T) {
	b := NewBook()
	for _, step := range []struct {
		most    *int32
		changed bool
		want    int32
	}{
		{nil, false, 0}, {ptr.To[int32](5), true, 5}, {ptr.To[int32](5), false, 5}, {ptr.To[int32](-2), true, -2},
		{nil, true, 0}, {ptr.To[int32](0), false, 0},
	} {
		require.Equal(t, step.changed, b.SetBound("team", step.most), "%+v", step)
		require.Equal(t, step.want, b.BoundOf("team"), "%+v", step)
		require.Zero(t, b.BoundOf("other"))
	}
}

// Namespaces change all the time. Only what they allow is told.
func TestNamespacesAreToldByWhatTheyAllow(t *testing.T) {
	told := []string{}
	h := Handler(func(namespace string, most *int32) { told = append(told, namespace, bound(most)) },
		func(namespace string) { told = append(told, namespace+" is gone") })
	namespace := func(text string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"x": text}}}
		if text != "" {
			n.Annotations = map[string]string{v1alpha1.AnnotationMaxPriority: text}
		}
		return n
	}
	for name, tc := range map[string]struct {
		happens func()
		want    []string
	}{
		"new, and says nothing": {func() { h.OnAdd(namespace(""), true) }, []string{}},
		"new":                   {func() { h.OnAdd(namespace("5"), false) }, []string{"team", "5"}},
		"as before":             {func() { h.OnUpdate(namespace("5"), namespace("5")) }, []string{}},
		"another bound":         {func() { h.OnUpdate(namespace("5"), namespace("6")) }, []string{"team", "6"}},
		"no bound any more":     {func() { h.OnUpdate(namespace("5"), namespace("x")) }, []string{"team", "none"}},
		"gone":                  {func() { h.OnDelete(namespace("5")) }, []string{"team", "none", "team is gone"}},
		"gone unseen": {
			func() { h.OnDelete(cache.DeletedFinalStateUnknown{Key: "team", Obj: namespace("5")}) },
			[]string{"team", "none", "team is gone"},
		},
	} {
		told = []string{}
		tc.happens()
		require.Equal(t, tc.want, told, name)
	}
}

func bound(most *int32) string {
	if most == nil {
		return "none"
	}
	return strconv.Itoa(int(*most))
}
