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

// Package statuswrite sends status patches until their outcome is known. If an answer was lost, the same patch on the
// same version is sent again. Only that tells "not applied" from "not applied yet" (I3).
package statuswrite

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/answer"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// RequestLifetime is for how long an API server may be at work on a request: twice its own limit.
const RequestLifetime = 2 * time.Minute

// Write is one status patch. The patch is immutable, so each attempt is the same request.
type Write struct {
	ID       int64
	Kind     Kind
	resource schema.GroupVersionResource
	Key      types.NamespacedName
	Attempt  int64
	Base     *objects.Unit // nil for a queue
	status   map[string]any
	Decided  time.Time
	Decision transition.Write // nil if the write only informs
	Reason   string           // label of metrics
	Cycle    int64            // number of the decision
	// lost is when the answer to an attempt was last lost; zero for never.
	lost  time.Time
	clock clock.PassiveClock
	// Said and tries belong to the writing of a reason.
	Said   unit.Saying
	Tries  int
	ctx    context.Context // ends with the unit or with the process, whichever is first
	Cancel context.CancelFunc
}

// Decides says whether the write carries a decision: its Do is called until the outcome is definite. Of other writes
// every outcome is final.
func (w *Write) Decides() bool { return w.Decision != nil }

// KeepsAdmission says that pods of the unit may go while the write is in flight, as they may before and after it.
func (w *Write) KeepsAdmission() bool { return w == nil || w.Decision.Kind().KeepsPods }

// Phase that is written; empty if the write leaves it as it is.
func (w *Write) Phase() unit.Phase {
	phase, _ := w.status["phase"].(string)
	return unit.Phase(phase)
}

// Result of one attempt of a write.
type Result struct {
	Write   *Write
	Outcome transition.Outcome
	// Fresh is the object after the write, or as it was read back; nil when it is not known.
	Fresh *objects.Unit
	// Gone: the object does not exist.
	Gone bool
	// conflict: the object had changed.
	conflict bool
	Err      error
	// retryAfter is what the server asks for.
	retryAfter time.Duration
	final      bool // for unknown outcomes: nothing further follows
	// Took is how long the attempt took, and atOnce how many attempts were under way, itself included. Both are zero if
	// nobody measured.
	Took   time.Duration
	AtOnce int
}

// Data of the merge patch. The resource version makes the request idempotent: it applies at most once (I3). The UID
// says the same to a reader of audit logs.
func (w *Write) Data() ([]byte, error) {
	patch := map[string]any{"status": w.status}
	if w.Base != nil {
		patch["metadata"] = map[string]any{"resourceVersion": w.Base.ResourceVersion, "uid": string(w.Base.UID)}
	}
	return json.Marshal(patch)
}

// Do sends the patch once and returns the outcome. An earlier attempt without an answer may have been applied, or may
// be yet, and a refusal of this one says nothing about that.
func (w *Write) Do(ctx context.Context, client rest.Interface) Result {
	r := w.attemptOnce(ctx, client)
	if r.Outcome == transition.Unknown {
		w.lost = w.clock.Now()
	} else if r.Outcome == transition.Refused && w.Decides() && !w.lost.IsZero() {
		seen := w.readBack(ctx, client, r.Err)
		seen.conflict = false
		if seen.Outcome != transition.Refuted || seen.Gone || seen.Fresh.ResourceVersion != w.Base.ResourceVersion {
			return seen
		}
		if w.clock.Since(w.lost) < RequestLifetime {
			r.Outcome = transition.Unknown
		}
	}
	return r
}

// attemptOnce reads the object back on a conflict: the patch may have been applied by an earlier attempt.
func (w *Write) attemptOnce(ctx context.Context, client rest.Interface) Result {
	data, err := w.Data()
	if err != nil {
		return Result{Write: w, Outcome: transition.Refused, Err: err}
	}
	fresh, err := w.patch(ctx, client, data)
	switch {
	case err == nil:
		return Result{Write: w, Outcome: transition.Confirmed, Fresh: fresh}
	case apierrors.IsConflict(err):
		return w.readBack(ctx, client, err)
	default:
		return w.failed(err)
	}
}

// patch returns the unit after the patch. The state of a queue after it is not read.
func (w *Write) patch(ctx context.Context, client rest.Interface, data []byte) (*objects.Unit, error) {
	result := objects.At(client.Patch(types.MergePatchType), w.resource, w.Key.Namespace).
		Name(w.Key.Name).SubResource("status").Body(data).Do(ctx)
	if err := result.Error(); err != nil || w.Base == nil {
		return nil, err
	}
	u := &objects.WireUnit{}
	if err := result.Into(u); err != nil {
		return nil, err
	}
	return objects.DecodeUnit(u), nil
}

func (w *Write) readBack(ctx context.Context, client rest.Interface, conflict error) Result {
	refuted := Result{Write: w, Outcome: transition.Refuted, conflict: true, Err: conflict}
	if !w.Decides() {
		return refuted
	}
	fresh, err := objects.GetUnit(ctx, client, w.Key)
	if err != nil {
		r := w.failed(err)
		if r.Outcome == transition.Refused {
			// The reading was refused, and does not settle the write.
			r.Outcome = transition.Unknown
		}
		r.conflict = true
		return r
	}
	refuted.Fresh = fresh
	if refuted.Fresh.UID != w.Base.UID {
		return Result{Write: w, Outcome: transition.Refuted, Gone: true, conflict: true, Err: conflict}
	}
	if w.AppliedTo(refuted.Fresh) {
		refuted.Outcome, refuted.Err = transition.Confirmed, nil
	}
	return refuted
}

// AppliedTo says whether the object holds what was written.
func (w *Write) AppliedTo(u *objects.Unit) bool {
	return u.UID == w.Base.UID && u.Attempts == w.Attempt && w.Decision.AppliedTo(u.Phase, &u.Stated)
}

// failed is the result of an attempt that ended with an error.
func (w *Write) failed(err error) Result {
	a := answer.Of(err, w.Key.Name)
	return Result{Write: w, Outcome: a.Outcome, Gone: a.Gone, retryAfter: a.RetryAfter, Err: err}
}

// Admits says whether the write admits its unit.
func (w *Write) Admits() bool { return w.Kind == Admit }

// Object is what the write changes, and the UID that it was decided for; empty for a Queue.
func (w *Write) Object() (types.NamespacedName, types.UID) {
	if w.Base == nil {
		return w.Key, ""
	}
	return w.Key, w.Base.UID
}

// Dropped says that nobody waits for the write any more, so that it is not sent, or not again.
func (w *Write) Dropped() bool { return w.ctx.Err() != nil }

// Definite says whether the outcome is known: the write was applied, or never will be.
func (r Result) Definite() bool { return r.Outcome != transition.Unknown }
