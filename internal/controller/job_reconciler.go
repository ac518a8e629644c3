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

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/estimate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/memory"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/tenancyparams"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/turns"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

const fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)

// conflictDelay before a decision that was made on an outdated state is made again. The watch usually is faster.
const conflictDelay = 500 * time.Millisecond

// settleDelay until a process that has just started is asked again whether it knows the cluster's profiles.
const settleDelay = time.Second

// maxLooks bounds how often one reconciliation may ask for more to decide on: the unit, the job and its pods, once
// each.
const maxLooks = 4

// JobReconciler keeps the jobs of one kind and their units in step.
type JobReconciler struct {
	Kind jobkind.Kind
	// Options of the process; the predicate in them is the one in force.
	Options Options
	// Client reads from caches, Jobs reads jobs and their children from one. Live and LiveJobs read from the API server.
	Client   client.Client
	Jobs     client.Reader
	Live     client.Reader
	LiveJobs client.Reader
	Recorder event.Recorder
	Shared   Shared

	begun  event.Begun
	memory memory.Memory[remembered]
}

// Shared is what the reconcilers of all kinds of a process have in common. Nothing is read, bounded or warned of where
// it is nil.
type Shared struct {
	// Profiles of the cluster.
	Profiles *estimate.Profiles
	// Reports is the pace of all reports, Events that of all events about what jobs wait for.
	Reports flowcontrol.PassiveRateLimiter
	Events  *event.Slots
	// Notices is the pace at which pods are told that their jobs will be suspended.
	Notices flowcontrol.PassiveRateLimiter
	// Stalls is the pace at which admitted jobs that do not run are looked at.
	Stalls flowcontrol.PassiveRateLimiter
	// Turns is the pace at which jobs are resumed.
	Turns *turns.Pace
	// Survey of nodes and quotas, for warnings.
	Survey *survey.Survey
	// Tenancy has the bounds that the policies of tenancy have.
	Tenancy *tenancyparams.Params
}

// NewJobReconciler of one kind. Events about states of units before its creation count as recorded.
func NewJobReconciler(
	kind jobkind.Kind, o Options, c client.Client, live client.Reader, recorder event.Recorder,
) *JobReconciler {
	return &JobReconciler{
		Kind: kind, Options: o, Client: c, Jobs: c, Live: live, LiveJobs: live, Recorder: recorder,
		begun: event.BegunAt(o.Clock.Now()),
	}
}

// Reconcile brings one job and its unit in step.
func (r *JobReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if p := r.Shared.Profiles; p != nil && !p.Settled() {
		return ctrl.Result{RequeueAfter: settleDelay}, nil
	}
	s, err := r.observer().observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if known, _ := r.memory.Named(req.NamespacedName); known.behind(s) {
		return ctrl.Result{}, nil // the event with our own write is on its way
	}
	if s.Job == nil {
		r.memory.Forget(req.NamespacedName)
		return r.carryOut(ctx, s)
	}
	known := r.memory.Of(s.Job.Object)
	known.observe(&s)
	if s.Observed {
		return r.carryOut(ctx, s)
	}
	waits, again := known.said.Waits(s.Unit, r.begun, r.Shared.Events, r.Options.Clock.Now())
	event.Record(r.Recorder, s.Job.Object, waits)
	result, err := r.carryOut(ctx, s)
	if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
		result.RequeueAfter = again
	}
	return result, err
}

// carryOut decides and does, and decides again while there is more to look at.
func (r *JobReconciler) carryOut(ctx context.Context, s jobplan.Situation) (ctrl.Result, error) {
	for range maxLooks {
		d := jobplan.Decide(s)
		if d.Look != jobplan.LookNowhere {
			if err := r.observer().look(ctx, &s, d.Look); err != nil {
				return r.failed(ctx, err)
			}
			if d.Look == jobplan.LookAtStall {
				r.memory.Of(s.Job.Object).stall = s.Now.Time
			}
			continue
		}
		w := r.writer(&s)
		for _, action := range d.Do {
			after, err := w.do(ctx, action)
			if err != nil {
				return r.failed(ctx, err)
			}
			d.After = max(d.After, after)
		}
		return ctrl.Result{RequeueAfter: d.After}, nil
	}
	return ctrl.Result{}, fmt.Errorf("no decision after %d looks", maxLooks)
}

func (r *JobReconciler) failed(ctx context.Context, err error) (ctrl.Result, error) {
	if again, later := turns.AskAgain(err); later {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	if errors.Is(err, errStallPace) {
		return ctrl.Result{RequeueAfter: stallDelay}, nil
	}
	if errors.Is(err, errUnitOnItsWay) || errors.Is(err, errNoticePace) { // should the watch not bring the unit
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		klog.FromContext(ctx).V(4).Info("Decided on a state that has changed since", "reason", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err) // gone: its deletion brings the next event
}
