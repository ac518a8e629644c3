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

// Package questions answers what people ask of the state, page by page. Nothing in it changes the state.
package questions

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/audit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/priorities"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/answers"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// View answers questions about the state. It is valid only within the function that Ask calls; what it returns stays as
// it is. Every answer costs at most what is in it, times O(log n): it holds up decisions.
type View struct{ of *Asked }

// Asked is what questions are put to. All of it belongs to the goroutine of the engine.
type Asked struct {
	Clock clock.PassiveClock
	// Leading says whether this process decides, and Loaded whether all that existed at the start is known.
	Leading, Loaded func() bool
	Core            *recovery.Core
	Auditor         *audit.Auditor
	Queues          map[string]*objects.Queue
	QueueNames      *ordered.Names // of Queues
	Units           *unitbook.Book
	Quotas          *quotawatch.Observer
	Priorities      *priorities.Book
}

// View returns one.
func (a *Asked) View() View { return View{a} }

// QueueInfo describes one queue. A queue that units name and that does not exist is described as well.
type QueueInfo struct {
	Name     string
	Exists   bool
	Policy   string
	Priority int32
	Held     bool
	// Drains: admitted units are evicted as well.
	Drains bool
	// Quotas that the queue accepts; nil is all of them.
	Quotas []string
	// First is the unit at the front of the line, and its job; empty if nothing waits.
	First, FirstKind, FirstJob string
	// Pending units wait, Parked ones cannot be admitted as they are, Admitted ones hold quota.
	Pending, Parked, Admitted int
}

// QuotaInfo describes one level of the quota tree, or a quota that units name and that does not exist.
type QuotaInfo struct {
	admission.Quota
	Exists bool
	// Reserved is what admitted units hold beyond their pods on nodes, here and below.
	Reserved resources.List
	// Pending is what waiting units of a leaf ask for, and admitted ones that wait for more. Of a parent it is none.
	Pending resources.List
	// Holding units hold something of this quota, Waiting ones do not. Of a parent they are none.
	Holding, Waiting int
}

// UnitInfo describes one unit.
type UnitInfo struct {
	UnitRow
	// Explanation says why the unit waits, where it is in its queue, and all that it lacks.
	answers.Explanation
	// Outstanding is the part of Held that no assigned pod uses yet.
	Outstanding resources.List
	// Writing: a decision about the unit is in flight.
	Writing bool
	// LosesAt is when the time-out LosesFor gives its quota back if it goes on as it is; zero for never.
	LosesAt  time.Time
	LosesFor unit.Reason
	// Holders hold what the unit is short of.
	Holders Holders
}

// UnitRow is what a list says of a unit.
type UnitRow struct {
	history.State
	// Position and Finding are those of its place in line.
	Position int
	Finding  unit.Finding
	// DryRun is what the unit would take. Of those that are decided alike, the first has it.
	DryRun reclaim.DryRun
}

// LineRow is one unit in line.
type LineRow struct {
	answers.Row
	// Kind and Job of the consumer.
	Kind, Job string
}

// Now is the time of the answer.
func (v View) Now() time.Time { return v.of.Clock.Now() }

// Leading says whether this process decides.
func (v View) Leading() bool { return v.of.Leading() }

// Facts are all that decisions rest on. They cost a pointer for each unit, and a copy of all quotas.
func (v View) Facts() *virtual.Facts {
	return virtual.FactsOf(v.of.Core.Read(), v.of.Core.Config, v.Now())
}

// Loaded says whether all that existed at the start is known, and the state is sound.
func (v View) Loaded() bool { return v.of.Loaded() && v.of.Core.Sound() }

// RequestAudit is AuditSoon for anybody: at most once a minute. It returns how long to wait before asking again, zero
// if an audit is made.
func (v View) RequestAudit() time.Duration { return v.of.Auditor.Request(v.of.Clock.Now()) }

// LastAudit is the result of the last audit, nil before there is one.
func (v View) LastAudit() *audit.Result { return v.of.Auditor.Last() }

// Queues are up to n queues that exist, by name, behind this one, and how many follow.
func (v View) Queues(behind string, n int) (list []QueueInfo, rest int) {
	page, rest := v.of.QueueNames.Page(behind, n)
	return describe(page, v.Queue), rest
}

// QueuesOf are up to n queues that units of a namespace are in, by name, behind this one, and how many follow.
func (v View) QueuesOf(namespace, behind string, n int) (list []QueueInfo, rest int) {
	of := v.of.Units.OfNamespace(namespace)
	if of == nil {
		return nil, 0
	}
	page, rest := of.Queues.Page(behind, n)
	return describe(page, v.Queue), rest
}

// QuotasAmong are those of some quotas that units of a namespace use.
func (v View) QuotasAmong(namespace string, quotas []string) (used []string) {
	for _, name := range quotas {
		if v.UsesQuota(namespace, name) {
			used = append(used, name)
		}
	}
	return used
}

// InQueue says whether a namespace has units in a queue that are not over.
func (v View) InQueue(namespace, queue string) bool {
	of := v.of.Units.OfNamespace(namespace)
	return of != nil && of.Queues.Has(queue)
}

func describe[T any](names []string, one func(name string) (T, bool)) []T {
	list := make([]T, 0, len(names))
	for _, name := range names {
		info, _ := one(name)
		list = append(list, info)
	}
	return list
}

// Queue says also whether the queue exists or has units.
func (v View) Queue(name string) (QueueInfo, bool) {
	info := QueueInfo{Name: name}
	if q := v.of.Queues[name]; q != nil {
		info.Exists, info.Policy, info.Priority, info.Held = true, q.Spec.Policy, q.Spec.Priority, q.Spec.Held
		info.Drains, info.Quotas = q.Spec.Drains, q.Spec.Quotas
		if q.Class != "" {
			info.Priority = v.of.Priorities.Of(q.Class)
		}
	}
	c := v.of.Core.Read().Accounts().CountsOf(name)
	info.Pending, info.Parked, info.Admitted = c.Pending, c.Parked, c.Admitted
	if line, _ := v.Line(name, 0, 1); len(line) > 0 {
		info.First, info.FirstKind, info.FirstJob = line[0].Key, line[0].Kind, line[0].Job
	}
	return info, info.Exists || c.Pending+c.Parked+c.Admitted > 0
}

// Line copies n units of a queue in its order, after the first skip ones, and says how many wait.
func (v View) Line(queue string, skip, n int) (page []LineRow, waiting int) {
	rows, waiting := v.of.Core.Read().Page(queue, skip, n)
	page = make([]LineRow, 0, len(rows))
	for i := range rows {
		row := LineRow{Row: rows[i]}
		if rec := v.of.Units.Get(row.Key); rec != nil {
			row.Kind, row.Job = rec.Object.Consumer.Kind, rec.Object.Consumer.Name
		}
		page = append(page, row)
	}
	return page, waiting
}
