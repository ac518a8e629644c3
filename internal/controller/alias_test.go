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
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

const (
	kueueQueue    = "kueue.x-k8s.io/queue-name"
	yunikornQueue = "yunikorn.apache.org/queue"
)

// understanding has the labels of Kueue and YuniKorn understood in the namespace of the jobs.
func understanding(t *testing.T, w *world) {
	t.Helper()
	m, err := managedjobs.Parse(`
aliases:
- system: Kueue
  namespaceSelector: {matchLabels: {aliases: "on"}}
  queues: {user-queue: {quota: a}}
  priorities: {high: 50}
- system: YuniKorn
  namespaceSelector: {matchLabels: {aliases: "on"}}
  queues: {root.sandbox: {quota: b}}
`)
	require.NoError(t, err)
	w.r.Options.Predicate, err = managedjobs.NewPredicate(m)
	require.NoError(t, err)
	namespace := &corev1.Namespace{}
	require.NoError(t, w.base.Get(t.Context(), types.NamespacedName{Name: "team"}, namespace))
	namespace.Labels = map[string]string{"aliases": "on"}
	require.NoError(t, w.base.Update(t.Context(), namespace))
}

// ofKueue is a job as Kueue's users write it.
func ofKueue(j *batchv1.Job) {
	j.Labels, j.CreationTimestamp = map[string]string{kueueQueue: "user-queue"}, epoch
}

func TestAJobOfKueueRunsUnchanged(t *testing.T) {
	w := newWorld(t, newJob(ofKueue))
	understanding(t, w)
	w.settle()
	unit := w.unit()
	require.Equal(t, "a", unit.Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "a", unit.Spec.Queue)
	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName], "Koordinator charges its pods")
	require.Empty(t, w.job().Labels[v1alpha1.LabelQuotaName])
	require.Empty(t, w.settle(), "our own label on the templates is no second queue")
}

func TestWhatElseAJobOfKueueAsksFor(t *testing.T) {
	const class, runTime = "kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/max-exec-time-seconds"
	for name, tc := range map[string]struct {
		edit     func(*batchv1.Job)
		priority int32
		seconds  *int32
		told     []string
	}{
		"listed": {func(j *batchv1.Job) { j.Labels[class], j.Labels[runTime] = "high", "60" }, 50, ptr.To[int32](60),
			nil},
		"not listed": {func(j *batchv1.Job) { j.Labels[class] = "low" }, 0, nil, []string{"IgnoredKey"}},
		"ours first": {func(j *batchv1.Job) {
			j.Labels[class], j.Labels[runTime] = "high", "60"
			j.Annotations = map[string]string{v1alpha1.AnnotationPriority: "7", v1alpha1.AnnotationMaxExecutionTime: "5"}
		}, 7, ptr.To[int32](5), nil},
		"a key without effect": {func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": "rack"}
		}, 0, nil, []string{"IgnoredKey"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(ofKueue, tc.edit))
			understanding(t, w)
			namespace := &corev1.Namespace{}
			require.NoError(t, w.base.Get(t.Context(), types.NamespacedName{Name: "team"}, namespace))
			namespace.Annotations = map[string]string{v1alpha1.AnnotationMaxPriority: "1000"}
			require.NoError(t, w.base.Update(t.Context(), namespace))
			w.settle()
			require.Equal(t, tc.priority, ptr.Deref(w.unit().Spec.Priority, 0))
			require.Equal(t, tc.seconds, w.unit().Spec.MaximumExecutionTimeSeconds)
			require.Equal(t, append([]string{"Queued"}, tc.told...), w.told())
			job := w.job()
			delete(job.Labels, runTime)
			delete(job.Annotations, v1alpha1.AnnotationMaxExecutionTime)
			require.NoError(t, w.base.Update(t.Context(), job))
			w.settle()
			require.Nil(t, w.unit().Spec.MaximumExecutionTimeSeconds, "it says so no more")
		})
	}
}

func TestWhatBecomesOfLabelsThatNameNoOneQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*batchv1.Job)
		told []string
	}{
		"two systems": {func(j *batchv1.Job) { j.Labels[yunikornQueue] = "root.sandbox" }, []string{"AmbiguousQueue"}},
		"two systems, and it runs": {func(j *batchv1.Job) {
			unsuspended(j)
			j.Spec.Template.Labels = map[string]string{"queue": "root.sandbox"}
		}, []string{"AmbiguousQueue"}},
		"another quota of ours": {func(j *batchv1.Job) {
			j.Labels[v1alpha1.LabelQuotaName] = "b"
		}, []string{"AmbiguousQueue"}},
		"a queue without alias": {func(j *batchv1.Job) { j.Labels[kueueQueue] = "other" }, []string{"Unmanaged"}},
		"told by the process before": {func(j *batchv1.Job) {
			j.Labels[yunikornQueue], j.CreationTimestamp = "root.sandbox", metav1.NewTime(epoch.AddDate(0, 0, -1))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(ofKueue, tc.edit))
			understanding(t, w)
			require.Empty(t, w.settle(), "it is left alone")
			require.Equal(t, tc.told, w.told())
			require.Nil(t, w.unit())
		})
	}
}

// A tenant must not get its waiting job resumed by a second label.
func TestAWaitingJobThatBecomesAmbiguousStaysSuspended(t *testing.T) {
	w := newWorld(t, newJob(ofKueue, unsuspended))
	understanding(t, w)
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	job := w.job()
	job.Labels[yunikornQueue] = "root.sandbox"
	require.NoError(t, w.base.Update(t.Context(), job))
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	require.Nil(t, w.unit())
}

// A job that runs keeps its quota when its labels mean nothing any more, or too much.
func TestARunningJobOutlivesItsAlias(t *testing.T) {
	for name, change := range map[string]func(*world){
		"the alias is gone": func(w *world) {
			p, err := managedjobs.NewPredicate(managedjobs.Default())
			require.NoError(w.t, err)
			w.r.Options.Predicate = p
		},
		"a second label": func(w *world) {
			job := w.job()
			job.Labels[yunikornQueue] = "root.sandbox"
			require.NoError(w.t, w.base.Update(w.t.Context(), job))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(ofKueue))
			understanding(t, w)
			w.settle()
			w.admit()
			w.settle()
			w.jobStatus(runs(2))
			w.settle()
			change(w)
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
			require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
			require.Equal(t, "a", w.unit().Labels[v1alpha1.LabelQuotaName])
		})
	}
}

// In a namespace whose jobs are queued by labels of another system no policy sees templates as those of a queue. The
// controller writes the label of the quota into them, so it looks at how their pods end (S8).
func TestAJobWhosePodsStayIsParked(t *testing.T) {
	for name, edit := range map[string]func(*corev1.PodTemplateSpec){
		"finalizers": func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"example.com/mine"} },
		"a year":     func(p *corev1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](31536000) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(ofKueue, func(j *batchv1.Job) { edit(&j.Spec.Template) }))
			understanding(t, w)
			w.settle()
			require.False(t, *w.unit().Spec.Active)
			require.Equal(t, "SlowTermination", w.unit().Annotations[v1alpha1.AnnotationParkedReason])
		})
	}
	t.Run("an hour", func(t *testing.T) {
		w := newWorld(t, newJob(ofKueue, func(j *batchv1.Job) {
			j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
		}))
		understanding(t, w)
		w.settle()
		require.Nil(t, w.unit().Spec.Active)
	})
}
