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

// Package intake filters quotas between the API server and the informer of ElasticQuota. It withholds a quota that
// Koordinator cannot take, for as long as it cannot.
//
// ElasticQuota v1.8.0 loops without end if a quota is its own ancestor, and takes two quotas of one name for the same.
// Koordinator's webhook refuses both, but can be down or absent.
package intake

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
)

// named reads what Koordinator reads.
func named(q *v1alpha1.ElasticQuota) ancestry.Named {
	return ancestry.Named{
		Key:    types.NamespacedName{Namespace: q.Namespace, Name: q.Name},
		Parent: extension.GetParentQuotaName(q), Created: q.CreationTimestamp.Unix(),
	}
}

// sorter knows every quota that there is, and which of them Koordinator was shown. No quota is its own ancestor in any
// state that Koordinator passes through, and no two have one name.
type sorter struct {
	all      map[types.NamespacedName]*v1alpha1.ElasticQuota
	shown    map[types.NamespacedName]*v1alpha1.ElasticQuota
	withheld map[types.NamespacedName]ancestry.Reason
}

func newSorter() *sorter {
	return &sorter{
		all: map[types.NamespacedName]*v1alpha1.ElasticQuota{}, shown: map[types.NamespacedName]*v1alpha1.ElasticQuota{},
	}
}

// put takes a quota that is new or changed, and returns what to show for it.
func (s *sorter) put(q *v1alpha1.ElasticQuota) []watch.Event {
	now := named(q)
	before := s.all[now.Key]
	s.all[now.Key] = q
	if before != nil && named(before) == now {
		// Koordinator writes the status of each quota up to once a second: that decides nothing.
		if s.shown[now.Key] == nil {
			return []watch.Event{bookmark(q)}
		}
		s.shown[now.Key] = q
		return []watch.Event{{Type: watch.Modified, Object: q}}
	}
	return s.sort(q, now.Key)
}

// remove takes a quota that is gone.
func (s *sorter) remove(q *v1alpha1.ElasticQuota) []watch.Event {
	key := named(q).Key
	delete(s.all, key)
	return s.sort(q, key)
}

// sort decides about all quotas again. First it deletes quotas that Koordinator must no longer see, children before
// parents. Then the others appear or change, parents before children.
func (s *sorter) sort(changed *v1alpha1.ElasticQuota, key types.NamespacedName) (events []watch.Event) {
	s.decide()
	for _, at := range slices.Backward(topDown(s.shown)) {
		if s.withheld[at] != "" || s.all[at] == nil {
			events = append(events, watch.Event{Type: watch.Deleted, Object: s.shown[at]})
			delete(s.shown, at)
		}
	}
	for _, at := range topDown(s.eligible()) {
		switch q := s.all[at]; {
		case s.shown[at] == nil:
			s.shown[at] = q
			events = append(events, watch.Event{Type: watch.Added, Object: q})
		case at == key:
			s.shown[at] = q
			events = append(events, watch.Event{Type: watch.Modified, Object: q})
		}
	}
	return append(events, bookmark(changed))
}

func (s *sorter) decide() {
	all := make([]ancestry.Named, 0, len(s.all))
	for _, q := range s.all {
		all = append(all, named(q))
	}
	s.withheld = ancestry.Withheld(all)
}

// eligible are the quotas that may be shown.
func (s *sorter) eligible() map[types.NamespacedName]*v1alpha1.ElasticQuota {
	eligible := make(map[types.NamespacedName]*v1alpha1.ElasticQuota, len(s.all))
	for at, q := range s.all {
		if s.withheld[at] == "" {
			eligible[at] = q
		}
	}
	return eligible
}

// missing shows what may be shown and was not.
func (s *sorter) missing() (events []watch.Event) {
	for _, at := range topDown(s.eligible()) {
		if s.shown[at] == nil {
			s.shown[at] = s.all[at]
			events = append(events, watch.Event{Type: watch.Added, Object: s.all[at]})
		}
	}
	return events
}

// replace takes a list of all quotas, and returns those to list. An informer applies a list one by one in any order. So
// new quotas, and those with another parent, are left to the watch that follows, unless nothing was shown before.
func (s *sorter) replace(list []v1alpha1.ElasticQuota) []v1alpha1.ElasticQuota {
	first := len(s.shown) == 0
	clear(s.all)
	for i := range list {
		s.all[named(&list[i]).Key] = &list[i]
	}
	s.decide()
	if first {
		s.missing()
	}
	kept := make([]v1alpha1.ElasticQuota, 0, len(list))
	for at, before := range s.shown {
		now := s.all[at]
		if now == nil || s.withheld[at] != "" || named(now) != named(before) {
			delete(s.shown, at)
		}
	}
	for i := range list {
		if at := named(&list[i]).Key; s.shown[at] != nil {
			s.shown[at] = s.all[at]
			kept = append(kept, list[i])
		}
	}
	return kept
}

// bookmark moves the reflector's version to that of the event which it stands for.
func bookmark(q *v1alpha1.ElasticQuota) watch.Event {
	at := &v1alpha1.ElasticQuota{}
	at.ResourceVersion = q.ResourceVersion
	return watch.Event{Type: watch.Bookmark, Object: at}
}

// topDown returns the keys of quotas, parents before children. No quota among them is its own ancestor.
func topDown(quotas map[types.NamespacedName]*v1alpha1.ElasticQuota) []types.NamespacedName {
	parents := make(map[string]string, len(quotas))
	keys := make([]types.NamespacedName, 0, len(quotas))
	for at, q := range quotas {
		keys = append(keys, at)
		if at.Name != extension.RootQuotaName {
			parents[at.Name] = extension.GetParentQuotaName(q)
		}
	}
	depths := make(map[string]int, len(quotas))
	for name := range parents {
		for at, there := name, true; there; at, there = parents[at], parents[at] != "" {
			depths[name]++
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(depths[a.Name], depths[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return keys
}
