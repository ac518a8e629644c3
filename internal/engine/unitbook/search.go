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
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/labeltext"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
)

// Search selects units by namespace and name. Empty fields select all.
type Search struct {
	// Namespaces in order; nil is all.
	Namespaces []string
	// Behind is the key (namespace/name) of the unit after which the search begins.
	Behind string
	// Limit of units that are found, and of Looks at units. Both are 1 or more. Long labels take more looks.
	Limit, Looks int

	// Job is the name of the job.
	Job, Queue, Quota string
	Labels            labels.Selector
	// States that are found; nil is all.
	States []unitstate.State
}

// labelsPerLook is how many bytes of labels are compared with a requirement of a selector at the cost of one look.
const labelsPerLook = 256

// EndOf is a key behind all units of a namespace. No name has the character.
func EndOf(namespace string) string { return namespace + "/~" }

// Search finds units. resume is the key behind which to go on; empty if the search has ended. looks are left.
func (r *Book) Search(s *Search) (found []*Record, resume string, looks int) {
	ended := true
	looks = s.Looks
	names, behind := r.NamespacesOf(s, s.Looks)
	for _, namespace := range names {
		of := r.listing.namespaces[namespace]
		of.Units.WalkAt(s.skipIn(namespace, of), func(rec *Record) bool {
			matches := s.matches(rec)
			if ended = looks > 0 && !(matches && len(found) == s.Limit); !ended {
				return false
			}
			looks -= s.cost(rec)
			if resume = rec.Object.Path; matches {
				found = append(found, rec)
			}
			return true
		})
		if !ended {
			return found, resume, looks
		}
	}
	return found, behind, looks
}

// skipIn is the number of units of a namespace that the search does not begin with.
func (s *Search) skipIn(namespace string, of *NamespaceListing) int {
	if first, _, _ := strings.Cut(s.Behind, "/"); namespace != first {
		return 0
	}
	at := &Record{Object: &objects.Unit{Path: s.Behind}}
	skip := of.Units.Rank(at)
	if of.Units.Contains(at) {
		skip++
	}
	return skip
}

// NamespacesOf are up to n namespaces in which a search may find units, in order. resume is the key behind which the
// others are; empty if they are all.
func (r *Book) NamespacesOf(s *Search, n int) (names []string, resume string) {
	first, _, _ := strings.Cut(s.Behind, "/")
	candidates, rest := s.Namespaces, 0
	if candidates == nil {
		candidates, rest = r.listing.names.Page(first, s.Looks)
		if r.listing.namespaces[first] != nil && s.Behind != EndOf(first) {
			candidates = slices.Insert(candidates, 0, first)
		}
	}
	for _, name := range candidates {
		of := r.listing.namespaces[name]
		if name < first || s.Behind == EndOf(name) || of == nil || s.skips(of) {
			continue
		}
		if len(names) == n {
			return names, EndOf(names[n-1])
		}
		names = append(names, name)
	}
	if rest > 0 {
		resume = EndOf(candidates[len(candidates)-1])
	}
	return names, resume
}

// skips says whether no unit of a namespace can match. Units that are over are in no queue and no quota there.
func (s *Search) skips(of *NamespaceListing) bool {
	if s.States == nil || slices.ContainsFunc(s.States, unitstate.State.Over) {
		return false
	}
	return s.Queue != "" && !of.Queues.Has(s.Queue) || s.Quota != "" && !of.Quotas.Has(s.Quota)
}

// cost of a look at a unit.
func (s *Search) cost(rec *Record) int {
	if s.Labels == nil {
		return 1
	}
	requirements, _ := s.Labels.Requirements()
	return 1 + len(rec.Object.Labels)*len(requirements)/labelsPerLook
}

func (s *Search) matches(rec *Record) bool {
	u := rec.Object
	return (s.Job == "" || u.Consumer.Name == s.Job) && (s.Queue == "" || rec.Queue == s.Queue) &&
		(s.Quota == "" || rec.Quota == s.Quota) &&
		(s.States == nil || slices.Contains(s.States, unitstate.Of(u.Phase, u.Inactive))) &&
		(s.Labels == nil || s.Labels.Matches(labeltext.Text(u.Labels)))
}
