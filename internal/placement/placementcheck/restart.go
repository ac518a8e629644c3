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
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A start that fails is made again after startAgain. It lists units in pages. For restoreTime it looks for the nodes of
// units that had some before, and then goes on without. restoredFor is how long these nodes are kept: a pod that was on
// a node and not ready counts twice as long.
const (
	startAgain  = time.Second
	startPage   = 500
	restoreTime = time.Minute
	restoredFor = 5 * time.Minute
)

// start has all units that are reserved answered. Before, it finds nodes for those units again that were told so by a
// former leader: nobody knows which nodes that one kept.
func (c *Checker) start(ctx context.Context) error {
	c.started.Store(true)
	if err := c.install(); err != nil {
		if meta.IsNoMatchError(err) {
			return nil // no unit has a check
		}
		return err
	}
	ours, err := c.ours(ctx)
	if err != nil {
		return err
	}
	restore, behind := newTurns(c.clock), ""
	for first := true; first || behind != ""; first = false {
		units := &v1alpha1.QueueUnitList{}
		if err := c.objects.List(ctx, units, client.Limit(startPage), client.Continue(behind)); err != nil {
			return fmt.Errorf("units: %w", err)
		}
		for i := range units.Items {
			qu := &units.Items[i]
			next := item{namespace: qu.Namespace, name: qu.Name}
			if unit.Phase(qu.Status.Phase) == unit.PhaseReserved {
				c.queue.Add(next)
			}
			if owed(qu, ours) {
				restore.Push(next)
			}
		}
		behind = units.Continue
	}
	ctx, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	for restore.Len() > 0 && ctx.Err() == nil {
		next, taken := restore.Pop(), c.clock.Now()
		c.restore(ctx, next, ours)
		restore.used(next.namespace, taken)
	}
	return nil
}

// ours are the names of the checks that are answered here.
func (c *Checker) ours(ctx context.Context) (sets.Set[string], error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	if err := c.objects.List(ctx, list); err != nil {
		return nil, fmt.Errorf("checks: %w", err)
	}
	ours := sets.New[string]()
	for i := range list.Items {
		name, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "controllerName")
		if name == v1alpha1.PlacementController {
			ours.Insert(list.Items[i].GetName())
		}
	}
	return ours, nil
}

// owed says whether nodes were found for a unit that holds quota, and not all of its pods were ready since.
func owed(qu *v1alpha1.QueueUnit, ours sets.Set[string]) bool {
	if !unit.Phase(qu.Status.Phase).Holds() ||
		meta.IsStatusConditionTrue(qu.Status.Conditions, v1alpha1.ConditionPodsReady) {
		return false
	}
	for i := range qu.Status.AdmissionChecks {
		if s := &qu.Status.AdmissionChecks[i]; s.State == admissioncheck.Ready && ours.Has(s.Name) {
			return true
		}
	}
	return false
}

// restore keeps nodes for the pods of a unit that are not ready. Of a released unit it keeps as many as there are.
func (c *Checker) restore(ctx context.Context, next item, ours sets.Set[string]) {
	c.look(next)
	qu := &v1alpha1.QueueUnit{}
	if err := c.objects.Get(ctx, types.NamespacedName{Namespace: next.namespace, Name: next.name}, qu); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot find nodes again", "unit", klog.KRef(next.namespace, next.name))
		return
	}
	if !owed(qu, ours) {
		return
	}
	found, why, err := c.search(ctx, qu, nil)
	if why != "" || err != nil {
		klog.FromContext(ctx).Info("Not all pods find nodes again", "unit", klog.KObj(qu), "reason", why, "err", err)
	}
	if unit.Phase(qu.Status.Phase).Releases() {
		found.Fits = true
		c.restored[next] = qu.UID
		c.queue.AddAfter(next, restoredFor)
	}
	c.promise(found)
}

// expire ends a promise that a start has made again. A unit that was reserved again has lost it already.
func (c *Checker) expire(next item) {
	if uid, ok := c.restored[next]; ok {
		delete(c.restored, next)
		c.placer.Forget(uid)
	}
}
