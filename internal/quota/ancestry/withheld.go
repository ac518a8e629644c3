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

// Package ancestry finds the quotas that cannot be part of the tree, from names, parents and ages. It is pure.
package ancestry

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Root is Koordinator's quota above all others.
const Root = "koordinator-root-quota"

// Reason why a quota is withheld. Doctor uses the same codes.
type Reason string

const (
	// OwnAncestor: the quota is its own parent, or an ancestor of its parent.
	OwnAncestor Reason = "QuotaOwnAncestor"
	// BelowOwnAncestor: an ancestor of the quota is its own ancestor. Koordinator would count nothing of the quota in
	// that ancestor, once that is there again.
	BelowOwnAncestor Reason = "QuotaBelowOwnAncestor"
	// NameTaken: an older quota in another namespace has the name.
	NameTaken Reason = "QuotaNameTaken"
)

// Reasons are all of them.
var Reasons = []Reason{OwnAncestor, BelowOwnAncestor, NameTaken}

// Named is as much of a quota as decides whether it is withheld.
type Named struct {
	Key    types.NamespacedName
	Parent string
	// Created is the creation time in seconds.
	Created int64
}

// Withheld returns the quotas to withhold. Of quotas of one name the oldest is kept, and of equally old ones the first
// by namespace.
func Withheld(quotas []Named) map[types.NamespacedName]Reason {
	quotas = slices.Clone(quotas)
	slices.SortFunc(quotas, func(a, b Named) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Key.Namespace, b.Key.Namespace))
	})
	withheld := map[types.NamespacedName]Reason{}
	kept := make(map[string]Named, len(quotas))
	for _, q := range quotas {
		if _, taken := kept[q.Key.Name]; taken {
			withheld[q.Key] = NameTaken
			continue
		}
		kept[q.Key.Name] = q
	}
	walked := make(map[string]bool, len(kept))
	for name := range kept {
		walk(kept, name, walked, withheld)
	}
	return withheld
}

// walk goes from a name to its ancestors, up to the first that was walked before, and withholds what leads to a ring.
func walk(kept map[string]Named, name string, walked map[string]bool, withheld map[types.NamespacedName]Reason) {
	var path []string
	for name != Root && !walked[name] {
		q, there := kept[name]
		if !there {
			return
		}
		walked[name], path = true, append(path, name)
		name = q.Parent
	}
	ring := slices.Index(path, name)
	if ring < 0 && withheld[kept[name].Key] == "" {
		return
	}
	for i, at := range path {
		withheld[kept[at].Key] = BelowOwnAncestor
		if ring >= 0 && i >= ring {
			withheld[kept[at].Key] = OwnAncestor
		}
	}
}
