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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/audit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/priority"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// Driver makes each step of an engine itself, in place of Run, for tests and simulations. Only calls of its owner have
// an effect, one at a time. Objects come by Feed in place of informers, and writes go to Options.Submit.
type Driver struct{ Engine *Engine }

// Drive takes an engine that nobody runs.
func Drive(e *Engine) *Driver { return &Driver{e} }

// Step does all work that is due, and returns when it must be called again without new events; zero means never.
func (d *Driver) Step() time.Time { return d.Engine.step() }

// Lead lists the units; the next step leads.
func (d *Driver) Lead(ctx context.Context) error {
	start := d.Engine.Clock.Now()
	units, err := d.Engine.missedUnits(ctx, func(f func()) error {
		f()
		return nil
	})
	if err != nil {
		return err
	}
	d.Engine.box.Call(func() {
		d.Engine.load()
		d.Engine.takeLead(units, start)
	})
	return nil
}

// Loaded has the next step take all that was fed for all that there is. Lead does the same.
func (d *Driver) Loaded() { d.Engine.box.Call(d.Engine.load) }

// Extend replaces what extensions give to the core; it is for before anything was fed.
func (d *Driver) Extend(policies map[string]queue.Factory, checks []queue.Check) {
	d.Engine.core.Extend(policies, checks)
}

// DecisionsTake replaces the measured time of decisions by that of took. Call it before the first decision.
func (d *Driver) DecisionsTake(took func() time.Duration) {
	d.Engine.decisions.pace = pace.NewDecisions(func(time.Time) time.Duration { return took() })
}

// Gather is how long Run waits for more news of the kind that can only take room away.
func (d *Driver) Gather() time.Duration { return d.Engine.gather() }

// Verify compares the ledger with its rebuild (I7).
func (d *Driver) Verify() []ledger.Difference { return d.Engine.core.Read().Audit().Ledger() }

// Places lists the units of the engine, and the faults in their places in the core. A unit is in exactly one, the one
// that its object says (I2). While the state waits to be rebuilt, nothing counts as wrong.
func (d *Driver) Places() (units map[string]types.UID, wrong []admission.Mismatch) {
	units = make(map[string]types.UID, d.Engine.units.Len())
	for _, key := range d.Engine.units.Keys() {
		rec := d.Engine.units.Get(key)
		units[key] = rec.Object.UID
		if d.Engine.core.Sound() && rec.Flight == nil {
			wrong = append(wrong, d.Engine.core.Read().Audit().Unit(d.Engine.facts.resolve(rec.Object))...)
		}
	}
	if !d.Engine.core.Sound() {
		return units, nil
	}
	return units, append(wrong, d.Engine.core.Read().Audit().Places()...)
}

// Audit is that of the engine; settle lets pass what takes some time to arrive.
func (d *Driver) Audit(ctx context.Context, settle func()) (audit.Result, error) {
	ask := func(f func()) error {
		if !d.Engine.Guard("ask", f) {
			return ErrPanicked
		}
		return nil
	}
	return d.Engine.auditor.Run(ctx, ask, func() bool { settle(); return true })
}

// FeedUnit takes a QueueUnit as the API server would send it, in its last state if it is gone.
func (d *Driver) FeedUnit(obj json.Marshaler, gone bool) {
	if u := objects.DecodeUnit(sent[objects.WireUnit](obj)); gone {
		d.Engine.box.UnitGone(u)
	} else {
		d.Engine.box.Unit(u)
	}
}

// FeedQueue takes a Queue.
func (d *Driver) FeedQueue(obj json.Marshaler, gone bool) {
	config := &d.Engine.opts.Config
	q := objects.DecodeQueue(sent[objects.WireQueue](obj), config.DefaultQueuePolicy, config.Timeouts)
	if gone {
		d.Engine.box.Queue(q.Name, nil)
		return
	}
	d.Engine.box.Queue(q.Name, q)
}

// FeedClass takes a PriorityClass.
func (d *Driver) FeedClass(obj json.Marshaler, gone bool) {
	c := objects.DecodeClass(sent[schedulingv1.PriorityClass](obj))
	if gone {
		d.Engine.box.Class(c.Name, nil)
		return
	}
	d.Engine.box.Class(c.Name, c)
}

// FeedNamespace takes a Namespace.
func (d *Driver) FeedNamespace(obj json.Marshaler, gone bool) {
	n := sent[metav1.PartialObjectMetadata](obj)
	if gone {
		d.Engine.box.Bound(n.Name, nil)
		d.Engine.facts.waits.NamespaceGone(n.Name)
		return
	}
	d.Engine.box.Bound(n.Name, priority.BoundOf(n.Annotations))
}

// FeedCheck takes an AdmissionCheck.
func (d *Driver) FeedCheck(obj json.Marshaler, gone bool) {
	c := objects.DecodeCheck(sent[objects.WireCheck](obj))
	if gone {
		d.Engine.box.Check(c.Name, nil)
		return
	}
	d.Engine.box.Check(c.Name, c)
}

// sent is the object as a client reads it.
func sent[T any](obj json.Marshaler) *T {
	text, err := obj.MarshalJSON()
	utilruntime.Must(err)
	read := new(T)
	utilruntime.Must(utiljson.Unmarshal(text, read))
	return read
}

// FeedJob sets the UID of the job of that name ("" for none), its controlling owner, and whether it has the mark of a
// suspension. The kind is named as in jobs.Kind.
func (d *Driver) FeedJob(kind, namespace, name string, uid types.UID, owner *metav1.OwnerReference, marked bool) {
	d.Engine.box.Job(kind, namespace, name, mail.JobEvent{UID: uid, Owner: owner, Marked: marked})
}

// FeedPod takes a pod. initial says that it existed before anything was watched: if it is on a node, it is counted.
func (d *Driver) FeedPod(pod *corev1.Pod, gone, initial bool) {
	d.Engine.sources.PutPod(pod, gone, initial)
}
