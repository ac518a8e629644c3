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
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/uninstall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

func (w *world) uninstall(waiting uninstall.Waiting, dryRun bool) (uninstall.Summary, string, error) {
	out := &strings.Builder{}
	u := &uninstall.Run{
		Client: w.client, Kinds: jobkind.Builtin(), Waiting: waiting, DryRun: dryRun, QueueNamespace: "koord-queue",
		Lease: types.NamespacedName{Namespace: "koord-queue", Name: "jobqueue-controller"}, Out: out,
		Clock: hastyClock{w.clock, func() {}},
	}
	s, err := u.Do(context.Background())
	return s, out.String(), err
}

// hastyClock is there when somebody waits, after calling waited.
type hastyClock struct {
	*testingclock.FakePassiveClock
	waited func()
}

func (c hastyClock) After(d time.Duration) <-chan time.Time {
	c.SetTime(c.Now().Add(d))
	c.waited()
	now := make(chan time.Time, 1)
	now <- c.Now()
	return now
}

func TestUninstallResumesWhatWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		edit func(w *world)
		mode uninstall.Waiting
		want uninstall.Summary
		runs bool
	}{
		"suspended by us, resume": {newJob(unsuspended), nil, uninstall.Resume,
			uninstall.Summary{Resumed: 1, Units: 1}, true},
		"suspended by its user": {newJob(), nil, uninstall.Resume, uninstall.Summary{Resumed: 1, Units: 1}, true},
		"suspended by us, leave": {newJob(unsuspended), nil, uninstall.Leave,
			uninstall.Summary{Left: 1, Units: 1}, false},
		"suspended by its user, leave": {newJob(), nil, uninstall.Leave, uninstall.Summary{Left: 1, Units: 1}, false},
		"admitted, not yet resumed": {newJob(), (*world).admit, uninstall.Leave,
			uninstall.Summary{Resumed: 1, Units: 1}, true},
		"held by hand": {newJob(), func(w *world) {
			u := w.unit()
			no := false
			u.Spec.Active = &no
			w.update(u)
		}, uninstall.Resume, uninstall.Summary{Held: 1, Units: 1}, false},
		"parked by us": {newJob(func(j *batchv1.Job) {
			j.Spec.Template.Labels = map[string]string{v1alpha1.LabelQuotaName: "b"}
		}), nil, uninstall.Resume, uninstall.Summary{Resumed: 1, Units: 1}, true},
		"running": {newJob(), func(w *world) {
			w.admit()
			w.settle()
			w.jobStatus(runs(2))
			w.settle()
		}, uninstall.Leave, uninstall.Summary{Cleaned: 1, Units: 1}, true},
		"not ours": {newJob(func(j *batchv1.Job) { j.Labels = nil }), nil, uninstall.Resume, uninstall.Summary{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.job)
			w.settle()
			if tc.edit != nil {
				tc.edit(w)
			}
			before := w.job()
			w.writes = nil
			s, text, err := w.uninstall(tc.mode, true)
			require.NoError(t, err)
			require.Equal(t, tc.want, s, text)
			require.Empty(t, w.writes, "a dry run changes nothing")
			require.Equal(t, before, w.job())

			s, text, err = w.uninstall(tc.mode, false)
			require.NoError(t, err)
			require.Equal(t, tc.want, s, text)
			require.Nil(t, w.unit())
			job := w.job()
			require.Equal(t, !tc.runs, *job.Spec.Suspend)
			require.NotContains(t, job.Annotations, v1alpha1.AnnotationSuspendedBy)
			require.NotContains(t, job.Annotations, v1alpha1.AnnotationTemplateAdditions)

			w.writes = nil
			s, _, err = w.uninstall(tc.mode, false)
			require.NoError(t, err)
			require.Empty(t, w.writes, "once is enough")
			require.Equal(t, uninstall.Summary{}, s)
		})
	}
}

func TestUninstallRestoresTemplates(t *testing.T) {
	w := newWorld(t, newJob())
	before := w.job()
	w.settle()
	w.admit()
	u := w.unit()
	u.Status.QuotaChoice = &v1alpha1.QuotaChoice{Name: "a", First: "a", NodeSelector: map[string]string{"pool": "a"}}
	w.updateStatus(u)
	w.settle()
	job := w.job() // evicted before it ever started
	require.NotEmpty(t, job.Spec.Template.Spec.NodeSelector)
	yes := true
	job.Spec.Suspend = &yes
	job.Annotations[v1alpha1.AnnotationSuspendedBy] = v1alpha1.CreatedByController
	w.update(job)
	_, _, err := w.uninstall(uninstall.Leave, false)
	require.NoError(t, err)
	require.False(t, *w.job().Spec.Suspend, "an admitted unit lets its job go in either mode")
	before.Spec.Template.Labels = map[string]string{v1alpha1.LabelQuotaName: "a"}
	require.Equal(t, before.Spec.Template, w.job().Spec.Template)
}

// Koordinator charges pods by their own label. Only the unit may know the quota, as where that is of the namespace.
func TestUninstallChargesWhatItResumes(t *testing.T) {
	ofOwner := func(j *batchv1.Job) { j.Spec.Template.Labels = map[string]string{v1alpha1.LabelQuotaName: "b"} }
	chosen := func(w *world) {
		w.admit()
		u := w.unit()
		u.Status.QuotaChoice = &v1alpha1.QuotaChoice{Name: "c", First: "a"}
		w.updateStatus(u)
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		edit func(w *world)
		mode uninstall.Waiting
		want string
	}{
		"resumed":                   {newJob(unsuspended), func(*world) {}, uninstall.Resume, "a"},
		"admitted":                  {newJob(), (*world).admit, uninstall.Leave, "a"},
		"admitted in another quota": {newJob(), chosen, uninstall.Leave, "c"},
		"a label of the owner":      {newJob(ofOwner), func(*world) {}, uninstall.Resume, "b"},
		"left suspended":            {newJob(), func(*world) {}, uninstall.Leave, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.job)
			w.settle()
			tc.edit(w)
			_, _, err := w.uninstall(tc.mode, false)
			require.NoError(t, err)
			require.Equal(t, tc.want, w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
			require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationTemplateAdditions)
		})
	}
}

// A unit says the quota of the job of its own name and namespace. Another unit with the UID of the job charges no pods.
func TestUninstallBelievesTheUnitOfTheJob(t *testing.T) {
	for name, forge := range map[string]func(u *v1alpha1.QueueUnit){
		"of another namespace": func(u *v1alpha1.QueueUnit) { u.Namespace = "zoo" },
		"of another name":      func(u *v1alpha1.QueueUnit) { u.Name = "z" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob())
			w.settle()
			forged := w.unit()
			forged.ResourceVersion, forged.Labels[v1alpha1.LabelQuotaName] = "", "b"
			forge(forged)
			require.NoError(t, w.base.Create(context.Background(), forged))
			_, _, err := w.uninstall(uninstall.Resume, false)
			require.NoError(t, err)
			require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
		})
	}
}

// A job whose pods cannot be charged is named. The job and its unit stay as they are, so another run knows the quota.
func TestUninstallReportsWhatItCannotCharge(t *testing.T) {
	kind, ok := jobkind.Find("RayJob.v1.ray.io")
	require.True(t, ok)
	job := newObject(kind.GVK)
	require.NoError(t, yaml.Unmarshal([]byte(`
metadata: {name: ray, namespace: team, uid: ray-1}
spec:
  suspend: true
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: c}]}}}
    workerGroupSpecs: [{groupName: w, replicas: many, template: {spec: {containers: [{name: c}]}}}]
`), &job.Object))
	job.SetGroupVersionKind(kind.GVK)
	job.SetAnnotations(map[string]string{v1alpha1.AnnotationSuspendedBy: v1alpha1.CreatedByController})
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: kind.UnitName("ray"), Labels: map[string]string{
			v1alpha1.LabelQuotaName: "a", v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController,
		},
	}}
	u.Spec.ConsumerRef = &corev1.ObjectReference{Namespace: "team", Name: "ray", UID: "ray-1"}
	u.Spec.ConsumerRef.SetGroupVersionKind(kind.GVK)
	w := newWorld(t, newJob(), job, u)
	w.settle()
	for range 2 {
		s, text, err := w.uninstall(uninstall.Resume, false)
		require.ErrorContains(t, err, "1 objects could not be changed")
		require.Equal(t, 1, s.Failed, text)
		require.Contains(t, text, "RayJob team/ray: ")
		require.Contains(t, text, "replicas")
	}
	require.False(t, *w.job().Spec.Suspend, "the others are resumed")
	require.Nil(t, w.unit())
	require.NoError(t, w.base.Get(context.Background(), client.ObjectKeyFromObject(u), u), "another run needs it")
	require.NoError(t, w.base.Get(context.Background(), client.ObjectKeyFromObject(job), job))
	require.True(t, jobs.Open(kind, job).Suspended())
}

// Additions to the child of a job are removed from there.
func TestUninstallRestoresTemplatesOfChildren(t *testing.T) {
	kind, ok := jobkind.Find("TrainJob.v1alpha1.trainer.kubeflow.org")
	require.True(t, ok)
	own, child := newObject(kind.GVK), &unstructured.Unstructured{}
	own.SetNamespace("team")
	own.SetName("j")
	own.SetUID("job-1")
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j, namespace: team, uid: jobset-1}
spec:
  suspend: true
  replicatedJobs:
  - name: node
    template: {spec: {parallelism: 2, completions: 2, template: {spec: {
      schedulerName: koord-scheduler, containers: [{name: c}]}}}}
`), &child.Object))
	child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(own, kind.GVK)})
	_, before := jobs.Split(jobs.WithChild(kind, own, child))
	edit := jobs.Open(kind, jobs.WithChild(kind, own, child)).Edit()
	require.NoError(t, edit.AddToTemplates(map[string]jobs.Addition{
		"node": {Labels: map[string]string{v1alpha1.LabelQuotaName: "a"}},
	}))
	require.NoError(t, edit.SetSuspend(true)) // evicted before it ever started
	edit.MarkSuspended()
	job, jobSet := jobs.Split(edit.Job().Object)
	require.NotEqual(t, before.Object, jobSet.Object)

	job.SetResourceVersion("")
	jobSet.SetResourceVersion("")
	w := newWorld(t, job, jobSet)
	summary, text, err := w.uninstall(uninstall.Leave, false)
	require.NoError(t, err)
	require.Equal(t, uninstall.Summary{Left: 1}, summary, text)
	after := newObject(jobSet.GroupVersionKind())
	require.NoError(t, w.base.Get(context.Background(), client.ObjectKeyFromObject(jobSet), after))
	want, err := json.Marshal(before.Object["spec"])
	require.NoError(t, err)
	got, err := json.Marshal(after.Object["spec"])
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

func TestUninstallQueuesAndConfiguration(t *testing.T) {
	ours := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "a",
		Labels: map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController}}}
	theirs := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "b"}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: managedjobs.ConfigMap,
		Annotations: map[string]string{managedjobs.AnnotationHash: "x"}}}
	stranger := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j"}}
	w := newWorld(t, ours, theirs, stranger)
	require.NoError(t, w.base.Create(context.Background(), cm))
	w.refuse = nil
	u := &uninstall.Run{Client: w.base, Kinds: jobkind.Builtin(), Waiting: uninstall.Resume, QueueNamespace: "koord-queue",
		Clock: hastyClock{w.clock, func() {}}, Out: &strings.Builder{}}
	s, err := u.Do(context.Background())
	require.NoError(t, err)
	require.Equal(t, uninstall.Summary{Queues: 1}, s)
	left := &v1alpha1.QueueList{}
	require.NoError(t, w.base.List(context.Background(), left))
	require.Len(t, left.Items, 1)
	require.Equal(t, "b", left.Items[0].Name)
	require.NotNil(t, w.unit(), "a unit that somebody else made stays")
	require.NoError(t, w.base.Get(context.Background(), types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, cm))
	require.Empty(t, cm.Annotations)
}

// TestUninstallWaitsForTheLease: a controller that was just scaled to zero has not given the Lease back, and one that
// runs renews it.
func TestUninstallWaitsForTheLease(t *testing.T) {
	holder, seconds, renewed := "pod-1", int32(15), metav1.NewMicroTime(epoch.Time)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "jobqueue-controller"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	w := newWorld(t, newJob(), lease)
	w.settle()
	out, renews := &strings.Builder{}, true
	u := &uninstall.Run{
		Client: w.client, Kinds: jobkind.Builtin(), Waiting: uninstall.Resume, QueueNamespace: "koord-queue",
		Lease: client.ObjectKeyFromObject(lease), Out: out,
		Clock: hastyClock{w.clock, func() {
			if renews {
				lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(w.clock.Now()))
				require.NoError(t, w.base.Update(context.Background(), lease))
			}
		}},
	}
	u.DryRun = true
	_, err := u.Do(context.Background())
	require.NoError(t, err)
	require.Equal(t, epoch.Time, w.clock.Now(), "a dry run waits for nobody")
	require.Contains(t, out.String(), "would: wait for Lease koord-queue/jobqueue-controller, held by pod-1\n")

	u.DryRun = false
	out.Reset()
	_, err = u.Do(context.Background())
	require.ErrorIs(t, err, uninstall.ErrStillRunning)
	require.True(t, *w.job().Spec.Suspend)
	require.Equal(t, epoch.Add(time.Minute), w.clock.Now())
	const waiting = "waiting for Lease koord-queue/jobqueue-controller, held by pod-1\n"
	require.Equal(t, waiting, out.String())

	renews = false
	out.Reset()
	_, err = u.Do(context.Background())
	require.NoError(t, err)
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, epoch.Add(75*time.Second), w.clock.Now(), "the Lease ends 15 seconds after its last renewal")
	require.Contains(t, out.String(), waiting)
}
