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

package admissioncheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// States that a check may answer with.
const (
	Pending  = v1alpha1.CheckState(unit.CheckPending)
	Ready    = v1alpha1.CheckState(unit.CheckReady)
	Retry    = v1alpha1.CheckState(unit.CheckRetry)
	Rejected = v1alpha1.CheckState(unit.CheckRejected)
)

// maxMessage bounds the message of an answer, in bytes.
const maxMessage = 1024

// Answer is what a check says of a unit.
type Answer struct {
	// State: Ready lets the unit go, once all of its checks are. Retry gives its quota back; it is tried again later.
	// Rejected has it made inactive. Pending, or nothing, is not yet.
	State v1alpha1.CheckState
	// Message for a person.
	Message string
	// RequeueAfter, of an answer that is not final, is when the check is asked again though nothing happens; zero is
	// never. Of Retry it is the least time until the unit is tried again, in whole seconds; zero leaves it to the
	// back-off.
	RequeueAfter time.Duration
	// PodSetUpdates is what is written into the pods of the job when it is released. Keys that mean something to the queue
	// or to Koordinator cannot be written.
	PodSetUpdates []v1alpha1.PodSetUpdate
}

// Func answers one check about one unit. Neither may be changed. An error is no answer: it is called again, after a
// time that doubles.
type Func func(ctx context.Context, qu *v1alpha1.QueueUnit, check *v1beta1.AdmissionCheck) (Answer, error)

// Watched is a kind of objects, and a function from one of them to the units whose checks are asked again when it
// changes.
type Watched struct {
	Object client.Object
	Units  handler.MapFunc
}

// Controller answers the AdmissionChecks that name it.
type Controller struct {
	// ControllerName as AdmissionChecks have it in spec.controllerName, such as example.com/budget.
	ControllerName string
	Check          Func
	// Validate, if set, says why a check cannot be answered as it is written. Until it can, it is not active, and its
	// queues reserve nothing.
	Validate func(ctx context.Context, check *v1beta1.AdmissionCheck) error
	// Withdraws has Check called also about units that were let go with its Ready and hold quota still. Retry and
	// Rejected take that back: the job is suspended, as far as it can be. Any other answer changes nothing.
	Withdraws bool
	// Idle, if set, is called for units that hold no quota: what Check made for them can go.
	Idle func(ctx context.Context, qu *v1alpha1.QueueUnit) error
	// Gone, if set, is called for units that do not exist: what Check made for them and they do not own can go.
	Gone func(ctx context.Context, unit types.NamespacedName) error
	// Owns are objects that Check makes, with the unit as controlling owner: a change of one asks the check again.
	Owns []client.Object
	// Watches are objects that Check makes and that no unit can own, because they have no namespace.
	Watches []Watched
	// Parameters, if set, is an object of the kind that parameters of checks name, without a namespace. If such an object
	// changes, its checks are validated and asked again.
	Parameters client.Object
	// Reader is where units are read; nil is the manager's client.
	Reader client.Reader
	// Clock; nil is the real one.
	Clock clock.PassiveClock

	client client.Client
	kind   schema.GroupVersionKind
	// indexed, follows: these steps of the set-up are done, for good.
	indexed, follows bool
}

// reservedFor indexes units by the checks that they wait for.
const reservedFor = "reservedFor"

// SetupWithManager starts the controller with the manager. AdmissionChecks have to be installed, in a version of
// Kueue's API or by manifests/components/admission-checks-crd, and the manager's scheme has to know QueueUnits. After
// an error it may be called again.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if c.ControllerName == "" || c.Check == nil {
		return errors.New("admissioncheck: ControllerName and Check are required")
	}
	mapping, err := mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: v1beta1.GroupName, Kind: "AdmissionCheck"})
	if err != nil {
		return fmt.Errorf("admissioncheck: %w", err)
	}
	c.Use(mgr.GetClient(), mapping.GroupVersionKind)
	if !c.indexed {
		err = mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.QueueUnit{}, c.index(), checksOf)
		if err != nil {
			return fmt.Errorf("admissioncheck: %w", err)
		}
		c.indexed = true // a second index of the same name is an error
	}
	again := controller.Options{SkipNameValidation: ptr.To(true)}
	name := strings.NewReplacer("/", "-", ".", "-").Replace(c.ControllerName)
	units := ctrl.NewControllerManagedBy(mgr).Named(name+"-units").WithOptions(again).For(&v1alpha1.QueueUnit{}).
		Watches(c.newCheck(), handler.EnqueueRequestsFromMapFunc(c.unitsOf))
	for _, object := range c.Owns {
		units = units.Owns(object)
	}
	for _, w := range c.Watches {
		units = units.Watches(w.Object, handler.EnqueueRequestsFromMapFunc(w.Units))
	}
	checks := ctrl.NewControllerManagedBy(mgr).Named(name + "-checks").WithOptions(again).For(c.newCheck())
	if c.Parameters != nil {
		units = units.Watches(c.Parameters, handler.EnqueueRequestsFromMapFunc(c.unitsWith))
		checks = checks.Watches(c.Parameters, handler.EnqueueRequestsFromMapFunc(c.checksWith))
	}
	if !c.follows {
		if err := units.Complete(reconcile.Func(c.ReconcileUnit)); err != nil {
			return fmt.Errorf("admissioncheck: %w", err)
		}
		c.follows = true
	}
	if err := checks.Complete(reconcile.Func(c.ReconcileCheck)); err != nil {
		return fmt.Errorf("admissioncheck: %w", err)
	}
	return nil
}

// Use is for a program without a manager, which calls ReconcileUnit and ReconcileCheck itself. The kind is
// AdmissionCheck in the version that is installed.
func (c *Controller) Use(objects client.Client, kind schema.GroupVersionKind) {
	c.client, c.kind = objects, kind
	if c.Reader == nil {
		c.Reader = objects
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
}

// index is one for each controller: a manager may run several.
func (c *Controller) index() string { return reservedFor + "/" + c.ControllerName }

func checksOf(object client.Object) (names []string) {
	qu, ok := object.(*v1alpha1.QueueUnit)
	if !ok || qu.Status.Phase != v1alpha1.PhaseReserved {
		return nil
	}
	for i := range qu.Status.AdmissionChecks {
		names = append(names, qu.Status.AdmissionChecks[i].Name)
	}
	return names
}

// newCheck is an AdmissionCheck in the version that is installed.
func (c *Controller) newCheck() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(c.kind)
	return u
}

// check reads an AdmissionCheck; nil if it is none of this controller's, or cannot be read.
func (c *Controller) check(ctx context.Context, name string) (*v1beta1.AdmissionCheck, error) {
	u := c.newCheck()
	if err := c.client.Get(ctx, types.NamespacedName{Name: name}, u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	check := &v1beta1.AdmissionCheck{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, check); err != nil {
		return nil, nil //nolint:nilerr // its controllerName cannot be read
	}
	if check.Spec.ControllerName != c.ControllerName {
		return nil, nil // nothing is wrong
	}
	return check, nil
}

// checksWith are those of this controller that name the parameters.
func (c *Controller) checksWith(ctx context.Context, parameters client.Object) (requests []reconcile.Request) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	if err := c.client.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the checks with parameters", "parameters", parameters.GetName())
		return nil
	}
	for i := range list.Items {
		name, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "parameters", "name")
		if name == parameters.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// unitsWith are those that wait for a check with the parameters.
func (c *Controller) unitsWith(ctx context.Context, parameters client.Object) (requests []reconcile.Request) {
	for _, check := range c.checksWith(ctx, parameters) {
		u := c.newCheck()
		u.SetName(check.Name)
		requests = append(requests, c.unitsOf(ctx, u)...)
	}
	return requests
}

// unitsOf are those that wait for a check.
func (c *Controller) unitsOf(ctx context.Context, check client.Object) (requests []reconcile.Request) {
	units := &v1alpha1.QueueUnitList{}
	if err := c.client.List(ctx, units, client.MatchingFields{c.index(): check.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the units that wait for a check", "check", check.GetName())
		return nil
	}
	for i := range units.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&units.Items[i])})
	}
	return requests
}

// ReconcileUnit asks the checks of a unit and writes what they answer. After an error it is called again.
func (c *Controller) ReconcileUnit(
	ctx context.Context, request reconcile.Request,
) (result reconcile.Result, err error) {
	qu := &v1alpha1.QueueUnit{}
	if err := c.Reader.Get(ctx, request.NamespacedName, qu); err != nil {
		if apierrors.IsNotFound(err) && c.Gone != nil {
			return result, c.Gone(ctx, request.NamespacedName)
		}
		return result, client.IgnoreNotFound(err)
	}
	switch phase := unit.Phase(qu.Status.Phase); {
	case phase == unit.PhaseReserved, c.Withdraws && phase.Releases():
	case !phase.Holds() && c.Idle != nil:
		return result, c.Idle(ctx, qu)
	default:
		return result, nil
	}
	after := qu.DeepCopy()
	for i := range after.Status.AdmissionChecks {
		again, err := c.ask(ctx, qu, &after.Status.AdmissionChecks[i])
		if err != nil {
			return result, fmt.Errorf("check %s: %w", after.Status.AdmissionChecks[i].Name, err)
		}
		if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	if equality.Semantic.DeepEqual(qu.Status, after.Status) {
		return result, nil
	}
	// On this state of the unit alone: what was answered is about this reservation.
	patch := client.MergeFromWithOptions(qu, client.MergeFromWithOptimisticLock{})
	return result, c.client.Status().Patch(ctx, after, patch)
}

// ask sets what one check of a unit answers, if it is one of this controller's; again is when to ask it again.
func (c *Controller) ask(
	ctx context.Context, qu *v1alpha1.QueueUnit, state *v1alpha1.AdmissionCheckState,
) (again time.Duration, err error) {
	released := unit.Phase(qu.Status.Phase).Releases()
	if state.State == Retry || state.State == Rejected || released && state.State != Ready {
		return 0, nil // the scheduler acts on it, or nobody asks
	}
	check, err := c.check(ctx, state.Name)
	if check == nil || err != nil {
		return 0, err
	}
	answer, err := c.Check(ctx, qu, check)
	if err != nil {
		return 0, err
	}
	final := answer.State == Retry || answer.State == Rejected
	if released {
		if !final {
			return answer.RequeueAfter, nil
		}
		if meta.IsStatusConditionTrue(qu.Status.Conditions, v1alpha1.ConditionPodsReady) {
			state.RetryCount = nil // the job ran: earlier failures are over
		}
	}
	c.answer(state, &answer)
	if final {
		return 0, nil
	}
	return answer.RequeueAfter, nil
}

// answer sets the state of a check; its time moves only where the state does.
func (c *Controller) answer(state *v1alpha1.AdmissionCheckState, a *Answer) {
	if a.State == "" {
		a.State = Pending
	}
	if state.State != a.State {
		state.State, state.LastTransitionTime = a.State, metav1.NewTime(c.Clock.Now())
	}
	if state.Message = a.Message; len(a.Message) > maxMessage {
		state.Message = strings.ToValidUTF8(a.Message[:maxMessage], "")
	}
	state.RequeueAfterSeconds = nil
	if a.State == Retry {
		state.RetryCount = ptr.To(ptr.Deref(state.RetryCount, 0) + 1)
		if a.RequeueAfter > 0 {
			seconds := int32(min(a.RequeueAfter.Seconds(), math.MaxInt32))
			state.RequeueAfterSeconds = &seconds
		}
	}
	if a.State != Retry && a.State != Rejected {
		state.PodSetUpdates = a.PodSetUpdates // else they stay: they may have to be taken out of pod templates
	}
}

// ReconcileCheck says in a check whether it is answered. After an error it is called again.
func (c *Controller) ReconcileCheck(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	check, err := c.check(ctx, request.Name)
	if check == nil || err != nil {
		return reconcile.Result{}, err
	}
	active := metav1.Condition{
		Type: v1beta1.ConditionActive, Status: metav1.ConditionTrue, Reason: "Active",
		Message: "the controller answers the check", ObservedGeneration: check.Generation,
		LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	}
	if c.Validate != nil {
		if err := c.Validate(ctx, check); err != nil {
			active.Status, active.Reason, active.Message = metav1.ConditionFalse, "InvalidParameters", err.Error()
		}
	}
	if !meta.SetStatusCondition(&check.Status.Conditions, active) {
		return reconcile.Result{}, nil
	}
	before := c.newCheck()
	if err := c.client.Get(ctx, request.NamespacedName, before); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&check.Status)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("status of check %s: %w", request.Name, err)
	}
	after := before.DeepCopy()
	after.Object["status"] = status
	return reconcile.Result{}, c.client.Status().Patch(ctx, after, client.MergeFromWithOptions(
		before, client.MergeFromWithOptimisticLock{}))
}
