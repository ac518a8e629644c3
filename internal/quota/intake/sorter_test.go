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

package intake

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
)

func quota(namespace, name, parent string, created int64) *v1alpha1.ElasticQuota {
	return &v1alpha1.ElasticQuota{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(created, 0),
		Labels: map[string]string{extension.LabelQuotaParent: parent},
	}}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestWithheld(t *testing.T) {
	for _, tt := range []struct {
		name   string
		quotas []*v1alpha1.ElasticQuota
		want   map[types.NamespacedName]ancestry.Reason
	}{
		{"a tree", []*v1alpha1.ElasticQuota{quota("n", "a", "", 1), quota("n", "b", "a", 1), quota("n", "c", "b", 1)},
			map[types.NamespacedName]ancestry.Reason{}},
		{"its own parent", []*v1alpha1.ElasticQuota{quota("n", "a", "a", 1)},
			map[types.NamespacedName]ancestry.Reason{key("n", "a"): ancestry.OwnAncestor}},
		{"a ring of three, and one below it", []*v1alpha1.ElasticQuota{
			quota("n", "a", "b", 1), quota("n", "b", "c", 1), quota("n", "c", "a", 1), quota("n", "0", "a", 1),
			quota("n", "z", "0", 1),
		}, map[types.NamespacedName]ancestry.Reason{
			key("n", "a"): ancestry.OwnAncestor, key("n", "b"): ancestry.OwnAncestor, key("n", "c"): ancestry.OwnAncestor,
			key("n", "0"): ancestry.BelowOwnAncestor, key("n", "z"): ancestry.BelowOwnAncestor,
		}},
		{"a ring by way of a name that is taken is none", []*v1alpha1.ElasticQuota{
			quota("n", "a", "", 1), quota("m", "a", "b", 2), quota("n", "b", "a", 1),
		}, map[types.NamespacedName]ancestry.Reason{key("m", "a"): ancestry.NameTaken}},
		{"equally old", []*v1alpha1.ElasticQuota{quota("n", "a", "", 1), quota("m", "a", "", 1)},
			map[types.NamespacedName]ancestry.Reason{key("n", "a"): ancestry.NameTaken}},
		{"the root has no ancestor", []*v1alpha1.ElasticQuota{
			quota("n", extension.RootQuotaName, "a", 1), quota("n", "a", "", 1),
		}, map[types.NamespacedName]ancestry.Reason{}},
		{"parents that do not exist", []*v1alpha1.ElasticQuota{quota("n", "a", "gone", 1)},
			map[types.NamespacedName]ancestry.Reason{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []ancestry.Named
			for _, q := range tt.quotas {
				all = append(all, named(q))
			}
			require.Equal(t, tt.want, ancestry.Withheld(all))
		})
	}
}

// informer keeps what an informer would, and checks each state that Koordinator passes through.
type informer struct {
	t     *testing.T
	store map[types.NamespacedName]*v1alpha1.ElasticQuota
}

func (i *informer) apply(events []watch.Event) {
	for _, e := range events {
		q := e.Object.(*v1alpha1.ElasticQuota)
		switch at := named(q).Key; e.Type {
		case watch.Bookmark: // A bookmark moves only the version.
		case watch.Deleted:
			require.Contains(i.t, i.store, at)
			delete(i.store, at)
		case watch.Added:
			require.NotContains(i.t, i.store, at)
			i.store[at] = q
		case watch.Modified:
			require.Contains(i.t, i.store, at)
			i.store[at] = q
		default:
			require.Fail(i.t, "a watch has no other events", e.Type)
		}
		i.check()
	}
}

func (i *informer) check() {
	parents := map[string]string{}
	for _, q := range i.store {
		require.NotContains(i.t, parents, q.Name, "two quotas of one name")
		parents[q.Name] = extension.GetParentQuotaName(q)
	}
	for name := range parents {
		at := name
		for steps := 0; at != "" && at != extension.RootQuotaName; steps++ {
			require.LessOrEqual(i.t, steps, len(parents), "%s is its own ancestor in %v", name, parents)
			at = parents[at]
		}
	}
}

// replace applies a list in a random order, deletions last, as an informer does.
func (i *informer) replace(r *rand.Rand, list []v1alpha1.ElasticQuota) {
	listed := map[types.NamespacedName]bool{}
	for _, n := range r.Perm(len(list)) {
		at := named(&list[n]).Key
		listed[at], i.store[at] = true, &list[n]
		i.check()
	}
	for _, at := range slices.Collect(maps.Keys(i.store)) {
		if !listed[at] {
			delete(i.store, at)
			i.check()
		}
	}
}

func TestEveryStateThatKoordinatorSeesIsSoundAndTheLastIsComplete(t *testing.T) {
	for seed := range int64(500) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, rand.New(rand.NewSource(seed))) })
	}
}

func history(t *testing.T, r *rand.Rand) {
	there := map[types.NamespacedName]*v1alpha1.ElasticQuota{}
	s, i, version := newSorter(), &informer{t: t, store: map[types.NamespacedName]*v1alpha1.ElasticQuota{}}, 0
	names := []string{"a", "b", "c", "d"}
	change := func() (*v1alpha1.ElasticQuota, bool) {
		version++
		q := quota([]string{"m", "n"}[r.Intn(2)], names[r.Intn(len(names))], append(names, "")[r.Intn(5)], int64(version))
		old := there[named(q).Key]
		if old != nil && r.Intn(3) == 0 {
			old = old.DeepCopy()
			old.ResourceVersion = strconv.Itoa(version)
			delete(there, named(q).Key)
			return old, true
		}
		if old != nil {
			q.CreationTimestamp = old.CreationTimestamp
		}
		q.ResourceVersion = strconv.Itoa(version)
		there[named(q).Key] = q
		return q.DeepCopy(), false
	}
	relist := func() {
		var list []v1alpha1.ElasticQuota
		for _, q := range there {
			list = append(list, *q.DeepCopy())
		}
		i.replace(r, s.replace(list))
		i.apply(s.missing())
	}
	for range r.Intn(6) {
		change()
	}
	relist()
	for range 30 {
		if r.Intn(6) == 0 {
			for range r.Intn(5) {
				change()
			}
			relist()
		} else if q, gone := change(); gone {
			i.apply(s.remove(q))
		} else {
			i.apply(s.put(q))
		}
		complete(t, there, i.store)
		require.Len(t, s.shown, len(i.store))
	}
}

// complete: what is not withheld is there as it is now.
func complete(t *testing.T, there, store map[types.NamespacedName]*v1alpha1.ElasticQuota) {
	var all []ancestry.Named
	for _, q := range there {
		all = append(all, named(q))
	}
	withheld := ancestry.Withheld(all)
	require.Len(t, store, len(there)-len(withheld))
	for at, q := range store {
		require.Empty(t, withheld[at])
		require.Equal(t, there[at].ResourceVersion, q.ResourceVersion)
	}
}

func TestAChangeOfStatusIsShownAndSortsNothing(t *testing.T) {
	s := newSorter()
	s.put(quota("n", "a", "", 1))
	s.put(quota("n", "b", "b", 1))
	for _, tt := range []struct {
		name string
		want watch.EventType
	}{{"a", watch.Modified}, {"b", watch.Bookmark}} {
		q := quota("n", tt.name, map[string]string{"b": "b"}[tt.name], 1)
		q.ResourceVersion = "7"
		decided := s.withheld
		events := s.put(q)
		require.Len(t, events, 1)
		require.Equal(t, tt.want, events[0].Type)
		require.Equal(t, "7", events[0].Object.(*v1alpha1.ElasticQuota).ResourceVersion)
		require.Equal(t, fmt.Sprintf("%p", decided), fmt.Sprintf("%p", s.withheld))
	}
}
