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
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/choice"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// join puts an eligible unit into its line. It does not if a policy or a check of an extension panics over it.
func (l *lines) join(now time.Time, u *record) (fault string) {
	q := l.queue(u.spec.Queue)
	key, fault := l.groupKey(q, u)
	if fault != "" {
		return fault
	}
	g, isNew := q.line.Join(u, key)
	u.group = g
	if key.Gang {
		l.gangs.Join(u)
	}
	n := &g.Notes
	n.answer = queue.Answer{} // an answer to an earlier attempt says nothing about this one
	if isNew {
		n.queue, n.preempts, n.inGangGroup = q, preempts(u), key.Gang
		n.ask = decide.Ask{
			Request: u.asks(), Total: u.total(), Jobs: u.jobs(), NonPreemptible: key.NonPreemptible, Blocking: key.Blocks,
			Observed: key.Observed,
		}
		q.groups[n.round()]++
		l.checkAgain(now, g)
	}
	if g.Head() == u {
		l.headChanged(q)
	}
	if n.isParked() {
		l.telling.Parked(now, u, n.parked.Reason)
	} else {
		l.telling.Joined(now, u)
	}
	return ""
}

// groupKey of a unit. A policy or a check of an extension that panics is a fault.
func (l *lines) groupKey(q *queueRecord, u *record) (key backlog.Key, fault string) {
	doing := "put in order"
	defer func() {
		if cause := recover(); cause != nil {
			l.progress.panics++
			fault = fmt.Sprintf("internal error while the unit was %s: %v", doing, cause)
		}
	}()
	q.line.Try(u)
	doing = "examined"
	key = backlog.Key{
		Quota: u.spec.Quota, Quotas: choice.Key(u.spec, &q.spec), Request: u.asks().Key(), Observed: u.spec.Observed,
		NonPreemptible: u.nonPreemptible(), Checks: l.extensions.Keys(u.spec),
		Blocks: q.line.Policy().Blocks(u.spec.Priority),
	}
	if u.holding {
		key.Total, key.Unchecked = u.total().Key(), u.grows.Unchecked
	} else if u.spec.GangGroup != "" {
		key.Alone, key.Gang = u.spec.Key, true
	} else if s := u.spec.Sizes; s != nil {
		key.Sizes = s.String()
	}
	if preempts(u) || u.isPreempting() { // nobody behind it gets the quota of its victims, or waits for its write
		key.Alone, key.Blocks = u.spec.Key, key.Blocks || preempts(u)
	}
	if q.spec.Preemption.ComparesPriorities() {
		key.MaxPriority = u.spec.MaxPriority
	}
	if q.places.Each >= 0 {
		key.Namespace = u.spec.Namespace()
	}
	return key, ""
}

// part takes a unit out of its line.
func (l *lines) part(u *record) {
	g := u.group
	if g.Head() == u {
		l.headChanged(g.Notes.queue)
	}
	if g.Notes.inGangGroup {
		l.gangs.Part(u)
	}
	if g.Part(u); g.Len() == 0 {
		g.Notes.queue.groups[g.Notes.round()]--
		l.telling.Gone(g)
	}
	u.group = nil
}

func (l *lines) headChanged(q *queueRecord) {
	l.ranking.Touch(q, q.name)
	l.progress.changed = true
}
