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

package unitbook

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// requireSearch compares the pages of any search with a look at all units.
func requireSearch(t *rapid.T, r *Book, units map[string]listed) {
	s := Search{
		Namespaces: rapid.SampledFrom([][]string{nil, {"a"}, {"b", "c"}}).Draw(t, "namespaces"),
		Limit:      rapid.IntRange(1, 5).Draw(t, "limit"), Looks: rapid.IntRange(1, 9).Draw(t, "looks"),
		Queue: rapid.SampledFrom([]string{"", "q1"}).Draw(t, "of queue"),
		Quota: rapid.SampledFrom([]string{"", "x"}).Draw(t, "of quota"),
		States: rapid.SampledFrom([][]unitstate.State{
			nil, {unitstate.Pending}, {unitstate.Running, unitstate.Succeeded},
		}).Draw(t, "of states"),
	}
	var want, got []string
	for _, key := range slices.Sorted(maps.Keys(units)) {
		u := units[key]
		if (s.Namespaces == nil || slices.Contains(s.Namespaces, u.namespace)) && (s.Queue == "" || s.Queue == u.queue) &&
			(s.Quota == "" || s.Quota == u.quota) &&
			(s.States == nil || slices.Contains(s.States, unitstate.Of(u.phase, false))) {
			want = append(want, key)
		}
	}
	for pages := 0; pages == 0 || s.Behind != ""; pages++ {
		require.Less(t, pages, 2+2*len(units), "it ends")
		var found []*Record
		found, s.Behind, _ = r.Search(&s)
		require.LessOrEqual(t, len(found), s.Limit)
		got = append(got, paths(found)...)
	}
	require.Equal(t, want, got)
}

func TestSearchByJobAndLabels(t *testing.T) {
	r := New(nil, nil, byAnnotation, kinship.New())
	for i := range 4 {
		r.Add(recorded(fmt.Sprint("u", i), "", func(o *objects.Unit) {
			o.Namespace, o.Path = "a", fmt.Sprint("a/u", i)
			o.Labels = labels.Set{"team": []string{"x", "y"}[i%2], "n": fmt.Sprint(i)}.String()
			o.Consumer = unit.Consumer{Name: fmt.Sprint("j", i/2)}
		}))
	}
	find := func(s Search) []string {
		s.Limit, s.Looks = 10, 10
		found, resume, looks := r.Search(&s)
		require.Less(t, looks, s.Looks+1)
		require.Empty(t, resume)
		return paths(found)
	}
	require.Equal(t, []string{"a/u2", "a/u3"}, find(Search{Job: "j1"}))
	selector, err := labels.Parse("team=x,n notin (0)")
	require.NoError(t, err)
	require.Equal(t, []string{"a/u2"}, find(Search{Labels: selector}))
	require.Empty(t, find(Search{Namespaces: []string{}}))
	require.Equal(t, []string{"a/u3"}, find(Search{Behind: "a/u2"}))
	require.Empty(t, find(Search{Behind: EndOf("a")}))
}
