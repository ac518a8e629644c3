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

package engine

import "time"

// trails say which quotas are observed once more, some time after a change, and when.
type trails struct {
	// urgent and lazy ones are each in the order of time; lazy ones follow gathered news.
	urgent, lazy []trail
	// settle is when all are observed once more after the cluster total changed.
	settle time.Time
}

// trail is followed by the first step from its time on. What was gathered causes a step of its own only when it has
// waited as long as its news.
type trail struct {
	at    time.Time
	names []string
	all   bool
}

// note has these quotas, or all, observed once more.
func (t *trails) note(now time.Time, names []entry[string, urgency], all bool, c *Config) {
	urgent := trail{at: now.Add(c.TrailingCheck), all: all}
	lazy := trail{at: urgent.at}
	for _, it := range names {
		if it.value == newsUrgent {
			urgent.names = append(urgent.names, it.key)
		} else {
			lazy.names = append(lazy.names, it.key)
		}
	}
	if len(urgent.names) > 0 || all {
		t.urgent = append(t.urgent, urgent)
	}
	if len(lazy.names) > 0 {
		t.lazy = append(t.lazy, lazy)
	}
	if all {
		t.settle = now.Add(c.TotalSettles)
	}
}

// next is when the next of them asks for a step; zero for never.
func (t *trails) next(gather time.Duration) time.Time {
	at := t.settle
	if len(t.urgent) > 0 {
		at = earliest(at, t.urgent[0].at)
	}
	if len(t.lazy) > 0 {
		at = earliest(at, t.lazy[0].at.Add(gather))
	}
	return at
}

// due returns what must be observed once more by now, and forgets it.
func (t *trails) due(now time.Time) (names []string, all bool) {
	for _, list := range []*[]trail{&t.urgent, &t.lazy} {
		for len(*list) > 0 && !(*list)[0].at.After(now) {
			names, all = append(names, (*list)[0].names...), all || (*list)[0].all
			*list = (*list)[1:]
		}
	}
	if !t.settle.IsZero() && !t.settle.After(now) {
		all, t.settle = true, time.Time{}
	}
	return names, all
}
