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

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

const (
	// auditSettle is how long after the first look a suspicion is looked at again: what is only on its way has arrived.
	auditSettle = 5 * time.Second
	// auditRequestInterval bounds what a request from outside can cost.
	auditRequestInterval = time.Minute
	// auditChunk bounds the objects that one question to the engine's goroutine compares.
	auditChunk = 500
	// auditSuspects bounds the requests of the second look, auditKept the differences that are kept and logged.
	auditSuspects = 200
	auditKept     = 100
)

// DifferenceKind says what was compared with what.
type DifferenceKind string

const (
	// DifferenceLedger: a sum of the ledger and the same sum made anew from all units and pods.
	DifferenceLedger DifferenceKind = "ledger"
	// DifferenceUnit: what the engine knows of a unit, or what its core made of it, and the object in the API.
	DifferenceUnit DifferenceKind = "unit"
	// DifferenceQueue: the place of a unit and the one place where it belongs.
	DifferenceQueue DifferenceKind = "queue"
	// DifferencePod: what the engine knows of a pod and the scheduler's cache of the API.
	DifferencePod DifferenceKind = "pod"
	// DifferenceUsed: what the ledger takes to be counted in used, and Koordinator's used.
	DifferenceUsed DifferenceKind = "used"
)

var differenceKinds = []DifferenceKind{DifferenceLedger, DifferenceUnit, DifferenceQueue, DifferencePod, DifferenceUsed}

// Difference is one place where what the engine goes by is not what it should be.
type Difference struct {
	Kind DifferenceKind
	// Object is a unit or a pod (namespace/name), a quota or a queue; Field is what differs about it.
	Object, Field string
	// Engine is what the engine goes by, Source what the API, the rebuild or Koordinator say.
	Engine, Source string
}

// Audit is the result of a comparison of the engine's state with the API objects and with Koordinator's used (I1, I2, I7).
type Audit struct {
	At   time.Time
	Took time.Duration
	// Units and Pods that were compared, and levels of the quota tree.
	Units, Pods, Levels int
	// Found is the number of differences; Differences the first of them.
	Found       int
	Differences []Difference
	// Rebuilt says that the state was built anew because of them.
	Rebuilt bool
}

// suspicion is a difference that may only be on its way to us. It is confirmed if it is still there some seconds later.
type suspicion struct {
	Difference
	// again says, in the engine's goroutine, whether it is still there; exists, if set, asks the API whether the object
	// is still what the suspicion is about.
	again  func() bool
	exists func(ctx context.Context) (bool, error)
}

// audit is one run.
type audit struct {
	e *Engine
	// ask runs a function in the engine's goroutine; settle waits.
	ask    func(func()) error
	settle func() bool

	result   Audit
	kinds    map[DifferenceKind]int
	suspects []suspicion
	listed   map[string]types.UID
	version  string // of the list
}

// AuditSoon has Run make an audit at once; while one is under way, another after it. It returns at once.
func (e *Engine) AuditSoon() {
	select {
	case e.auditRequests <- struct{}{}:
	default:
	}
}

// LastAudit returns the last result, nil before there is one.
func (e *Engine) LastAudit() *Audit { return e.lastAudit.Load() }

// Audit compares the ledger and the queues with the API objects and Koordinator's used, reports every difference in
// the log and in a metric, and has the state built anew if there is any. It reads units page by page from the API server
// and asks the engine's goroutine in small portions.
func (e *Engine) Audit(ctx context.Context) (Audit, error) {
	a := e.newAudit()
	a.ask = func(f func()) error { return e.Ask(ctx, func(View) { f() }) }
	a.settle = func() bool { return e.sleep(ctx, auditSettle) }
	return a.run(ctx)
}

// AuditNow is Audit for whoever drives Step himself. settle lets pass what takes some time to arrive.
func (e *Engine) AuditNow(ctx context.Context, settle func()) (Audit, error) {
	a := e.newAudit()
	a.ask = func(f func()) error {
		if !e.guard("ask", f) {
			return ErrPanicked
		}
		return nil
	}
	a.settle = func() bool { settle(); return true }
	return a.run(ctx)
}

func (e *Engine) newAudit() *audit {
	return &audit{e: e, kinds: map[DifferenceKind]int{}, listed: map[string]types.UID{}}
}

// runAudits makes an audit every interval while this process leads, and whenever one is requested.
func (e *Engine) runAudits(ctx context.Context) {
	if !e.awaitSync(ctx) {
		return
	}
	var tick <-chan time.Time
	if interval := e.opts.Config.AuditInterval; interval > 0 {
		ticker := e.opts.Clock.NewTicker(interval)
		defer ticker.Stop()
		tick = ticker.C()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.auditRequests:
		case <-tick:
			select {
			case <-e.lead:
			default:
				continue // a standby decides nothing
			}
		}
		if _, err := e.Audit(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The state of admission could not be compared with the API")
		}
	}
}

func (a *audit) run(ctx context.Context) (Audit, error) {
	start := a.e.opts.Clock.Now()
	err := a.compare(ctx)
	if err == nil && a.result.Found > 0 {
		err = a.repair(ctx)
	}
	a.result.At, a.result.Took = start, a.e.opts.Clock.Since(start)
	if err != nil {
		a.e.opts.Metrics.Inc(metrics.AuditsTotal, "Failed")
		return a.result, fmt.Errorf("comparing the state of admission with the API: %w", err)
	}
	a.report(ctx)
	return a.result, nil
}

func (a *audit) compare(ctx context.Context) error {
	steps := []func(context.Context) error{a.compareUnits, a.compareUnlisted, a.compareSums, a.compareUsed, a.comparePods, a.confirm}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(a.result.Differences, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Object, y.Object), cmp.Compare(x.Field, y.Field))
	})
	return nil
}

// found takes a difference for real.
func (a *audit) found(d Difference) {
	a.result.Found++
	a.kinds[d.Kind]++
	if len(a.result.Differences) < auditKept {
		a.result.Differences = append(a.result.Differences, d)
	}
}

// compareUnits compares every listed unit with its record, and the record with the core.
func (a *audit) compareUnits(ctx context.Context) error {
	var version string
	err := a.e.eachUnitPage(ctx, func(units []*unitObject, listVersion string) error {
		version = listVersion
		for chunk := range slices.Chunk(units, auditChunk) {
			if err := a.ask(func() { a.compareListed(chunk) }); err != nil {
				return err
			}
		}
		return nil
	})
	a.version, a.result.Units = version, len(a.listed)
	return err
}

func (a *audit) compareListed(units []*unitObject) {
	e := a.e
	for _, u := range units {
		key := u.key()
		a.listed[key] = u.UID
		rec := e.units[key]
		switch {
		case rec == nil:
			a.suspectUnit(u, "unit", "unknown", "uid "+string(u.UID))
		case rec.object.UID != u.UID:
			a.suspectUnit(u, "uid", string(rec.object.UID), string(u.UID))
		case newer(u, rec.object):
			a.suspectUnit(u, "resourceVersion", rec.object.ResourceVersion, u.ResourceVersion)
		default:
			a.compareWithCore(key, rec)
		}
	}
}

// compareWithCore compares the record, which is immutable once it was read, with what the core made of it. The two change
// in one step, so a difference is real at once; a state that is about to be built anew is not looked at.
func (a *audit) compareWithCore(key string, rec *unitRecord) {
	if rec.flight != nil || a.e.rebuild {
		return
	}
	a.mismatches(DifferenceUnit, a.e.state.VerifyUnit(a.e.resolve(rec.object)))
	a.mismatches(DifferenceQueue, a.e.state.VerifyPlace(key))
}

func (a *audit) mismatches(kind DifferenceKind, list []admission.Mismatch) {
	for _, m := range list {
		a.found(Difference{kind, m.Object, m.Field, m.Have, m.Want})
	}
}

// suspectUnit: the API is ahead of us. It is real if we are still not there though the object did not go meanwhile.
func (a *audit) suspectUnit(u *unitObject, field, ours, theirs string) {
	key := u.key()
	a.suspect(suspicion{
		Difference: Difference{DifferenceUnit, key, field, ours, theirs},
		again: func() bool {
			rec := a.e.units[key]
			return !a.e.watchIsBefore(u.ResourceVersion) && (rec == nil || rec.object.UID != u.UID || newer(u, rec.object))
		},
		exists: func(ctx context.Context) (bool, error) { return a.unitExists(ctx, u) },
	})
}

func (a *audit) suspect(s suspicion) {
	if len(a.suspects) < auditSuspects {
		a.suspects = append(a.suspects, s)
	}
}

func (a *audit) unitExists(ctx context.Context, u *unitObject) (bool, error) {
	found, err := getUnit(ctx, a.e.opts.Client, types.NamespacedName{Namespace: u.Namespace, Name: u.Name})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return found.UID == u.UID, nil
}

// compareUnlisted finds units that the engine has and the API has not. What is newer than the list is not in it.
func (a *audit) compareUnlisted(context.Context) error {
	return a.ask(func() {
		for _, key := range sortedKeys(a.e.units) {
			u := a.e.units[key].object
			if _, listed := a.listed[key]; listed || versionAfter(u.ResourceVersion, a.version) {
				continue
			}
			a.suspect(suspicion{
				Difference: Difference{DifferenceUnit, key, "unit", "uid " + string(u.UID), "does not exist"},
				again: func() bool {
					rec := a.e.units[key]
					return !a.e.watchIsBefore(a.version) && rec != nil && rec.object.UID == u.UID
				},
				exists: func(ctx context.Context) (bool, error) {
					there, err := a.unitExists(ctx, u)
					return !there, err
				},
			})
		}
	})
}

// watchIsBefore says that the watch of units has not come to this version yet, as for a while after the API server was
// away: what it has not said is no difference.
func (e *Engine) watchIsBefore(version string) bool {
	return e.sources.units != nil && versionAfter(version, e.sources.units.LastSyncResourceVersion())
}

// versionAfter says whether version a is after b; false if they cannot be compared.
func versionAfter(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}

// compareSums compares the ledger with its rebuild, and every queue with its order; each is of one moment.
func (a *audit) compareSums(context.Context) error {
	var queues []string
	err := a.ask(func() {
		if a.e.rebuild {
			return
		}
		queues = a.e.state.Queues()
		for _, d := range a.e.state.Verify() {
			a.found(Difference{DifferenceLedger, d.Level, d.Resource, fmt.Sprint(d.Ledger), fmt.Sprint(d.Rebuilt)})
		}
	})
	if err != nil {
		return err
	}
	for _, queue := range queues {
		err := a.ask(func() {
			if !a.e.rebuild {
				a.mismatches(DifferenceQueue, a.e.state.VerifyQueue(queue))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compareUsed compares what the ledger takes for counted in used with used. Less is no difference: the rest are pods of
// others. More means that capacity is given away twice (I1).
func (a *audit) compareUsed(context.Context) error {
	return a.ask(func() {
		over := a.e.overcounted()
		a.result.Levels = len(a.e.quotas.known)
		for _, d := range over {
			a.suspect(suspicion{Difference: d, again: func() bool {
				return slices.ContainsFunc(a.e.overcounted(), func(x Difference) bool { return x.Object == d.Object && x.Field == d.Field })
			}})
		}
	})
}

// overcounted lists where pods of units are in the ledger with more than Koordinator's used says now.
func (e *Engine) overcounted() []Difference {
	var found []admission.Quota
	names := sortedKeys(e.quotas.known)
	if !e.askQuotas(func() { found, _ = e.opts.Quotas.Observe(names) }) {
		return nil
	}
	// Quotas that changed are told with one observation, and this one is not taken: the step that this is in makes another.
	e.quotas.all = true
	var out []Difference
	for _, q := range found {
		for _, it := range e.state.Assigned(q.Name).Items() {
			used, counted := q.Used.Get(it.Name)
			if counted && it.Amount > used {
				out = append(out, Difference{DifferenceUsed, q.Name, it.Name,
					resources.Format(it.Name, it.Amount), resources.Format(it.Name, used)})
			}
		}
	}
	return out
}

// comparePods compares the engine's pods with the scheduler's cache.
func (a *audit) comparePods(context.Context) error {
	if a.e.opts.Pods == nil {
		return nil
	}
	cached := map[types.UID]*corev1.Pod{}
	var concerned []*corev1.Pod
	for _, obj := range a.e.opts.Pods.GetStore().List() {
		pod, ok := obj.(*corev1.Pod)
		if ok && a.e.concerns(pod) && !terminal(pod) {
			cached[pod.UID] = pod
			concerned = append(concerned, pod)
		}
	}
	slices.SortFunc(concerned, func(x, y *corev1.Pod) int { return cmp.Compare(x.UID, y.UID) })
	a.result.Pods = len(concerned)
	for chunk := range slices.Chunk(concerned, auditChunk) {
		err := a.ask(func() {
			for _, pod := range chunk {
				if field, ours, theirs := a.e.podDiffers(pod); field != "" {
					a.suspectPod(pod, field, ours, theirs)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return a.ask(func() {
		for _, uid := range sortedKeys(a.e.pods.byUID) {
			if rec := a.e.pods.byUID[uid]; cached[uid] == nil && rec.pod != nil {
				a.suspectGonePod(uid, rec.pod)
			}
		}
	})
}

// podDiffers says where the engine's view of an existing pod differs from the pod.
func (e *Engine) podDiffers(pod *corev1.Pod) (field, ours, theirs string) {
	rec := e.pods.byUID[pod.UID]
	_, unsettled := e.pods.unsettled[pod.UID]
	switch {
	case rec == nil || rec.pod == nil:
		return "pod", "unknown", "uid " + string(pod.UID)
	case versionAfter(pod.ResourceVersion, rec.pod.ResourceVersion):
		return "resourceVersion", rec.pod.ResourceVersion, pod.ResourceVersion
	case rec.unit != e.unitOf(pod):
		return "unit", rec.unit, e.unitOf(pod)
	case rec.unit != "" && rec.pod.Spec.NodeName != "" && !rec.told.Assigned && !unsettled:
		return "assigned", "no", "on node " + rec.pod.Spec.NodeName
	}
	return "", "", ""
}

func (a *audit) cachedPod(pod *corev1.Pod) *corev1.Pod {
	obj, _, err := a.e.opts.Pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	if now, ok := obj.(*corev1.Pod); err == nil && ok && now.UID == pod.UID && !terminal(now) {
		return now
	}
	return nil
}

func (a *audit) suspectPod(pod *corev1.Pod, field, ours, theirs string) {
	a.suspect(suspicion{
		Difference: Difference{DifferencePod, pod.Namespace + "/" + pod.Name, field, ours, theirs},
		again: func() bool {
			if a.cachedPod(pod) == nil {
				return false
			}
			still, _, _ := a.e.podDiffers(pod)
			return still == field
		},
	})
}

func (a *audit) suspectGonePod(uid types.UID, pod *corev1.Pod) {
	a.suspect(suspicion{
		Difference: Difference{DifferencePod, pod.Namespace + "/" + pod.Name, "pod", "uid " + string(uid), "is over or does not exist"},
		again:      func() bool { return a.e.pods.byUID[uid] != nil && a.cachedPod(pod) == nil },
	})
}

// confirm looks at the suspicions once more, when what was on its way has had the time to arrive.
func (a *audit) confirm(ctx context.Context) error {
	if len(a.suspects) == 0 {
		return nil
	}
	if !a.settle() {
		return ctx.Err()
	}
	var still []suspicion
	err := a.ask(func() {
		for _, s := range a.suspects {
			if s.again() {
				still = append(still, s)
			}
		}
	})
	for _, s := range still {
		if s.exists != nil {
			there, err := s.exists(ctx)
			if err != nil {
				return err
			}
			if !there {
				continue
			}
		}
		a.found(s.Difference)
	}
	return err
}

// repair lists all units once more and has the state built anew from them, as at start. It happens in one step of the
// engine, in which all quotas are observed before anything is decided; what is being written counts as held.
func (a *audit) repair(ctx context.Context) error {
	units, version, err := a.e.listUnits(ctx)
	if err != nil {
		return err
	}
	var pods []*corev1.Pod
	if a.e.opts.Pods != nil {
		for _, obj := range a.e.opts.Pods.GetStore().List() {
			if pod, ok := obj.(*corev1.Pod); ok && a.e.concerns(pod) {
				pods = append(pods, pod)
			}
		}
	}
	a.result.Rebuilt = true
	return a.ask(func() { a.e.relist(units, version, pods) })
}

// relist takes lists for what there is, and has the core's state built anew in this step.
func (e *Engine) relist(units []*unitObject, version string, pods []*corev1.Pod) {
	now := e.opts.Clock.Now()
	listed := make(map[string]struct{}, len(units))
	for _, u := range units {
		key := u.key()
		listed[key] = struct{}{}
		e.applyUnit(now, key, unitEvent{object: u})
	}
	for _, key := range sortedKeys(e.units) {
		rec := e.units[key]
		if _, ok := listed[key]; !ok && !versionAfter(rec.object.ResourceVersion, version) {
			e.forgetUnit(now, key, rec)
		}
	}
	if e.opts.Pods != nil {
		e.relistPods(now, pods)
	}
	e.rebuildBecause(rebuildDifference)
	e.quotas.all = true
	e.retryIn(now, 0)
}

func (e *Engine) relistPods(now time.Time, pods []*corev1.Pod) {
	listed := make(map[types.UID]struct{}, len(pods))
	for _, pod := range pods {
		listed[pod.UID] = struct{}{}
		if rec := e.pods.byUID[pod.UID]; rec == nil || rec.pod == nil || !versionAfter(rec.pod.ResourceVersion, pod.ResourceVersion) {
			e.applyPod(now, podEvent{pod: pod})
		}
	}
	for _, uid := range sortedKeys(e.pods.byUID) {
		rec := e.pods.byUID[uid]
		if _, ok := listed[uid]; ok || rec.pod == nil {
			continue
		}
		if obj, exists, err := e.opts.Pods.GetStore().GetByKey(rec.pod.Namespace + "/" + rec.pod.Name); err == nil {
			if pod, ok := obj.(*corev1.Pod); !exists || (ok && pod.UID != uid) {
				e.forgetPod(now, uid)
			}
		}
	}
}

// report says what was found in the log and in metrics, and keeps it for whoever asks.
func (a *audit) report(ctx context.Context) {
	m, log := a.e.opts.Metrics, klog.FromContext(ctx)
	for _, kind := range differenceKinds {
		m.Set(metrics.LedgerDifferences, float64(a.kinds[kind]), string(kind))
	}
	r := &a.result
	if r.Found == 0 {
		m.Inc(metrics.AuditsTotal, "Clean")
		log.V(2).Info("The state of admission agrees with the API", "queueUnits", r.Units, "pods", r.Pods, "levels", r.Levels, "took", r.Took)
	} else {
		m.Inc(metrics.AuditsTotal, "Differences")
		for _, d := range r.Differences {
			log.Error(nil, "The state of admission differs", "kind", d.Kind, "object", d.Object, "field", d.Field, "engine", d.Engine, "source", d.Source)
		}
		log.Error(nil, "The state of admission differed from the API and is built anew", "differences", r.Found,
			"queueUnits", r.Units, "pods", r.Pods, "levels", r.Levels, "took", r.Took)
	}
	kept := *r
	a.e.lastAudit.Store(&kept)
}
