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

package holding

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// remnant is the place of a unit that holds nothing while pods of it are on nodes.
//
// A job can end without its pods: its owner deletes and orphans it, or a finalizer keeps them. Then its unit holds
// nothing, and its pods are charged like those of any workload. If they kept no place, a queue that admits one job
// would run as many as its users abandon. So pods on nodes keep the place of their unit, in its queue, its namespace
// and the jobs of its quota. The place ends with the last pod. If the unit is admitted again while some of them run, it
// has one place: they are its pods, and count as held quota.
type remnant struct {
	Place
	// queued is false where nobody knows the queue: the unit went before this process began.
	queued bool
	// held: the place is that which the unit had when it held quota last. It stays there, whatever the unit says now.
	held bool
	// since is when its unit held nothing any more, or the first pod was seen.
	since time.Time
}

const (
	// orderlyExit is for how long pods may go whose unit holds nothing, or whose grace period is over. Their job is told
	// to end them within that time, or is gone and they are deleted.
	orderlyExit = time.Minute
	// longestExit is for how long they may go at most, whatever their grace period is.
	longestExit = time.Hour
)

// leavesBy is until when the pods of a remnant are on their way out, and whether all are being deleted. After that
// nobody asks them to go, or something keeps them.
func (b *Book) leavesBy(key string, p *remnant) (by time.Time, deleted bool) {
	soon := p.since.Add(orderlyExit)
	by = soon
	for pod := range b.ledger.Assigned(key) {
		if !pod.Leaving && !pod.Late {
			return soon, false
		}
		by = ordered.Later(by, pod.GoneBy.Add(orderlyExit))
	}
	return ordered.Earlier(by, p.since.Add(longestExit)), true
}

// Keep begins, moves or ends the place that the pods of a unit keep, and says whether that changes anything. at is the
// place that the unit names; nil if the unit is not known.
func (b *Book) Keep(now time.Time, key string, at *Place) (changed bool) {
	_, assigned := b.ledger.Pods(key)
	former, kept := b.remnants[key]
	if _, holds := b.places[key]; assigned == 0 || holds {
		if kept {
			b.endRemnant(key, former)
		}
		return kept
	}
	next := remnant{since: now}
	if kept {
		next.since = former.since
	}
	switch {
	case kept && former.held:
		return false
	case at != nil:
		next.Place, next.queued = *at, true
	case kept:
		return false
	default:
		next.Namespace, next.Quota = (&unit.Unit{Key: key}).Namespace(), b.chargedAt(key)
	}
	if kept && next == former {
		return false
	}
	if kept {
		b.moveRemnant(key, former, next.Quota)
	}
	b.beginRemnant(key, next)
	return true
}

// chargedAt is the quota, the first by its name, that pods on nodes of a unit are charged to.
func (b *Book) chargedAt(key string) (at string) {
	for p := range b.ledger.Assigned(key) {
		if at == "" || p.Level < at {
			at = p.Level
		}
	}
	return at
}

func (b *Book) beginRemnant(key string, p remnant) {
	b.remnants[key] = p
	b.countRemnant(p, 1)
	b.ledger.Reserve(key, p.Quota, resources.List{}, false)
	b.tree.Changed(p.Quota)
}

func (b *Book) endRemnant(key string, p remnant) {
	b.forgetRemnant(key, p)
	b.ledger.Release(key)
	b.tree.Changed(p.Quota)
}

// moveRemnant ends a place for one in another quota or in the same, which is needed from then on as well.
func (b *Book) moveRemnant(key string, p remnant, to string) {
	if p.Quota != to {
		b.endRemnant(key, p)
		return
	}
	b.forgetRemnant(key, p)
}

func (b *Book) forgetRemnant(key string, p remnant) {
	delete(b.remnants, key)
	b.countRemnant(p, -1)
}

func (b *Book) countRemnant(p remnant, by int) {
	if p.queued {
		b.count(p.Place, count{by, by})
	}
}
