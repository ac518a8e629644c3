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

package sim

import (
	"maps"
	"slices"
	"time"
)

// stream is one client's watch of one kind, with a cache, like an informer. Its events lag behind the API independently
// of other streams.
type stream struct {
	api  *api
	kind kind
	lag  func() time.Duration
	// passes is the selector of the watch: what does not pass is gone for the client. Nil lets all pass.
	passes func(*object) bool
	store  map[string]*object
	seen   int64 // version up to which the client knows
	// on is called for each change, in its order; initial for what the first list has; the cache has it already.
	on      func(before, after *object, initial bool)
	alive   func() bool
	armed   bool
	blocked time.Time // nothing arrives before
	lost    bool      // the connection broke; the next delivery resumes, or lists
	free    time.Time // the next delivery is not before
}

// open lists, from a cache of the API server that may itself be behind by up to staleness, and watches from there.
func (a *api) open(s *stream, staleness time.Duration) *stream {
	s.api, s.seen = a, a.version
	k := s.kind
	if staleness > 0 {
		for _, c := range slices.Backward(a.history[k]) {
			if c.rv <= a.compacted || a.loop.now.Sub(c.at) > staleness {
				break
			}
			s.seen = c.rv - 1
		}
	}
	s.store = s.selected(a.at(k, s.seen))
	for _, o := range sorted(s.store) {
		s.on(nil, o, true)
	}
	a.watchers[k] = append(a.watchers[k], s.arm)
	s.arm()
	return s
}

func (s *stream) selected(objects map[string]*object) map[string]*object {
	if s.passes != nil {
		objects = maps.Clone(objects)
		maps.DeleteFunc(objects, func(_ string, o *object) bool { return !s.passes(o) })
	}
	return objects
}

func (s *stream) pending() []*change { return s.api.since(s.kind, s.seen) }

func (s *stream) arm() {
	if s.armed || !s.alive() {
		return
	}
	pending := s.pending()
	if len(pending) == 0 {
		return
	}
	at := pending[0].at.Add(s.lag())
	for _, bound := range []time.Time{s.blocked, s.free} {
		if at.Before(bound) {
			at = bound
		}
	}
	s.armed = true
	s.api.loop.at(at, s.deliver)
}

func (s *stream) deliver() {
	s.armed = false
	if !s.alive() {
		return
	}
	if s.api.loop.now.Before(s.blocked) {
		s.arm()
		return
	}
	if s.lost {
		s.lost = false
		if s.seen < s.api.compacted {
			s.relist()
			return
		}
	}
	pending := s.pending()
	// Events of one time arrive together.
	n := 1
	for n < len(pending) && pending[n].at.Equal(pending[0].at) {
		n++
	}
	if len(pending) > 0 {
		for _, c := range pending[:n] {
			s.take(c.rv, c.key, c.after)
		}
	}
	s.free = s.api.loop.now
	s.arm()
}

func (s *stream) take(rv int64, key string, after *object) {
	before := s.store[key]
	s.seen = rv
	if after != nil && s.passes != nil && !s.passes(after) {
		after = nil
	}
	if after == nil {
		delete(s.store, key)
	} else {
		s.store[key] = after
	}
	if before != nil || after != nil {
		s.on(before, after, false)
	}
}

// relist jumps to the newest state. Changes in between are never seen, and deleted objects are found missing.
func (s *stream) relist() {
	now := s.selected(s.api.objects[s.kind])
	keys := maps.Clone(s.store)
	maps.Copy(keys, now)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if s.store[key] != now[key] {
			s.take(s.seen, key, now[key])
		}
	}
	s.seen = s.api.version
	s.arm()
}

// bookmark tells the client the newest version when it has seen all changes of its kind.
func (s *stream) bookmark() {
	if s.alive() && len(s.pending()) == 0 && !s.api.loop.now.Before(s.blocked) {
		s.seen = s.api.version
	}
}
