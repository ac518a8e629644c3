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
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/priority"
)

// Driver makes each step of an engine itself, in place of Run, for tests and simulations: nothing happens but what its
// owner calls, one call at a time. Objects come by Feed in place of informers, and writes go to Options.Submit.
type Driver struct{ *Engine }

// Drive takes an engine that nobody runs.
func Drive(e *Engine) *Driver { return &Driver{e} }

// Step does all that there is to do now and returns when the engine wants to be called again though nothing is fed;
// zero means never.
func (d *Driver) Step() time.Time { return d.step() }

// Lead lists the units; the next step leads.
func (d *Driver) Lead(ctx context.Context) error {
	start := d.opts.Clock.Now()
	units, err := d.missedUnits(ctx, func(f func()) error {
		f()
		return nil
	})
	if err != nil {
		return err
	}
	d.box.call(func() {
		d.load()
		d.takeLead(units, start)
	})
	return nil
}

// Loaded has the next step take all that was fed for all that there is. Lead does the same.
func (d *Driver) Loaded() { d.box.call(d.load) }

// Extend replaces what extensions give to the core; it is for before anything was fed.
func (d *Driver) Extend(policies map[string]queue.Factory, checks []queue.Check) {
	d.core.extend(policies, checks)
}

// DecisionsTake has every decision count as having taken as long as took says, in place of what the clock says; it is
// for before anything was decided.
func (d *Driver) DecisionsTake(took func() time.Duration) {
	d.pace = pace.NewDecisions(func(time.Time) time.Duration { return took() })
}

// Gather is how long Run waits for more news of the kind that can only take room away.
func (d *Driver) Gather() time.Duration { return d.gather() }

// Verify compares the ledger with its rebuild (I7).
func (d *Driver) Verify() []ledger.Difference { return d.core.read().Audit().Ledger() }

// Places lists the units that the engine has, and what is wrong with the places that they have in the core: a unit is
// in exactly one, and the one that its object says (I2). While the state waits to be rebuilt, nothing counts as wrong.
func (d *Driver) Places() (units map[string]types.UID, wrong []admission.Mismatch) {
	units = make(map[string]types.UID, d.units.len())
	for _, key := range d.units.keys() {
		rec := d.units.get(key)
		units[key] = rec.object.UID
		if d.core.sound() && rec.flight == nil {
			wrong = append(wrong, d.core.read().Audit().Unit(d.resolve(rec.object))...)
		}
	}
	if !d.core.sound() {
		return units, nil
	}
	return units, append(wrong, d.core.read().Audit().Places()...)
}

// Audit is that of the engine; settle lets pass what takes some time to arrive.
func (d *Driver) Audit(ctx context.Context, settle func()) (Audit, error) {
	ask := func(f func()) error {
		if !d.guard("ask", f) {
			return ErrPanicked
		}
		return nil
	}
	return d.newAudit(ask, func() bool { settle(); return true }).run(ctx)
}

// FeedUnit takes a QueueUnit as the API server would send it, in its last state if it is gone.
func (d *Driver) FeedUnit(obj json.Marshaler, gone bool) {
	if u := objects.DecodeUnit(sent[objects.WireUnit](obj)); gone {
		d.box.unitGone(u)
	} else {
		d.box.unit(u)
	}
}

// FeedQueue takes a Queue.
func (d *Driver) FeedQueue(obj json.Marshaler, gone bool) {
	q := objects.DecodeQueue(sent[objects.WireQueue](obj), d.opts.Config.DefaultQueuePolicy, d.opts.Config.Timeouts)
	if gone {
		d.sources.putQueue(q.Name, nil)
		return
	}
	d.sources.putQueue(q.Name, q)
}

// FeedClass takes a PriorityClass.
func (d *Driver) FeedClass(obj json.Marshaler, gone bool) {
	c := objects.DecodeClass(sent[schedulingv1.PriorityClass](obj))
	if gone {
		d.sources.putClass(c.Name, nil)
		return
	}
	d.sources.putClass(c.Name, c)
}

// FeedNamespace takes a Namespace.
func (d *Driver) FeedNamespace(obj json.Marshaler, gone bool) {
	n := sent[metav1.PartialObjectMetadata](obj)
	if gone {
		d.box.bound(n.Name, nil)
		d.waits.NamespaceGone(n.Name)
		return
	}
	d.box.bound(n.Name, priority.BoundOf(n.Annotations))
}

// FeedCheck takes an AdmissionCheck.
func (d *Driver) FeedCheck(obj json.Marshaler, gone bool) {
	c := objects.DecodeCheck(sent[objects.WireCheck](obj))
	if gone {
		d.sources.putCheck(c.Name, nil)
		return
	}
	d.sources.putCheck(c.Name, c)
}

// sent is the object as a client reads it.
func sent[T any](obj json.Marshaler) *T {
	text, err := obj.MarshalJSON()
	utilruntime.Must(err)
	read := new(T)
	utilruntime.Must(utiljson.Unmarshal(text, read))
	return read
}

// FeedJob takes the UID of the job of that name, the owner that controls it, and whether it carries the mark of a
// suspension; "" when there is none. The kind is named as jobs.Kind does.
func (d *Driver) FeedJob(kind, namespace, name string, uid types.UID, owner *metav1.OwnerReference, marked bool) {
	d.sources.putJob(kind, namespace, name, jobEvent{uid: uid, owner: owner, marked: marked})
}

// FeedPod takes a pod. initial says that it existed before anything was watched: if it is on a node, it is counted.
func (d *Driver) FeedPod(pod *corev1.Pod, gone, initial bool) { d.sources.putPod(pod, gone, initial) }

// The methods below are for a caller that takes the writes by Options.Submit, in place of the pool of writers.

// Decides says whether the write carries a decision: its Do is called until the outcome is definite. Of other writes
// every outcome is final.
func (w *Write) Decides() bool { return w.decides() }

// Admits says whether the write admits its unit.
func (w *Write) Admits() bool { return w.kind == writeAdmit }

// Object is what the write changes, and the UID that it was decided for; empty for a Queue.
func (w *Write) Object() (types.NamespacedName, types.UID) {
	if w.base == nil {
		return w.key, ""
	}
	return w.key, w.base.UID
}

// Dropped says that nobody waits for the write any more, so that it is not sent, or not again.
func (w *Write) Dropped() bool { return w.ctx.Err() != nil }

// Definite says whether the outcome is known: the write was applied, or never will be.
func (r Result) Definite() bool { return r.outcome != admission.OutcomeUnknown }
