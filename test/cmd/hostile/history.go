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

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// history judges every state of the store in order: all promises to the victim, and that the hostile tenant uses at
// most its own quota.
type history struct {
	victim, honest *worker

	mu      sync.Mutex
	checker *checker.Checker // of the victim's quota and namespace
	charges *checker.Charges // of both tenants
	now     *checker.Checker // says what there is of both; the hostile tenant's objects break its rules
	states  int
	evicted evictions
	// slow has the UIDs of jobs whose pods would keep quota for long after it was taken back. heldSlowly are units of such
	// jobs that held some, and byAlias counts the states in which another unit of their namespace did.
	slow       map[types.UID]bool
	heldSlowly []checker.Violation
	byAlias    int
}

func newHistory(victim, honest *worker, queued bool) *history {
	return &history{
		victim: victim, honest: honest, evicted: newEvictions(), slow: map[types.UID]bool{},
		checker: checker.New(map[string]string{victimQuota: "Block"}),
		charges: checker.NewCharges(queued, map[string]string{victimQuota: victimNamespace}),
		now:     checker.New(nil),
	}
}

// note takes the next change of the store.
func (h *history) note(change observer.Change) error {
	e, ok, err := change.Event()
	if !ok {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states++
	h.charges.Apply(e)
	h.now.Apply(e)
	switch o := change.Object.(type) {
	case *batchv1.Job:
		h.slow[o.UID] = isSlow(&o.Spec.Template)
		for _, w := range []*worker{h.victim, h.honest} {
			if o.Namespace == w.namespace {
				w.note(o, time.Now())
			}
		}
		if o.Namespace != victimNamespace {
			return nil
		}
	case *unstructured.Unstructured:
		// Of the victim's quota alone: what runs in the levels above is not all the queue's to decide.
		quota := e.Object.(checker.Quota)
		if quota.Name != victimQuota {
			return nil
		}
		quota.Parent = ""
		e.Object = quota
	case *v1alpha1.QueueUnit:
		h.evicted.note(o)
		h.noteAliased(o)
		if o.Namespace != victimNamespace {
			return nil
		}
	case metav1.Object:
		if o.GetNamespace() != victimNamespace {
			return nil
		}
	}
	h.checker.Apply(e)
	return nil
}

// mostTermination is what the tenancy policies allow where nobody has set another bound.
const mostTermination = 3600

func isSlow(template *corev1.PodTemplateSpec) bool {
	seconds := template.Spec.TerminationGracePeriodSeconds
	return len(template.Finalizers) > 0 || seconds != nil && *seconds > mostTermination
}

// noteAliased takes note of what is held in the namespace that only an alias has queued.
func (h *history) noteAliased(u *v1alpha1.QueueUnit) {
	if u.Namespace != aliasedNamespace || len(u.Status.Admissions) == 0 || u.Spec.ConsumerRef == nil {
		return
	}
	if !h.slow[u.Spec.ConsumerRef.UID] {
		h.byAlias++
		return
	}
	h.heldSlowly = append(h.heldSlowly, checker.Violation{
		Rule: heldSlowly, Subject: u.Namespace + "/" + u.Name, Message: "holds quota, which its pods would keep"})
}

// heldSlowly is a rule: a job whose pods have finalizers, or too long a grace, holds no quota.
const heldSlowly checker.Rule = "HeldSlowly"

// left says what is still there.
func (h *history) left() []checker.Violation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now.Left()
}

// starved: the victim got nothing done for long. If that has one cause in both rounds, their ratio does not show it.
const (
	starved checker.Rule = "Starved"
	maxGap               = 15 * time.Second
)

// starvation is a violation if the gap is too long.
func starvation(gap time.Duration) []checker.Violation {
	if gap <= maxGap {
		return nil
	}
	return []checker.Violation{{Rule: starved, Subject: victimNamespace, Message: fmt.Sprintf(
		"no job was done for %s", gap.Round(100*time.Millisecond))}}
}

// evictions so far, by whose and why, and in how many states something was held by an alias.
func (h *history) evictions() (byName map[string]int, byAlias int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.evicted.byName(), h.byAlias
}

// judge says what was broken, once the victim waits for nothing more: every job of its own ran once to its end.
func (h *history) judge() (done, states int, found []checker.Violation) {
	h.victim.mu.Lock()
	defer h.victim.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	done, found = h.checker.Finish(h.victim.jobs)
	return done, h.states, slices.Concat(found, h.charges.Violations(), h.heldSlowly)
}
