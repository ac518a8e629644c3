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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A job can go without its pods: its owner deletes it and leaves them, or keeps it from going by a finalizer. Its unit
// holds nothing then, and its pods are charged as those of anybody. If they kept no place, a queue that admits one job
// would run as many as its users care to abandon. So pods on nodes keep the place of their unit in its queue, for its
// namespace and among the jobs of its quota, until the last of them is gone. A unit that is admitted again while some
// of them run has one place: they are its pods, and stand for what it holds.

// remnant is the place of a unit that holds nothing while pods of it are on nodes.
type remnant struct {
	// queue is nil where nobody knows it: the unit went before this process began.
	queue            *queueRecord
	namespace, quota string
	// held: the place is that which the unit had when it held quota last. It stays there, whatever the unit says now.
	held bool
}

// keepRemnant begins, moves or ends the place that the pods of a unit keep. u is nil if the unit is not known.
func (r *roster) keepRemnant(key string, u *record) {
	_, assigned := r.ledger.Pods(key)
	former, kept := r.remnants[key]
	if assigned == 0 || u != nil && u.holding {
		if kept {
			r.endRemnant(key, former)
		}
		return
	}
	if kept && former.held {
		return
	}
	next := remnant{namespace: (&unit.Unit{Key: key}).Namespace()}
	switch {
	case u != nil:
		next.queue, next.quota = r.queues.record(u.spec.Queue), u.spec.Quota
	case kept:
		return
	default:
		next.quota = r.ledger.ChargedAt(key)
	}
	if kept && next == former {
		return
	}
	if kept {
		r.moveRemnant(key, former, next.quota)
	}
	r.beginRemnant(key, next)
}

// leaveRemnant has the pods of a unit that gives back what it holds keep its place.
func (r *roster) leaveRemnant(u *record, q *queueRecord, quota string) {
	if _, assigned := r.ledger.Pods(u.spec.Key); assigned > 0 {
		r.beginRemnant(u.spec.Key, remnant{queue: q, namespace: u.spec.Namespace(), quota: quota, held: true})
	}
}

func (r *roster) beginRemnant(key string, p remnant) {
	r.remnants[key] = p
	if p.queue != nil {
		p.queue.refs++
		p.queue.remnants++
		p.queue.count(p.namespace, 1)
	}
	r.ledger.Reserve(key, p.quota, resources.List{}, false)
	r.tree.Changed(p.quota)
	r.changed = true
}

func (r *roster) endRemnant(key string, p remnant) {
	r.forgetRemnant(key, p)
	r.ledger.Release(key)
	r.tree.Changed(p.quota)
}

// holdRemnant has a unit that is about to hold quota take the place that its pods have kept.
func (r *roster) holdRemnant(u *record) {
	if p, kept := r.remnants[u.spec.Key]; kept {
		r.moveRemnant(u.spec.Key, p, u.spec.Quota)
	}
}

// moveRemnant ends a place for one in another quota or in the same, which is needed from then on as well.
func (r *roster) moveRemnant(key string, p remnant, to string) {
	if p.quota != to {
		r.endRemnant(key, p)
		return
	}
	r.forgetRemnant(key, p)
}

func (r *roster) forgetRemnant(key string, p remnant) {
	delete(r.remnants, key)
	if p.queue != nil {
		p.queue.count(p.namespace, -1)
		p.queue.remnants--
		p.queue.refs--
		r.prune(p.queue)
	}
	r.changed = true
}
