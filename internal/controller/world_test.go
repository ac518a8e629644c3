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
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/pathfinder"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/jobobjects"
)

// world is a reconciler with a fake API server. It logs writes of the reconciler. The test plays users, the scheduler
// and the job controller through base, without a log.
type world struct {
	t      testing.TB
	base   client.Client
	client client.Client
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	r      *JobReconciler
	// writes of the reconciler, as "verb kind/name".
	writes []string
	// refuse, when set, is asked before each write of the reconciler.
	refuse func(verb string, o client.Object) error
	// quotas of the cluster by their names, with their parents.
	quotas map[string][]string
	// fails, when set, is what reading events comes to.
	fails error
}

func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	scheme, err := Scheme()
	require.NoError(t, err)
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(epoch.Time), events: events.NewFakeRecorder(1000)}
	base := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(elasticquota.New(), elasticquota.MappedIndex, elasticquota.MappedNamespaces).
		WithIndex(&v1alpha1.QueueUnit{}, pathfinder.Index, pathfinder.QuotasOnPath).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}).
		WithStatusSubresource(&v1alpha1.QueueUnit{}, &batchv1.Job{}).Build()
	w.base = base
	w.client = interceptor.NewClient(base, w.hooks())
	w.restart()
	return w
}

// restart replaces the process: nothing in memory is left.
func (w *world) restart() {
	predicate, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(w.t, err)
	w.r = NewJobReconciler(*jobobjects.BatchJob(w.t), Options{
		QueueNamespace: v1alpha1.DefaultQueueNamespace, Predicate: predicate, Clock: w.clock,
		Plan: jobplan.Options{PartialAdmission: true},
	}, w.client, w.client, w.events)
}

func (w *world) hooks() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := w.log("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			w.precondition(o, p)
			if err := w.log("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var asked client.DeleteOptions
			asked.ApplyOptions(opts)
			if _, ok := o.(*v1alpha1.QueueUnit); ok {
				require.NotNil(w.t, asked.Preconditions, "the next job of that name may have a unit by now")
				require.Equal(w.t, o.GetUID(), *asked.Preconditions.UID)
			}
			if err := w.log("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			w.precondition(o, p)
			if err := w.log(sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if pods, ok := list.(*metav1.PartialObjectMetadataList); ok && pods.Kind == "PodList" {
				return w.boundPods(ctx, pods, opts...)
			}
			if pods, ok := list.(*corev1.PodList); ok {
				return w.podsOf(ctx, pods, opts...)
			}
			if quotas, ok := list.(*metav1.PartialObjectMetadataList); ok && quotas.Kind == "ElasticQuotaList" {
				return w.quotasNamed(ctx, quotas, opts...)
			}
			if events, ok := list.(*corev1.EventList); ok {
				return w.eventsOf(ctx, events, opts...)
			}
			return c.List(ctx, list, opts...)
		},
	}
}

// boundPods answers the one list with a field selector, which the fake client does not know.
func (w *world) boundPods(
	ctx context.Context, list *metav1.PartialObjectMetadataList, opts ...client.ListOption,
) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	pods := &corev1.PodList{}
	if o.LabelSelector == nil {
		o.LabelSelector = labels.Everything()
	}
	if err := w.base.List(ctx, pods, client.InNamespace(o.Namespace),
		client.MatchingLabelsSelector{Selector: o.LabelSelector}); err != nil {
		return err
	}
	for i := range pods.Items {
		if o.FieldSelector.Matches(fields.Set{
			"spec.nodeName": pods.Items[i].Spec.NodeName, "status.phase": string(pods.Items[i].Status.Phase),
		}) {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: pods.Items[i].ObjectMeta})
		}
	}
	return nil
}

// podsOf answers lists of whole pods, page by page.
func (w *world) podsOf(ctx context.Context, list *corev1.PodList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	require.NotZero(w.t, o.Limit)
	if err := w.base.List(ctx, list, client.InNamespace(o.Namespace),
		client.MatchingLabelsSelector{Selector: o.LabelSelector}); err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return !o.FieldSelector.Matches(fields.Set{"status.phase": string(pod.Status.Phase)})
	})
	from := 0
	if o.Continue != "" {
		var err error
		from, err = strconv.Atoi(o.Continue)
		require.NoError(w.t, err)
	}
	to := from + int(o.Limit)
	if to < len(list.Items) {
		list.Continue = strconv.Itoa(to)
	}
	list.Items = list.Items[from:min(to, len(list.Items))]
	return nil
}

// eventsOf answers the lists of events, which have field selectors as well.
func (w *world) eventsOf(ctx context.Context, list *corev1.EventList, opts ...client.ListOption) error {
	if w.fails != nil {
		return w.fails
	}
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	require.NotZero(w.t, o.Limit)
	all := &corev1.EventList{}
	if err := w.base.List(ctx, all, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		e := &all.Items[i]
		if o.FieldSelector.Matches(fields.Set{
			"involvedObject.uid": string(e.InvolvedObject.UID), "involvedObject.kind": e.InvolvedObject.Kind, "type": e.Type,
		}) {
			list.Items = append(list.Items, *e)
		}
	}
	return nil
}

// precondition: no write without the resourceVersion of what was decided on.
func (w *world) precondition(o client.Object, p client.Patch) {
	data, err := p.Data(o)
	require.NoError(w.t, err)
	require.Contains(w.t, string(data), "resourceVersion")
}

func (w *world) log(verb string, o client.Object) error {
	if w.refuse != nil {
		if err := w.refuse(verb, o); err != nil {
			return err
		}
	}
	kind := fmt.Sprintf("%T", o)
	if gvk, err := w.base.GroupVersionKindFor(o); err == nil {
		kind = gvk.Kind
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %s/%s", verb, kind, o.GetName()))
	return nil
}

// settle reconciles, also at the times asked for, until nothing is written any more, and returns what was (I12).
func (w *world) settle() []string {
	w.t.Helper()
	w.writes = nil
	for range 20 {
		before := len(w.writes)
		result := w.reconcile()
		if len(w.writes) == before && result.IsZero() {
			return w.writes
		}
		w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
	}
	w.t.Fatalf("no fixpoint after %v", w.writes)
	return nil
}

func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	result, err := w.r.Reconcile(quiet(), request("team", "j"))
	require.NoError(w.t, err)
	return result
}

// remembered of the job; nil if that is nothing.
func (w *world) remembered() *remembered {
	known, _ := w.r.memory.Named(types.NamespacedName{Namespace: "team", Name: "j"})
	return known
}

func (w *world) job() *batchv1.Job {
	w.t.Helper()
	job := &batchv1.Job{}
	require.NoError(w.t, w.base.Get(context.Background(), types.NamespacedName{Namespace: "team", Name: "j"}, job))
	return job
}

// unit is nil when there is none.
func (w *world) unit() *v1alpha1.QueueUnit {
	w.t.Helper()
	u := &v1alpha1.QueueUnit{}
	err := w.base.Get(context.Background(), types.NamespacedName{Namespace: "team", Name: "j"}, u)
	if client.IgnoreNotFound(err) != nil {
		require.NoError(w.t, err)
	}
	if err != nil {
		return nil
	}
	return u
}

func (w *world) update(o client.Object) {
	w.t.Helper()
	require.NoError(w.t, w.base.Update(context.Background(), o))
}

func (w *world) updateStatus(o client.Object) {
	w.t.Helper()
	require.NoError(w.t, w.base.Status().Update(context.Background(), o))
}

var epoch = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func setCondition(
	u *v1alpha1.QueueUnit, kind string, status metav1.ConditionStatus, reason, message string, now metav1.Time,
) {
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: now,
	})
}

func allReady(u *v1alpha1.QueueUnit) bool {
	return meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionPodsReady)
}

// request1 claims that the job asks for less than it does.
func request1(u *v1alpha1.QueueUnit) {
	u.Spec.Request = corev1.ResourceList{"cpu": resource.MustParse("1m")}
}

// admit plays the scheduler.
func (w *world) admit() {
	w.t.Helper()
	u := w.unit()
	u.Status.Phase = v1alpha1.PhaseDequeued
	u.Status.Attempts++
	u.Status.Admissions = []v1alpha1.Admission{
		{Name: "j", Replicas: int64(u.Spec.PodSets[0].Count), Resources: u.Spec.Request},
	}
	setCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", epoch)
	setCondition(u, v1alpha1.ConditionAdmitted, metav1.ConditionTrue, "Admitted", "", epoch)
	w.updateStatus(u)
}

// jobStatus plays the job's own controller.
func (w *world) jobStatus(edit func(s *batchv1.JobStatus)) {
	w.t.Helper()
	job := w.job()
	edit(&job.Status)
	w.updateStatus(job)
}

func runs(n int32) func(*batchv1.JobStatus) {
	return func(s *batchv1.JobStatus) {
		s.Active, s.Ready = n, &n
		now := epoch
		s.StartTime = &now
	}
}

// noted: the job's own controller has seen the suspension and removed the pods.
func noted(s *batchv1.JobStatus) {
	s.Active, s.Ready = 0, nil
	s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
}

func completes(s *batchv1.JobStatus) {
	none := int32(0)
	s.Active, s.Ready, s.Succeeded = 0, &none, 2
	s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
}

// told drains the events: their reasons, in order.
func (w *world) told() []string {
	var reasons []string
	for {
		select {
		case e := <-w.events.Events:
			reasons = append(reasons, strings.Fields(e)[1])
		default:
			return reasons
		}
	}
}

// newJob asks for twice 500m cpu in quota a.
func newJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	two, yes := int32(2), true
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "j", UID: "job-1",
			Labels: map[string]string{v1alpha1.LabelQuotaName: "a"},
		},
		Spec: batchv1.JobSpec{Parallelism: &two, Completions: &two, Suspend: &yes},
	}
	job.Spec.Template.Spec.SchedulerName = "koord-scheduler"
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
	}}}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func unsuspended(job *batchv1.Job) {
	no := false
	job.Spec.Suspend = &no
}

// podOf is a pod of the job on a node, or on none.
func podOf(job *batchv1.Job, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name + "-x",
			Labels:          labels.Set{"batch.kubernetes.io/controller-uid": string(job.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

func (w *world) unstructuredJob() *unstructured.Unstructured {
	w.t.Helper()
	job := newObject(w.r.Kind.GVK)
	require.NoError(w.t, w.base.Get(context.Background(), types.NamespacedName{Namespace: "team", Name: "j"}, job))
	return job
}

func quiet() context.Context {
	return klog.NewContext(context.Background(), logr.Discard())
}
