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
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// listed is a unit as a slow list has it.
type listed struct {
	namespace, name, queue, quota string
	phase                         unit.Phase
}

// TestListingEqualsASearch: the pages of units equal a search over all of them, after any events.
func TestListingEqualsASearch(t *testing.T) {
	t.Parallel()
	phases := []unit.Phase{unit.PhaseEnqueued, unit.PhaseRunning, unit.PhaseSucceed}
	effort.Check(t, func(t *rapid.T) {
		r := New(nil, nil, byAnnotation, kinship.New())
		units := map[string]listed{}
		for range rapid.IntRange(0, effort.Steps(60)).Draw(t, "operations") {
			u := listed{
				namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				name:      fmt.Sprint("u", rapid.IntRange(0, 7).Draw(t, "name")),
				queue:     rapid.SampledFrom([]string{"q1", "q2"}).Draw(t, "queue"),
				quota:     rapid.SampledFrom([]string{"x", "y"}).Draw(t, "quota"),
				phase:     rapid.SampledFrom(phases).Draw(t, "phase"),
			}
			key := u.namespace + "/" + u.name
			object := recorded(u.name, "", func(o *objects.Unit) {
				o.Namespace, o.Path, o.Phase = u.namespace, key, u.phase
			})
			rec := r.Get(key)
			switch {
			case rec != nil && rapid.Bool().Draw(t, "goes"):
				r.Remove(rec)
				delete(units, key)
				continue
			case rec != nil:
				r.Replace(rec, object)
			default:
				rec = r.Add(object)
			}
			r.Resolved(rec, &unit.Unit{Queue: u.queue, Quota: u.quota})
			units[key] = u
		}
		requireListing(t, &r.listing, units)
		requireSearch(t, r, units)
		for _, key := range r.Keys() {
			r.Remove(r.Get(key))
		}
		require.Empty(t, r.listing.namespaces)
		require.Empty(t, r.listing.quotas)
	})
}

func requireListing(t require.TestingT, l *listing, units map[string]listed) {
	keys := slices.Sorted(maps.Keys(units))
	search := func(is func(u listed) bool) (found []string) {
		for _, key := range keys {
			if is(units[key]) {
				found = append(found, key)
			}
		}
		return found
	}
	for _, namespace := range []string{"a", "b"} {
		of := l.namespaces[namespace]
		want := search(func(u listed) bool { return u.namespace == namespace })
		require.Equal(t, len(want) > 0, of != nil)
		if of == nil {
			continue
		}
		require.Equal(t, want, paths(PageOf(of.Units, 0, 100)))
		require.Equal(t, want[min(2, len(want)):], append([]string{}, paths(PageOf(of.Units, 2, 100))...))
		for _, c := range []struct {
			names *ordered.Names
			of    func(u listed) string
		}{
			{&of.Queues, func(u listed) string { return u.queue }},
			{&of.Quotas, func(u listed) string { return u.quota }},
		} {
			var used []string
			for _, key := range search(func(u listed) bool { return u.namespace == namespace && !u.phase.Terminal() }) {
				used = append(used, c.of(units[key]))
			}
			slices.Sort(used)
			used = slices.Compact(used)
			page, rest := c.names.Page("", 10)
			require.Equal(t, used, page)
			require.Zero(t, rest)
			if len(used) > 1 {
				page, rest = c.names.Page("", 1)
				require.Equal(t, used[:1], page)
				require.Equal(t, len(used)-1, rest)
				page, _ = c.names.Page(used[0], 10)
				require.Equal(t, used[1:], page)
			}
		}
	}
	for _, quota := range []string{"x", "y"} {
		of := cmp.Or(l.quotas[quota], &QuotaListing{})
		holding := search(func(u listed) bool { return u.quota == quota && u.phase.Holds() })
		waiting := search(func(u listed) bool {
			return u.quota == quota && !u.phase.Holds() && !u.phase.Terminal()
		})
		require.Equal(t, len(holding)+len(waiting) > 0, of.Holding != nil)
		if of.Holding != nil {
			require.Equal(t, holding, paths(PageOf(of.Holding, 0, 100)))
			require.Equal(t, waiting, paths(PageOf(of.Waiting, 0, 100)))
		}
	}
}

func paths(records []*Record) (list []string) {
	for _, rec := range records {
		list = append(list, rec.Object.Path)
	}
	return list
}
