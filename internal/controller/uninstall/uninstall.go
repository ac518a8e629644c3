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

// Package uninstall removes from a cluster everything that the controller added to objects. It resumes pending jobs, or
// leaves them suspended.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// Waiting says what becomes of jobs that wait when the system is taken out.
type Waiting string

const (
	// Resume lets them run.
	Resume Waiting = "resume"
	// Leave leaves them suspended.
	Leave Waiting = "leave"
)

const fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)

func optimistic(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// pageSize of lists; progressEvery jobs or units a line is printed.
const (
	pageSize      = 500
	progressEvery = 1000
)

// ErrStillRunning says that a controller would undo it.
var ErrStillRunning = errors.New("a controller is running")

// leaseWait is how long to wait for a free Lease. A killed controller holds it for 15 seconds after its last renewal,
// and a stopped one has 30 seconds to end. leaseLook is the time between two reads.
const (
	leaseWait = time.Minute
	leaseLook = time.Second
)

// Clock tells the time, and waits.
type Clock interface {
	clock.PassiveClock
	After(time.Duration) <-chan time.Time
}

// Run takes it out. It can be interrupted and run again.
type Run struct {
	// Client without a cache.
	Client         client.Client
	Kinds          []jobkind.Kind
	Waiting        Waiting
	DryRun         bool
	QueueNamespace string
	// Lease of the leader election: while somebody holds it, nothing is done. It is waited for.
	Lease types.NamespacedName
	Clock Clock
	Out   io.Writer

	// kept are the units of jobs that could not be changed. Another run reads them.
	kept map[*v1alpha1.QueueUnit]bool
}

// Summary counts what was done, or would be.
type Summary struct {
	Resumed, Left, Held, Cleaned, Units, Queues, Failed int
}

// Do it. The error is ErrStillRunning, or says that something failed; then running it again goes on.
func (u *Run) Do(ctx context.Context) (Summary, error) {
	var s Summary
	u.kept = map[*v1alpha1.QueueUnit]bool{}
	if err := u.awaitLease(ctx); err != nil {
		return s, err
	}
	units, err := u.listUnits(ctx)
	if err != nil {
		return s, err
	}
	for i := range u.Kinds {
		if err := u.jobs(ctx, &u.Kinds[i], units, &s); err != nil {
			return s, err
		}
	}
	for _, qu := range units {
		if err := u.unit(ctx, qu, &s); err != nil {
			return s, err
		}
	}
	if err := u.queues(ctx, &s); err != nil {
		return s, err
	}
	if err := u.configMap(ctx); err != nil {
		return s, err
	}
	u.summarise(s)
	if s.Failed > 0 {
		return s, fmt.Errorf("%d objects could not be changed; run it again", s.Failed)
	}
	return s, nil
}

// awaitLease returns when nobody holds the Lease. It is an error if somebody holds it all the time. A dry run names the
// holder and goes on.
func (u *Run) awaitLease(ctx context.Context) error {
	end, said := u.Clock.Now().Add(leaseWait), ""
	for {
		holder, err := u.holder(ctx)
		if err != nil || holder == "" {
			return err
		}
		if u.DryRun {
			u.say("wait for Lease %s, held by %s", u.Lease, holder)
			return nil
		}
		if !u.Clock.Now().Before(end) {
			return fmt.Errorf("%w: %s holds Lease %s; scale its Deployment to zero first", ErrStillRunning, holder, u.Lease)
		}
		if holder != said {
			_, _ = fmt.Fprintf(u.Out, "waiting for Lease %s, held by %s\n", u.Lease, holder)
			said = holder
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-u.Clock.After(leaseLook):
		}
	}
}

// holder of the Lease now, if there is one.
func (u *Run) holder(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := u.Client.Get(ctx, u.Lease, lease); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return "", nil
	}
	until := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	if !u.Clock.Now().Before(until) {
		return "", nil
	}
	return *spec.HolderIdentity, nil
}

func (u *Run) say(format string, args ...any) {
	if u.DryRun {
		format = "would: " + format
	}
	_, _ = fmt.Fprintf(u.Out, format+"\n", args...) // nothing can be done about a broken terminal
}

func (u *Run) listUnits(ctx context.Context) ([]*v1alpha1.QueueUnit, error) {
	var units []*v1alpha1.QueueUnit
	list := &v1alpha1.QueueUnitList{}
	err := u.pages(ctx, list, func() error {
		for i := range list.Items {
			qu := &list.Items[i]
			for j := range qu.Spec.PodSets { // their templates are most of the size, and not needed
				qu.Spec.PodSets[j] = v1alpha1.PodSet{Name: qu.Spec.PodSets[j].Name}
			}
			units = append(units, qu)
		}
		list.Items = nil
		return nil
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil // the definition is gone already
	}
	return units, err
}

// pages calls each for every page of a list.
func (u *Run) pages(
	ctx context.Context, list client.ObjectList, each func() error, opts ...client.ListOption,
) error {
	token := ""
	for {
		if err := u.Client.List(ctx, list, append(opts, client.Limit(pageSize), client.Continue(token))...); err != nil {
			return err
		}
		token = list.GetContinue()
		if err := each(); err != nil {
			return err
		}
		if token == "" {
			return nil
		}
	}
}

func (u *Run) jobs(ctx context.Context, kind *jobkind.Kind, units []*v1alpha1.QueueUnit, s *Summary) error {
	if kind.OfPods() {
		return nil // nothing was written into them
	}
	byName := make(map[types.NamespacedName]*v1alpha1.QueueUnit, len(units))
	for _, qu := range units {
		if ref := qu.Spec.ConsumerRef; ref != nil && jobunit.RefersTo(kind, ref) && jobunit.CreatedByUs(qu) {
			byName[client.ObjectKeyFromObject(qu)] = qu
		}
	}
	seen := 0
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GVK.GroupVersion().WithKind(kind.GVK.Kind + "List"))
	err := u.pages(ctx, list, func() error {
		for i := range list.Items {
			job := &list.Items[i]
			qu := byName[types.NamespacedName{Namespace: job.GetNamespace(), Name: kind.UnitName(job.GetName())}]
			if qu != nil && qu.Spec.ConsumerRef.UID != job.GetUID() {
				qu = nil
			}
			if err := u.job(ctx, kind, job, qu, s); err != nil {
				return err
			}
			if seen++; seen%progressEvery == 0 {
				_, _ = fmt.Fprintf(u.Out, "%d jobs looked at\n", seen)
			}
		}
		list.Items = nil
		return nil
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // the kind is not installed
	}
	return err
}

// job changes the latest version of a job in the API server, and tries again after a conflict.
func (u *Run) job(
	ctx context.Context, kind *jobkind.Kind, job *unstructured.Unstructured, qu *v1alpha1.QueueUnit, s *Summary,
) error {
	var done leaving
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before, err := jobs.OpenWith(kind, job, func(child *unstructured.Unstructured) (bool, error) {
			err := u.Client.Get(ctx, client.ObjectKeyFromObject(job), child)
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
		var after, plain *jobs.Job
		after, plain, done, err = leave(before, qu, u.Waiting)
		if err != nil || after == nil || u.DryRun {
			return err
		}
		if err = u.patch(ctx, before, after); apierrors.IsInvalid(err) {
			err = u.patch(ctx, before, plain)
		}
		if apierrors.IsConflict(err) {
			if errGet := u.Client.Get(ctx, client.ObjectKeyFromObject(job), job); errGet != nil {
				return errGet
			}
		}
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		s.Failed++
		u.kept[qu] = true
		u.say("%s %s/%s: %v", kind.GVK.Kind, job.GetNamespace(), job.GetName(), err)
		return nil
	}
	u.count(kind, job, done, s)
	return nil
}

// patch changes the child, if the job was read with one, and then the job.
func (u *Run) patch(ctx context.Context, before, after *jobs.Job) error {
	job, child := jobs.Split(before.Object)
	changed, changedChild := jobs.Split(after.Object.DeepCopy())
	if child != nil && !equality.Semantic.DeepEqual(child.Object, changedChild.Object) {
		if err := u.Client.Patch(ctx, changedChild, optimistic(child), fieldOwner); err != nil {
			return err
		}
	}
	return u.Client.Patch(ctx, changed, optimistic(job), fieldOwner)
}

func (u *Run) count(kind *jobkind.Kind, job *unstructured.Unstructured, done leaving, s *Summary) {
	switch done {
	case untouched:
		return
	case cleaned:
		s.Cleaned++
	case resumed:
		s.Resumed++
		u.say("resume %s %s/%s", kind.GVK.Kind, job.GetNamespace(), job.GetName())
	case leftSuspended:
		s.Left++
	case heldBack:
		s.Held++
		u.say("leave %s %s/%s suspended: its unit was made inactive by hand", kind.GVK.Kind,
			job.GetNamespace(), job.GetName())
	}
}

func (u *Run) unit(ctx context.Context, qu *v1alpha1.QueueUnit, s *Summary) error {
	if !jobunit.CreatedByUs(qu) || u.kept[qu] {
		return nil
	}
	if err := u.remove(ctx, qu, s); err != nil {
		return err
	}
	if s.Units++; s.Units%progressEvery == 0 {
		_, _ = fmt.Fprintf(u.Out, "%d QueueUnits deleted\n", s.Units)
	}
	return nil
}

func (u *Run) queues(ctx context.Context, s *Summary) error {
	list := &v1alpha1.QueueList{}
	err := u.pages(ctx, list, func() error {
		for i := range list.Items {
			if err := u.remove(ctx, &list.Items[i], s); err != nil {
				return err
			}
			s.Queues++
		}
		return nil
	}, client.InNamespace(u.QueueNamespace), client.MatchingLabels{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (u *Run) remove(ctx context.Context, object client.Object, s *Summary) error {
	if u.DryRun {
		return nil
	}
	uid := object.GetUID()
	err := client.IgnoreNotFound(u.Client.Delete(ctx, object, client.Preconditions{UID: &uid}))
	if err != nil && ctx.Err() == nil {
		s.Failed++
		u.say("delete %s/%s: %v", object.GetNamespace(), object.GetName(), err)
		return nil
	}
	return ctx.Err()
}

func (u *Run) configMap(ctx context.Context) error {
	cm := &corev1.ConfigMap{}
	err := u.Client.Get(ctx, types.NamespacedName{Namespace: u.QueueNamespace, Name: managedjobs.ConfigMap}, cm)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, ok := cm.Annotations[managedjobs.AnnotationHash]; !ok || u.DryRun {
		return nil
	}
	after := cm.DeepCopy()
	delete(after.Annotations, managedjobs.AnnotationHash)
	return client.IgnoreNotFound(u.Client.Patch(ctx, after, client.MergeFrom(cm), fieldOwner))
}

func (u *Run) summarise(s Summary) {
	u.say("jobs resumed: %d, left suspended: %d, left suspended because held by hand: %d, marks removed from others: %d",
		s.Resumed, s.Left, s.Held, s.Cleaned)
	u.say("QueueUnits deleted: %d, Queues deleted: %d, failures: %d", s.Units, s.Queues, s.Failed)
}
