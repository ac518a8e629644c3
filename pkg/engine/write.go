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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/answer"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// requestLifetime is for how long an API server may be at work on a request: twice its own limit.
const requestLifetime = 2 * time.Minute

// Write is one status patch. The patch is immutable, so each attempt is the same request.
type Write struct {
	id       int64
	kind     writeKind
	resource schema.GroupVersionResource
	key      types.NamespacedName
	attempt  int64
	base     *objects.Unit // nil for a queue
	status   map[string]any
	decided  time.Time
	decision decision // nil if the write only informs
	reason   string   // label of metrics
	// lost is when the answer to an attempt was last lost; zero for never.
	lost  time.Time
	clock clock.PassiveClock
	// said and tries belong to the writing of a reason.
	said   unit.Saying
	tries  int
	ctx    context.Context // ends with the unit or with the process, whichever is first
	cancel context.CancelFunc
}

// decides says whether the write carries a decision: then its outcome must become known.
func (w *Write) decides() bool { return w.decision != nil }

// keepsAdmission says that pods of the unit may go while the write is in flight, as they may before and after it.
func (w *Write) keepsAdmission() bool { return w == nil || w.decision.keepsAdmission() }

// phase that is written; empty if the write leaves it as it is.
func (w *Write) phase() unit.Phase {
	phase, _ := w.status["phase"].(string)
	return unit.Phase(phase)
}

// Result of one attempt of a write.
type Result struct {
	write   *Write
	outcome admission.Outcome
	// fresh is the object after the write, or as it was read back; nil when it is not known.
	fresh *objects.Unit
	// gone: the object does not exist.
	gone bool
	// conflict: the object had changed.
	conflict bool
	err      error
	// retryAfter is what the server asks for.
	retryAfter time.Duration
	final      bool // for unknown outcomes: nothing further follows
	// took is how long the attempt took. The other field is how many attempts were under way at the same time, itself
	// included. Both are zero if nobody measured.
	took   time.Duration
	beside int
}

// data of the merge patch. The resource version makes the request idempotent: it applies at most once (I3). The UID
// says the same to a reader of audit logs.
func (w *Write) data() ([]byte, error) {
	patch := map[string]any{"status": w.status}
	if w.base != nil {
		patch["metadata"] = map[string]any{"resourceVersion": w.base.ResourceVersion, "uid": string(w.base.UID)}
	}
	return json.Marshal(patch)
}

// Do sends the patch once and says what became of it. An earlier attempt whose answer was lost may have been applied,
// or may be yet: a refusal of this one says nothing about that.
func (w *Write) Do(ctx context.Context, client rest.Interface) Result {
	r := w.attemptOnce(ctx, client)
	if r.outcome == admission.OutcomeUnknown {
		w.lost = w.clock.Now()
	} else if r.outcome == admission.OutcomeRefused && w.decides() && !w.lost.IsZero() {
		seen := w.readBack(ctx, client, r.err)
		seen.conflict = false
		if seen.outcome != admission.OutcomeRefuted || seen.gone || seen.fresh.ResourceVersion != w.base.ResourceVersion {
			return seen
		}
		if w.clock.Since(w.lost) < requestLifetime {
			r.outcome = admission.OutcomeUnknown
		}
	}
	return r
}

// attemptOnce reads the object back on a conflict: the patch may have been applied by an earlier attempt.
func (w *Write) attemptOnce(ctx context.Context, client rest.Interface) Result {
	data, err := w.data()
	if err != nil {
		return Result{write: w, outcome: admission.OutcomeRefused, err: err}
	}
	fresh, err := w.patch(ctx, client, data)
	switch {
	case err == nil:
		return Result{write: w, outcome: admission.OutcomeConfirmed, fresh: fresh}
	case apierrors.IsConflict(err):
		return w.readBack(ctx, client, err)
	default:
		return w.failed(err)
	}
}

// patch returns the unit after it. What a queue is after it is not read.
func (w *Write) patch(ctx context.Context, client rest.Interface, data []byte) (*objects.Unit, error) {
	result := objects.At(client.Patch(types.MergePatchType), w.resource, w.key.Namespace).
		Name(w.key.Name).SubResource("status").Body(data).Do(ctx)
	if err := result.Error(); err != nil || w.base == nil {
		return nil, err
	}
	u := &objects.WireUnit{}
	if err := result.Into(u); err != nil {
		return nil, err
	}
	return objects.DecodeUnit(u), nil
}

func (w *Write) readBack(ctx context.Context, client rest.Interface, conflict error) Result {
	refuted := Result{write: w, outcome: admission.OutcomeRefuted, conflict: true, err: conflict}
	if !w.decides() {
		return refuted
	}
	fresh, err := objects.GetUnit(ctx, client, w.key)
	if err != nil {
		r := w.failed(err)
		if r.outcome == admission.OutcomeRefused {
			// It was the reading that was refused; the write is not settled by that.
			r.outcome = admission.OutcomeUnknown
		}
		r.conflict = true
		return r
	}
	refuted.fresh = fresh
	if refuted.fresh.UID != w.base.UID {
		return Result{write: w, outcome: admission.OutcomeRefuted, gone: true, conflict: true, err: conflict}
	}
	if w.appliedTo(refuted.fresh) {
		refuted.outcome, refuted.err = admission.OutcomeConfirmed, nil
	}
	return refuted
}

// appliedTo says whether the object holds what was written.
func (w *Write) appliedTo(u *objects.Unit) bool {
	return u.UID == w.base.UID && u.Attempts == w.attempt && w.decision.appliedTo(u)
}

// failed is the result of an attempt that ended with an error.
func (w *Write) failed(err error) Result {
	a := answer.Of(err, w.key.Name)
	return Result{write: w, outcome: a.Outcome, gone: a.Gone, retryAfter: a.RetryAfter, err: err}
}

// withConditions returns all conditions of the unit with these set: a merge patch replaces the list as a whole. The
// resource version guards the rest of it.
func withConditions(u *objects.Unit, now time.Time, set ...metav1.Condition) []metav1.Condition {
	conditions := append(make([]metav1.Condition, 0, len(u.Conditions)+len(set)), u.Conditions...)
	for _, c := range set {
		c.ObservedGeneration = u.Generation
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&conditions, c)
	}
	return conditions
}

// effective is what the columns of a unit show that its spec may not say: the queue and the quota that it came to, what
// it asks for in all and, while it holds anything, what. It is written along with whatever is written anyway.
func effective(rec *unitRecord, held resources.List) map[string]any {
	fields := map[string]any{
		"queue": rec.queue, "quota": rec.quota, "requested": objects.Shorten(rec.object.Request.String()),
	}
	if held.Len() > 0 {
		fields["held"] = objects.Shorten(held.String())
	} else if rec.object.Attempts > 0 {
		fields["held"], fields["preemptable"] = nil, nil
	}
	return fields
}
