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

package quotatree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	// fieldOwner of what is written.
	fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)
	// conflictDelay lets the watch bring what a decision was not made on.
	conflictDelay = 500 * time.Millisecond
	// retryDelay is when something is tried again that was refused, or that waits for pods to end: no event says that.
	retryDelay = 30 * time.Second
	// told is how many problems the condition of a tree tells, and events; maxMessage bounds each of them.
	told       = 8
	maxMessage = 300
)

// Reasons of condition Ready.
const (
	reasonExpanded   = "Expanded"
	reasonParked     = "NodesParked"
	reasonUnreadable = "Unreadable"
)

// Reconciler keeps the ElasticQuotas of trees in step.
type Reconciler struct {
	// Reader has the trees of one namespace and all ElasticQuotas, both unstructured.
	Reader   client.Reader
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// Reconcile brings the ElasticQuotas of one tree in step with it. A tree that is gone needs nothing: its ElasticQuotas
// have it as their owner and are collected.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := newTree()
	if err := r.Reader.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	tree, err := decodeTree(object)
	if err != nil {
		// The request of the tree is unknown, so existing quotas stay.
		return ctrl.Result{}, r.tell(ctx, tree, tree.Status.Quotas, tree.Status.Parked,
			[]Problem{{Node: tree.Name, Reason: reasonUnreadable, Message: err.Error(), Parked: true}})
	}
	quotas := newList(elasticQuotaKind)
	if err := r.Reader.List(ctx, quotas); err != nil {
		return ctrl.Result{}, err
	}
	items := make([]*unstructured.Unstructured, len(quotas.Items))
	for i := range quotas.Items {
		items[i] = &quotas.Items[i]
	}
	p := makePlan(tree, items)
	refused, err := r.do(ctx, &p)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	for i := range refused {
		p.placed.Delete(refused[i].name)
		p.problems = append(p.problems, refused[i].Problem)
	}
	placed := p.placed.Len()
	//nolint:gosec // an object of 2^31 nodes does not exist
	told := r.tell(ctx, tree, int32(placed), int32(p.wanted.Nodes-placed), p.problems)
	switch {
	case apierrors.IsConflict(told):
		return ctrl.Result{RequeueAfter: conflictDelay}, err
	case err != nil || told != nil:
		return ctrl.Result{}, errors.Join(err, told)
	case p.again || len(refused) > 0:
		return ctrl.Result{RequeueAfter: retryDelay}, nil
	}
	return ctrl.Result{}, nil
}

// decodeTree returns the tree, or what of it says whose it is.
func decodeTree(object *unstructured.Unstructured) (*v1beta1.ElasticQuotaTree, error) {
	tree := &v1beta1.ElasticQuotaTree{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(), Labels: object.GetLabels(),
	}}
	tree.SetGroupVersionKind(v1beta1.ElasticQuotaTreeKind)
	var status struct {
		Status v1beta1.ElasticQuotaTreeStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": object.Object["status"]},
		&status); err == nil {
		tree.Status = status.Status
	}
	var spec struct {
		Spec v1beta1.ElasticQuotaTreeSpec `json:"spec"`
	}
	fields := map[string]any{"spec": object.Object["spec"]}
	if err := checkAmounts(fields); err != nil {
		return tree, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		return tree, err
	}
	tree.Spec = spec.Spec
	return tree, nil
}

// refusal is a step that was not accepted.
type refusal struct {
	Problem
	name string
}

// do carries out the steps. A step that Koordinator refuses may depend on others, for example on the min of sibling
// quotas. So it is tried again as long as any other step succeeds. A failed step delays only the steps below it. The
// error is one that is worth an immediate retry.
func (r *Reconciler) do(ctx context.Context, p *plan) ([]refusal, error) {
	missing := sets.New[string]()
	for i := range p.steps {
		if p.steps[i].create != nil {
			missing.Insert(p.steps[i].name)
		}
	}
	pending := p.steps
	for {
		var refused []refusal
		var rest []step
		var failures []error
		for i := range pending {
			s := &pending[i]
			err := error(nil)
			if missing.Has(s.parent) {
				err = errParentMissing
			} else if err = r.write(ctx, s); err == nil {
				missing.Delete(s.name)
				continue
			}
			switch {
			case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err), ctx.Err() != nil:
				return nil, err
			case !definite(err):
				failures = append(failures, err)
			}
			rest = append(rest, *s)
			refused = append(refused, refusal{name: s.name, Problem: Problem{
				Node: s.node, Reason: reasonRefused, Parked: s.remove == nil,
				Message: fmt.Sprintf("ElasticQuota %s: %v", s.name, err),
			}})
		}
		if len(rest) == 0 || len(rest) == len(pending) {
			return refused, errors.Join(failures...)
		}
		pending = rest
	}
}

var errParentMissing = errors.New("the quota above could not be made")

// definite says whether the answer would be the same at once.
func definite(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return errors.Is(err, errParentMissing)
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err)
}

func (r *Reconciler) write(ctx context.Context, s *step) error {
	logger := klog.FromContext(ctx).WithValues("elasticQuota", s.name, "node", s.node)
	switch {
	case s.create != nil:
		logger.Info("Creating the ElasticQuota of a node")
		return r.Client.Create(ctx, s.create.DeepCopy(), fieldOwner)
	case s.patch != nil:
		logger.Info("Changing the ElasticQuota of a node")
		patch := client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})
		return r.Client.Patch(ctx, s.patch.DeepCopy(), patch, fieldOwner)
	default:
		logger.Info("Deleting the ElasticQuota of a node that is gone")
		uid := s.remove.GetUID()
		return client.IgnoreNotFound(r.Client.Delete(ctx, s.remove.DeepCopy(), client.Preconditions{UID: &uid}))
	}
}

// tell writes the status of a tree, and an event for each problem that the status did not tell before.
func (r *Reconciler) tell(
	ctx context.Context, tree *v1beta1.ElasticQuotaTree, placed, parked int32, problems []Problem,
) error {
	c := metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: reasonExpanded,
		ObservedGeneration: tree.Generation}
	texts := make([]string, 0, told+1)
	before := ""
	if last := meta.FindStatusCondition(tree.Status.Conditions, v1beta1.ConditionReady); last != nil {
		before = last.Message
	}
	for i := range problems {
		if problems[i].Parked {
			c.Status, c.Reason = metav1.ConditionFalse, reasonParked
		}
		if problems[i].Reason == reasonUnreadable {
			c.Reason = reasonUnreadable
		}
		if i >= told {
			continue
		}
		text := problems[i].text()
		texts = append(texts, text)
		if !strings.Contains(before, text) {
			r.Recorder.Eventf(tree, nil, corev1.EventTypeWarning, problems[i].Reason, "Expand", "%s", text)
		}
	}
	if more := len(problems) - told; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	c.Message = strings.Join(texts, "; ")
	after := tree.DeepCopy()
	after.Status.ObservedGeneration, after.Status.Quotas, after.Status.Parked = tree.Generation, placed, parked
	c.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	meta.SetStatusCondition(&after.Status.Conditions, c)
	if apiequality.Semantic.DeepEqual(after.Status, tree.Status) {
		return nil
	}
	// The answer is not read into the type, which a tree that cannot be read would not fit.
	patch := client.RawPatch(types.MergePatchType, []byte(encode(map[string]any{
		"metadata": map[string]any{"resourceVersion": tree.ResourceVersion}, "status": after.Status,
	})))
	object := newTree()
	object.SetNamespace(tree.Namespace)
	object.SetName(tree.Name)
	err := r.Client.Status().Patch(ctx, object, patch, fieldOwner)
	if apierrors.IsNotFound(err) {
		// The tree is gone, or an older CRD has no status to write.
		return nil
	}
	return err
}

func (p *Problem) text() string {
	text := p.Node + ": " + p.Reason + ": " + p.Message
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

// treesOf are the trees that an ElasticQuota may concern: all, as it may have a name or a namespace that one of them
// asks for.
func (r *Reconciler) treesOf(ctx context.Context) []ctrl.Request {
	trees := newList(v1beta1.ElasticQuotaTreeKind)
	if err := r.Reader.List(ctx, trees, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the trees that an ElasticQuota may concern")
		return nil
	}
	requests := make([]ctrl.Request, len(trees.Items))
	for i := range trees.Items {
		requests[i].NamespacedName = types.NamespacedName{
			Namespace: trees.Items[i].GetNamespace(), Name: trees.Items[i].GetName(),
		}
	}
	return requests
}
