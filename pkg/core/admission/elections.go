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

package admission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
)

// elections are the jobs for which another unit stands than when they were asked for, or none.
type elections map[Consumer]struct{}

func (e elections) note(c *owner.Candidate) {
	if c.Consumer.UID != "" {
		job := c.Consumer
		job.Namespace = c.Namespace
		e[job] = struct{}{}
	}
}

// Elections lists, once and in order, the jobs for which another unit stands by now, or none, and those that came or
// went.
func (s *State) Elections() []Consumer {
	if len(s.elections) == 0 {
		return nil
	}
	list := make([]Consumer, 0, len(s.elections))
	for c := range s.elections {
		list = append(list, c)
	}
	clear(s.elections)
	slices.SortFunc(list, func(a, b Consumer) int {
		return cmp.Or(strings.Compare(a.UID, b.UID), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list
}

// StandsFor is the key of the unit that stands for a job; empty if none does. managed says that the job is of a kind
// that the controller manages. A job that is live has the name that it is live under, whoever names it otherwise.
func (s *State) StandsFor(c Consumer, managed bool) string {
	of := owner.Candidate{Namespace: c.Namespace, Consumer: c, Managed: managed}
	if name, live := s.owners.NameOf(&of); live {
		of.Consumer.Name = name
	}
	if u, ok := s.owners.Winner(&of); ok {
		return u.spec.Key
	}
	return ""
}
