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

package choice

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func TestNames(t *testing.T) {
	listed := &queue.Spec{Lists: []string{"a", "b", "c"}}
	managed := unit.Unit{Quota: "a", ConsumerManaged: true}
	for name, c := range map[string]struct {
		unit   unit.Unit
		queue  *queue.Spec
		want   []string
		itself bool
	}{
		"none":                     {managed, &queue.Spec{}, nil, false},
		"of the queue":             {managed, listed, []string{"b", "c"}, false},
		"not the first":            {unit.Unit{Quota: "b", ConsumerManaged: true}, listed, nil, false},
		"not of the queue":         {unit.Unit{Quota: "z", ConsumerManaged: true}, listed, nil, false},
		"nobody relabels its pods": {unit.Unit{Quota: "a"}, listed, nil, false},
		"pods stay": {
			unit.Unit{Quota: "a", ConsumerManaged: true, Unsuspendable: true}, listed, nil, false},
		"its own": {
			unit.Unit{Quota: "a", Stated: unit.Stated{Quotas: "a,z"}}, listed, []string{"z"}, true},
		"its own, of one": {
			unit.Unit{Quota: "a", ConsumerManaged: true, Stated: unit.Stated{Quotas: "a"}}, listed, []string{}, true},
		"a list of another quota": {
			unit.Unit{Quota: "q", Stated: unit.Stated{Quotas: "a,z"}}, listed, nil, true},
	} {
		names, itself := Names(&c.unit, c.queue)
		require.Equal(t, c.want, names, name)
		require.Equal(t, c.itself, itself, name)
	}
}

func TestCheck(t *testing.T) {
	require.NoError(t, Check([]string{"a", "b"}))
	require.NoError(t, Check(nil))
	require.ErrorContains(t, Check([]string{"a", "b", "a"}), "twice")
	for _, name := range []string{"", "a,b", "a b", "a\nb"} {
		require.ErrorContains(t, Check([]string{name}), "no name of a quota", name)
	}
	require.ErrorContains(t, Check(make([]string, 9)), "at most 8")
	require.Equal(t, []string{"a", "b"}, Split(" a, ,b,"))
}

// quotas are drawn with their min, max and use.
type drawn struct{ least, most, used int64 }

func gpus(amount int64) resources.List { return resources.FromMap(map[string]int64{"gpu": amount}) }

// Without shares the choice is the documented one: the first quota in which the unit fits within min, else the first in
// which it fits. In trees of shares a unit is never admitted beyond max, nor beyond the total.
func TestOther(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		shared, total := rapid.Bool().Draw(t, "shared"), rapid.Int64Range(0, 20).Draw(t, "total")
		tree := capacity.NewTree(ledger.New())
		need := rapid.Int64Range(1, 4).Draw(t, "need")
		names := []string{"a", "b", "c"}
		list, inUse := make([]drawn, len(names)), int64(0)
		for i, name := range names {
			d := drawn{least: rapid.Int64Range(0, 4).Draw(t, "min")}
			d.most = d.least + rapid.Int64Range(0, 4).Draw(t, "more")
			d.used = rapid.Int64Range(0, d.most).Draw(t, "used")
			list[i], inUse = d, inUse+d.used
			limit := gpus(d.most)
			if shared {
				limit = gpus(min(d.most, d.used))
			}
			tree.Set(capacity.Quota{
				Name: name, Parent: "root", Min: gpus(d.least), Max: gpus(d.most), Used: gpus(d.used), Limit: limit, Shared: shared,
			})
		}
		tree.Set(capacity.Quota{Name: "root", Limit: gpus(total), Used: gpus(inUse)})
		own := decide.Ask{
			Request: gpus(need), Total: gpus(need), Jobs: 1, Route: tree.Route("a"), Need: tree.Need(gpus(need), 1),
		}
		own.Limits = own.Route.Limits(false)
		others := Asks(tree, &own, gpus(need), names[1:])

		rights := rightful.New(tree)
		pass := decide.New[string](tree, rights)
		pass.Begin()
		pass.Line()
		fits := pass.Try("unit", &own)
		have, other := "", Other(pass, rights, &own, fits, others)
		switch {
		case other != nil:
			have = other.Leaf().Name()
		case fits:
			have = "a"
		}

		want, borrows := "", ""
		for i, d := range list {
			if d.used+need > d.most || inUse+need > total {
				continue
			}
			if d.used+need <= d.least && want == "" {
				want = names[i]
			}
			if borrows == "" {
				borrows = names[i]
			}
		}
		if want == "" {
			want = borrows
		}
		if !shared {
			require.Equal(t, want, have)
			return
		}
		for i, d := range list {
			within := d.used+need <= d.most && inUse+need <= total
			if have == names[i] {
				require.True(t, within, "%s has no room", have)
			}
			if i > 0 && within && d.used+need <= d.least {
				require.NotEmpty(t, have, "it is within min of %s", names[i])
			}
		}
	})
}
