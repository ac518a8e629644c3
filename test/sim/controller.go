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
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/defaultqueue"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
)

const roleController = "controller"

// manager is one run of jobqueue-controller: the reconcilers, their caches and their work queues.
type manager struct {
	*process
	caches map[kind]*stream
	work   map[request]*item
	jobs   *controller.JobReconciler
	sets   *controller.JobReconciler
	queues *defaultqueue.Reconciler
}

type request struct {
	reconciler string
	key        types.NamespacedName
}

// item of a work queue. At most one event for it is on its way that counts: the one of the last turn.
type item struct {
	due      time.Time
	turn     int
	failures int
}

func (w *world) startController(name string) *manager {
	m := &manager{process: w.newProcess(roleController, name), caches: map[kind]*stream{}, work: map[request]*item{}}
	w.managers[name] = m
	w.logf("start %s", name)
	cached := &controllerClient{process: m.process, caches: m.caches}
	live := &controllerClient{process: m.process}
	o := controller.Options{
		QueueNamespace: v1alpha1.DefaultQueueNamespace, Predicate: w.predicate, Clock: m.clock,
		Plan: jobplan.Options{PartialAdmission: true},
	}
	m.jobs = controller.NewJobReconciler(w.kind, o, cached, live, owners{w})
	m.sets = controller.NewJobReconciler(w.setKind, o, cached, live, owners{w})
	m.queues = defaultqueue.NewReconciler(v1alpha1.DefaultQueueNamespace, cached, live, silent{})
	m.open(namespaces, func(_, _ *object, _ bool) {})
	m.open(classes, func(_, _ *object, _ bool) {})
	m.open(jobKind, func(before, after *object, _ bool) {
		u := present(before, after)
		m.ask("jobs", u.GetNamespace(), u.GetName())
	})
	m.open(units, func(before, after *object, _ bool) {
		for _, o := range []*object{before, after} {
			if o == nil {
				continue
			}
			name := o.u.GetName()
			if suffix := w.kind.UnitSuffix; suffix != "" {
				name = strings.TrimSuffix(name, "-"+suffix)
			}
			m.ask("jobs", o.u.GetNamespace(), name)
			if name := strings.TrimSuffix(name, "-"+w.setKind.UnitSuffix); namesJobSet(name) {
				m.ask("sets", o.u.GetNamespace(), name)
			}
			if ref := unitOf(o).Spec.ConsumerRef; ref != nil && ref.Name != "" {
				m.ask("jobs", o.u.GetNamespace(), ref.Name)
			}
		}
	})
	if w.plan.hasJobSets() {
		m.openWith(newDice(w.plan.Seed, fmt.Sprintf("%s/%d/job sets", m.name, m.run)), jobSets,
			func(before, after *object, _ bool) {
				u := present(before, after)
				m.ask("sets", u.GetNamespace(), u.GetName())
			})
	}
	m.open(quotas, func(before, after *object, _ bool) { m.ask("queues", "", present(before, after).GetName()) })
	m.open(queues, func(before, after *object, _ bool) { m.ask("queues", "", present(before, after).GetName()) })
	return m
}

func (m *manager) open(k kind, on func(before, after *object, initial bool)) {
	m.openWith(newDice(m.dice.Uint64(), string(k)), k, on)
}

func (m *manager) openWith(d dice, k kind, on func(before, after *object, initial bool)) {
	w := m.world
	s := &stream{kind: k, alive: m.isAlive, on: on, lag: func() time.Duration { return d.between(0, w.plan.Lag) }}
	m.caches[k] = w.api.open(s, w.staleness(d))
}

func (m *manager) ask(reconciler, namespace, name string) {
	m.askIn(request{reconciler, types.NamespacedName{Namespace: namespace, Name: name}},
		m.dice.between(0, 3*time.Millisecond))
}

func (m *manager) askIn(r request, d time.Duration) {
	it := m.work[r]
	if it == nil {
		it = &item{}
		m.work[r] = it
	}
	due := m.world.loop.now.Add(d)
	if !it.due.IsZero() && !due.Before(it.due) {
		return
	}
	it.due = due
	it.turn++
	turn := it.turn
	m.later(d, func() {
		if it.turn == turn {
			it.due = time.Time{}
			m.reconcile(r, it)
		}
	})
}

func (m *manager) reconcile(r request, it *item) {
	of := map[string]reconcile.Reconciler{"jobs": m.jobs, "sets": m.sets, "queues": m.queues}[r.reconciler]
	result, err := outage.Retried(of).Reconcile(quiet, ctrl.Request{NamespacedName: r.key})
	if err != nil {
		it.failures++
		m.askIn(r, min(5*time.Millisecond<<min(it.failures-1, 20), 1000*time.Second))
		return
	}
	it.failures = 0
	if result.RequeueAfter > 0 {
		m.askIn(r, result.RequeueAfter)
	}
}

var quiet = klog.NewContext(context.Background(), logr.Discard())
