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

package snapshot

import (
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Renamed is a snapshot in which namespaces, units, jobs, gangs, queues and quotas have other names. Different names
// have to stay different. Ties that the core breaks by name may be broken otherwise.
func (s *Snapshot) Renamed(rename func(string) string) *Snapshot {
	name := func(old string) string {
		if old == "" {
			return ""
		}
		return rename(old)
	}
	each := func(list, between string) string {
		if list == "" {
			return ""
		}
		parts := strings.Split(list, between)
		for i := range parts {
			parts[i] = name(strings.TrimSpace(parts[i]))
		}
		return strings.Join(parts, between)
	}
	out := &Snapshot{At: s.At, Extended: s.Extended, Facts: &virtual.Facts{Config: s.Facts.Config}}
	for _, q := range s.Facts.Quotas {
		q.Name, q.Parent = name(q.Name), name(q.Parent)
		out.Facts.Quotas = append(out.Facts.Quotas, q)
	}
	slices.SortFunc(out.Facts.Quotas, func(a, b admission.Quota) int { return strings.Compare(a.Name, b.Name) })
	for _, q := range s.Facts.Queues {
		q.Name, q.Quotas, q.Lists = name(q.Name), slices.Clone(q.Quotas), slices.Clone(q.Lists)
		for _, list := range [][]string{q.Quotas, q.Lists} {
			for i := range list {
				list[i] = name(list[i])
			}
		}
		out.Facts.Queues = append(out.Facts.Queues, q)
	}
	slices.SortFunc(out.Facts.Queues, func(a, b queue.Spec) int { return strings.Compare(a.Name, b.Name) })
	for _, old := range s.Facts.Units {
		u := *old
		u.Key, u.Queue, u.Quota, u.MovesTo = each(u.Key, "/"), name(u.Queue), name(u.Quota), name(u.MovesTo)
		u.Consumer = unit.Consumer{
			Kind: u.Consumer.Kind, Namespace: name(u.Consumer.Namespace), Name: name(u.Consumer.Name),
			UID: name(u.Consumer.UID),
		}
		u.Quotas, u.GangGroup, u.Gangs = each(u.Quotas, ","), inOrder(each(u.GangGroup, ",")), inOrder(each(u.Gangs, ","))
		out.Facts.Units = append(out.Facts.Units, &u)
	}
	for _, r := range s.Runs {
		r.User, r.Queue = name(r.User), name(r.Queue)
		out.Runs = append(out.Runs, r)
	}
	return out
}

// inOrder are names, sorted as the core has them.
func inOrder(list string) string {
	names := strings.Split(list, ",")
	slices.Sort(names)
	return strings.Join(names, ",")
}
