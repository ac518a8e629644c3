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

package pace

import "time"

// Trails say which quotas are observed once more, some time after a change, and when.
type Trails struct {
	// afterChange is how long after a change its quotas are observed once more; afterTotal is that for all of them after
	// the cluster total changed.
	afterChange, afterTotal time.Duration
	// urgent and lazy ones are each in the order of time; lazy ones follow gathered news.
	urgent, lazy []trail
	// settle is when all are observed once more after the cluster total changed.
	settle time.Time
}

// trail is followed by the first step from its time on. A gathered trail causes a step of its own only after it has
// waited as long as its events.
type trail struct {
	at    time.Time
	names []string
	all   bool
}

// NewTrails has nothing to observe. Quotas that change are observed once more afterChange later, and all of them
// afterTotal after the cluster total changed.
func NewTrails(afterChange, afterTotal time.Duration) Trails {
	return Trails{afterChange: afterChange, afterTotal: afterTotal}
}

// Note has these quotas, or all, observed once more. The lazy ones follow gathered news.
func (t *Trails) Note(now time.Time, urgent, lazy []string, all bool) {
	at := now.Add(t.afterChange)
	if len(urgent) > 0 || all {
		t.urgent = append(t.urgent, trail{at: at, names: urgent, all: all})
	}
	if len(lazy) > 0 {
		t.lazy = append(t.lazy, trail{at: at, names: lazy})
	}
	if all {
		t.settle = now.Add(t.afterTotal)
	}
}

// Next is when the next of them asks for a step, where gathered news wait that long; zero for never.
func (t *Trails) Next(gather time.Duration) time.Time {
	at := t.settle
	if len(t.urgent) > 0 {
		at = Earliest(at, t.urgent[0].at)
	}
	if len(t.lazy) > 0 {
		at = Earliest(at, t.lazy[0].at.Add(gather))
	}
	return at
}

// Due returns what must be observed once more by now, and forgets it.
func (t *Trails) Due(now time.Time) (names []string, all bool) {
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
