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

package placementcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/placement"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// searchTime bounds the search for the nodes of one unit.
const searchTime = 15 * time.Second

// mostPods bounds the pods for which one search looks for nodes.
const mostPods = 10_000

// A unit that finds no nodes is tried again after leastRetry, and after twice the time with each retry, up to
// mostRetry.
const leastRetry, mostRetry = 5 * time.Second, 5 * time.Minute

// A failed item is retried after leastWait, and after twice the time with each failure, up to mostWait.
const leastWait, mostWait = 5 * time.Millisecond, 5 * time.Minute

// ready is the message of a unit whose pods find nodes.
const ready = "all pods find a node"

// Reasons of metrics.PlacementMissesTotal.
const otherNode, lostQuota, ended = "OtherNode", "LostQuota", "Ended"

// Placer looks for nodes and keeps them, as *placement.Placer does.
type Placer interface {
	Place(ctx context.Context, r placement.Request) (placement.Answer, error)
	Promise(a placement.Answer)
	Promised(unit types.UID) bool
	Bound(unit types.UID, node string) (missed bool)
	Forget(unit types.UID) (open int)
}

// Checker answers the checks of v1alpha1.PlacementController. It is told of units, pods and checks as a
// witness.Witness; Run answers.
type Checker struct {
	placer     Placer
	objects    client.Client
	controller *admissioncheck.Controller // nil until AdmissionChecks are known to be installed
	kind       schema.GroupVersionKind    // of AdmissionChecks
	clock      clock.PassiveClock
	turns      *turns // of queue
	queue      workqueue.TypedRateLimitingInterface[item]
	searchTime time.Duration
	// started is set when Run reads the units that are reserved. Before, none is kept in mind here.
	started atomic.Bool
	// restored are units for which a start has found nodes again. It belongs to the goroutine of Run.
	restored map[item]types.UID

	metrics *metrics.Set
	// released are units that were released while nodes were kept for them. It belongs to the goroutine that calls Unit.
	released map[types.UID]struct{}

	shared   sync.Mutex // guards what follows
	foreseen map[item]witness.Question
	// looking is what Run looks at. lost says that this unit has lost its quota since.
	looking item
	lost    bool
}

// item is a unit, or an AdmissionCheck, which has no namespace.
type item struct {
	namespace, name string
	// foreseen: there is a question about the unit.
	foreseen bool
}

// New returns a checker that reads and writes with a client. It counts in a Set, which may be nil.
func New(placer Placer, objects client.Client, counts *metrics.Set, now clock.PassiveClock) *Checker {
	turns := newTurns(now)
	return &Checker{
		clock: now, turns: turns, metrics: counts, released: map[types.UID]struct{}{}, restored: map[item]types.UID{},
		placer: placer, objects: objects, searchTime: searchTime, foreseen: map[item]witness.Question{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			// Not that of controllers: it has a rate that all namespaces share.
			workqueue.NewTypedItemExponentialFailureRateLimiter[item](leastWait, mostWait),
			workqueue.TypedRateLimitingQueueConfig[item]{
				DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{
					Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[item]{Queue: turns}),
				}),
			}),
	}
}

// Unit is in a phase; without one it is gone.
func (c *Checker) Unit(key string, uid types.UID, phase unit.Phase) {
	namespace, name, _ := strings.Cut(key, "/")
	next := item{namespace: namespace, name: name}
	switch {
	case phase == unit.PhaseReserved:
		if c.started.Load() {
			c.queue.Add(next)
		}
	case !phase.Releases():
		c.forget(next, uid, phase)
	case c.placer.Promised(uid):
		c.released[uid] = struct{}{}
	}
}

// forget ends the promise to a unit. Its places are missed where the unit was released.
func (c *Checker) forget(lost item, uid types.UID, phase unit.Phase) {
	c.shared.Lock()
	c.lost = c.lost || c.looking == lost
	missed := c.placer.Forget(uid)
	c.shared.Unlock()
	if _, released := c.released[uid]; !released {
		return
	}
	delete(c.released, uid)
	reason := lostQuota
	if phase.Terminal() || phase == unit.PhaseNone {
		reason = ended
	}
	c.metrics.Add(missed, metrics.PlacementMissesTotal, reason)
}

// Bound says that a pod of a unit is on a node.
func (c *Checker) Bound(of types.UID, node string) {
	c.metrics.CountIf(c.placer.Bound(of, node), metrics.PlacementMissesTotal, otherNode)
}

// Check was changed.
func (c *Checker) Check(name string) { c.queue.Add(item{name: name}) }

// Run answers until the context ends. One unit is looked at after the other, so that nodes are promised once. The
// namespaces take turns by the time that they use.
func (c *Checker) Run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	err := wait.PollUntilContextCancel(ctx, startAgain, true, func(ctx context.Context) (bool, error) {
		err := c.start(ctx)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Placement checks are not answered yet")
		}
		return err == nil, nil
	})
	for err == nil && c.answer(ctx) {
	}
}

func (c *Checker) answer(ctx context.Context) bool {
	next, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(next)
	defer c.turns.used(next.namespace, c.clock.Now())
	c.look(next)
	c.expire(next)
	if next.foreseen {
		c.foresee(ctx, next)
		return true
	}
	result, err := c.reconcile(ctx, next)
	if err != nil {
		klog.FromContext(ctx).Error(err, "A placement check is answered again",
			"object", klog.KRef(next.namespace, next.name))
		c.queue.AddRateLimited(next)
		return true
	}
	c.queue.Forget(next)
	if result.RequeueAfter > 0 {
		c.queue.AddAfter(next, result.RequeueAfter)
	}
	return true
}

func (c *Checker) look(at item) {
	c.shared.Lock()
	defer c.shared.Unlock()
	c.looking, c.lost = at, false
}

// promise keeps nodes for the unit that is looked at. If the unit was lost, it is forgotten already.
func (c *Checker) promise(found placement.Answer) {
	c.shared.Lock()
	defer c.shared.Unlock()
	if !c.lost {
		c.placer.Promise(found)
	}
}

func (c *Checker) reconcile(ctx context.Context, next item) (reconcile.Result, error) {
	if err := c.install(); err != nil {
		return reconcile.Result{}, err
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: next.namespace, Name: next.name}}
	if next.namespace == "" {
		return c.controller.ReconcileCheck(ctx, request)
	}
	return c.controller.ReconcileUnit(ctx, request)
}

// install fails as long as there are no AdmissionChecks.
func (c *Checker) install() error {
	if c.controller != nil {
		return nil
	}
	mapping, err := c.objects.RESTMapper().RESTMapping(schema.GroupKind{Group: v1beta1.GroupName, Kind: "AdmissionCheck"})
	if err != nil {
		return err
	}
	c.kind = mapping.GroupVersionKind
	c.controller = &admissioncheck.Controller{ControllerName: v1alpha1.PlacementController, Check: c.check}
	c.controller.Use(c.objects, c.kind)
	return nil
}

// check looks for nodes once per reservation: what was promised to a unit stays until its pods are bound.
func (c *Checker) check(
	ctx context.Context, qu *v1alpha1.QueueUnit, check *v1beta1.AdmissionCheck,
) (a admissioncheck.Answer, err error) {
	if c.placer.Promised(qu.UID) {
		return admissioncheck.Answer{State: admissioncheck.Ready, Message: ready}, nil
	}
	found, why, err := c.search(ctx, qu, nil)
	switch {
	case err != nil:
		return a, err
	case tooMany(qu) != "": // however often it is asked
		return admissioncheck.Answer{State: admissioncheck.Rejected, Message: why}, nil
	case why != "":
		return admissioncheck.Answer{
			State: admissioncheck.Retry, Message: why, RequeueAfter: retryAfter(qu, check.Name),
		}, nil
	}
	c.promise(found)
	return admissioncheck.Answer{State: admissioncheck.Ready, Message: ready}, nil
}

// search looks for nodes for the pods of a unit that are still to come, as if others were gone. If they find none, why
// says so. A panic, as of a filter, is a no.
func (c *Checker) search(
	ctx context.Context, qu *v1alpha1.QueueUnit, gone []*corev1.Pod,
) (found placement.Answer, why string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.metrics.Inc(metrics.PanicsTotal, "placement")
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", cause), "Nodes were not found", "unit", klog.KObj(qu),
				"stack", string(debug.Stack()))
			found, why, err = placement.Answer{}, fmt.Sprintf("internal error while nodes were looked for: %v", cause), nil
		}
	}()
	if why := tooMany(qu); why != "" {
		return found, why, nil
	}
	sets, err := podSets(qu)
	if err != nil {
		return found, err.Error(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.searchTime)
	defer cancel()
	found, err = c.placer.Place(ctx, placement.Request{Sets: sets, Gone: gone})
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return found, c.outOfTime(sets, &found), nil
	case err == nil && !found.Fits:
		why = found.Shortage.String()
	}
	return found, why, err
}

func (c *Checker) outOfTime(sets []placement.PodSet, found *placement.Answer) string {
	var pods, all int
	for i := range found.Placed {
		pods += found.Placed[i].Count
	}
	for i := range sets {
		all += sets[i].Count
	}
	return fmt.Sprintf("the search for nodes is not over after %s: %d of %d pods have found one of %d nodes",
		c.searchTime, pods, all, found.Nodes)
}

func retryAfter(qu *v1alpha1.QueueUnit, check string) time.Duration {
	after := leastRetry
	for i := range qu.Status.AdmissionChecks {
		if s := &qu.Status.AdmissionChecks[i]; s.Name == check {
			after <<= min(max(ptr.Deref(s.RetryCount, 0), 0), 10)
		}
	}
	return min(after, mostRetry)
}

// podSets are the pods of a unit that are still to come. The error is about a template that cannot be read.
func podSets(qu *v1alpha1.QueueUnit) (sets []placement.PodSet, err error) {
	for i := range qu.Spec.PodSets {
		set := &qu.Spec.PodSets[i]
		count := expected(qu, set)
		if count == 0 {
			continue
		}
		pods, err := podtemplate.Scheduled(set.Template.Raw)
		if err != nil {
			return nil, fmt.Errorf("template of pod set %q: %w", set.Name, err)
		}
		if c := qu.Status.QuotaChoice; c != nil && len(c.NodeSelector) > 0 {
			selector := maps.Clone(c.NodeSelector)
			maps.Copy(selector, pods.Spec.NodeSelector)
			pods.Spec.NodeSelector = selector
		}
		sets = append(sets, placement.PodSet{
			Unit: qu.UID, Name: set.Name, Count: int(count), Template: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: qu.Namespace, Labels: pods.Labels, Annotations: pods.Annotations,
				},
				Spec: pods.Spec,
			},
		})
	}
	return sets, nil
}

// tooMany says that nobody looks for nodes for so many pods as a unit still expects; else it is empty.
func tooMany(qu *v1alpha1.QueueUnit) string {
	pods := int64(0)
	for i := range qu.Spec.PodSets {
		pods += expected(qu, &qu.Spec.PodSets[i])
	}
	if pods <= mostPods {
		return ""
	}
	return fmt.Sprintf("%d pods of the job need a node, and the scheduler looks for nodes for at most %d pods of a job",
		pods, mostPods)
}

// expected pods of a set: those that do not run.
func expected(qu *v1alpha1.QueueUnit, set *v1alpha1.PodSet) int64 {
	return max(0, int64(admissioncheck.Pods(qu, set))-running(qu, set.Name))
}

// running pods of a set, as the controller saw them last.
func running(qu *v1alpha1.QueueUnit, set string) int64 {
	for i := range qu.Status.Admissions {
		if of := &qu.Status.Admissions[i]; of.Name == set {
			return of.Running
		}
	}
	return 0
}
