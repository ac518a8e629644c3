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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/jobobjects"
)

// A simple job costs three writes in addition to the creation of its unit, and with the scheduler's write four. A job
// that runs for less than jobplan.RunningDelay costs one less.
func TestLifeOfAJobAndItsWrites(t *testing.T) {
	w := newWorld(t, newJob())
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle())
	require.Equal(t, []string{"Queued"}, w.told())

	w.admit()
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.Equal(t, []string{"Admitted"}, w.told())
	job := w.job()
	require.False(t, *job.Spec.Suspend)
	require.Equal(t, "a", job.Spec.Template.Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "team/j", job.Spec.Template.Annotations[v1alpha1.AnnotationRelatedQueueUnit])

	w.jobStatus(runs(1))
	require.Equal(t, jobplan.RunningDelay, w.reconcile().RequeueAfter)
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay / 2))
	require.Equal(t, jobplan.RunningDelay/2, w.reconcile().RequeueAfter)
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay))
	require.Equal(t, []string{"status QueueUnit/j"}, w.settle())
	require.Empty(t, w.told(), "the controller of the job tells that pods run")
	require.Equal(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)
	since := meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionPodsReady).LastTransitionTime
	require.True(t, since.Equal(&epoch), "since when, not since when it is said: %s", since)
	require.Zero(t, w.remembered().started)
	w.jobStatus(runs(2))
	require.Equal(t, jobplan.ReportInterval, w.reconcile().RequeueAfter, "how many pods run is told every now and then")
	require.False(t, allReady(w.unit()))
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay + jobplan.ReportInterval))
	require.Equal(t, []string{"status QueueUnit/j"}, w.settle())
	require.True(t, allReady(w.unit()))
	require.EqualValues(t, 2, w.unit().Status.Admissions[0].Running)
	require.Empty(t, w.told(), "it is no transition")

	w.jobStatus(completes)
	require.Equal(t, []string{"status QueueUnit/j"}, w.settle())
	require.Empty(t, w.told(), "the controller of the job tells its end")
	require.Equal(t, v1alpha1.PhaseSucceed, w.unit().Status.Phase)
	require.Empty(t, w.unit().Status.Admissions, "I7")

	w.restart()
	require.Empty(t, w.settle(), "I8")
	require.Empty(t, w.told(), "a restart tells nothing again")
}

// After a pod of a Job without completions has succeeded, no pod replaces those that end. So the unit gives their quota
// back.
func TestAWorkQueueGivesBackWhatHasEnded(t *testing.T) {
	w := newWorld(t, newJob(func(j *batchv1.Job) { j.Spec.Completions = nil }))
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	w.settle()
	require.Equal(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)
	w.jobStatus(func(s *batchv1.JobStatus) { s.Active, s.Failed = 1, 1 })
	w.settle()
	require.Empty(t, w.unit().Status.ReclaimablePods, "a pod takes the place of the one that failed")
	w.jobStatus(func(s *batchv1.JobStatus) { s.Active, s.Succeeded = 1, 1 })
	w.settle()
	require.Equal(t, []v1alpha1.ReclaimablePod{{Name: "j", Count: 1}}, w.unit().Status.ReclaimablePods)
}

func TestAShortJobNeverSaysThatItRuns(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	require.Equal(t, jobplan.RunningDelay, w.reconcile().RequeueAfter)
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay - time.Second))
	w.jobStatus(completes)
	require.Equal(t, []string{"status QueueUnit/j"}, w.settle())
	require.Equal(t, v1alpha1.PhaseSucceed, w.unit().Status.Phase)
	require.Equal(t, []string{"Queued", "Admitted"}, w.told())
	require.Zero(t, w.remembered().started)
}

func TestASuspendedJobWithoutLabelsIsTold(t *testing.T) {
	owner := metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Flow", Name: "f", UID: "f-1", Controller: ptr.To(true),
	}
	for name, tc := range map[string]struct {
		edit func(*batchv1.Job)
		told []string
	}{
		"suspended":                {func(*batchv1.Job) {}, []string{"Unmanaged"}},
		"running":                  {unsuspended, nil},
		"its controller's concern": {func(j *batchv1.Job) { j.OwnerReferences = []metav1.OwnerReference{owner} }, nil},
		"while the process started": {func(j *batchv1.Job) {
			j.CreationTimestamp = metav1.NewTime(epoch.Add(-10 * time.Second))
		}, []string{"Unmanaged"}},
		"before this process": {func(j *batchv1.Job) {
			j.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			now := func(j *batchv1.Job) { j.Labels, j.CreationTimestamp = nil, epoch }
			w := newWorld(t, newJob(now, tc.edit))
			require.Empty(t, w.settle())
			require.Equal(t, tc.told, w.told())
		})
	}
}

func TestUnitsOfFinishedJobsStayForTheirTime(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"as long as the job": 0, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob())
			w.r.Options.Plan.FinishedUnitsTTL = ttl
			w.settle()
			w.admit()
			w.settle()
			w.jobStatus(completes)
			require.False(t, w.reconcile().RequeueAfter > 0)
			require.Equal(t, ttl, w.reconcile().RequeueAfter)
			writes := w.settle()
			if ttl == 0 {
				require.Empty(t, writes)
				require.NotNil(t, w.unit())
				return
			}
			require.Equal(t, []string{"delete QueueUnit/j"}, writes)
			require.Nil(t, w.unit())
			require.Empty(t, w.settle(), "no other is made for a job that is over")
		})
	}
}

func TestUnmanagedJobsAreLeftAlone(t *testing.T) {
	other := "kueue.x-k8s.io/multikueue"
	for name, edit := range map[string]func(*batchv1.Job){
		"no label":           func(j *batchv1.Job) { j.Labels = nil },
		"managed by another": func(j *batchv1.Job) { j.Spec.ManagedBy = &other },
		"Kueue's":            func(j *batchv1.Job) { j.Labels["kueue.x-k8s.io/queue-name"] = "k" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(unsuspended, edit))
			var err error
			w.r.Options.Predicate, err = managedjobs.NewPredicate(managedjobs.Jobs{
				OtherQueueLabels: []string{"kueue.x-k8s.io/queue-name"},
			})
			require.NoError(t, err)
			before := w.job()
			require.Empty(t, w.settle())
			require.Equal(t, before, w.job())
			require.Empty(t, w.told())
		})
	}
}

func TestJobCreatedUnsuspended(t *testing.T) {
	w := newWorld(t, newJob(unsuspended))
	require.Equal(t, []string{"patch Job/j", "create QueueUnit/j"}, w.settle(), "suspended first: fewer pods are made")
	require.Equal(t, []string{"Suspended", "Queued"}, w.told())
	job := w.job()
	require.True(t, *job.Spec.Suspend)
	require.Equal(t, v1alpha1.CreatedByController, job.Annotations[v1alpha1.AnnotationSuspendedBy])

	w.admit()
	require.Empty(t, w.settle(), "pods from before lack the quota label")
	w.jobStatus(noted)
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationSuspendedBy)
}

func TestPodsThatAreOnNoNodeDoNotKeepAJobRunning(t *testing.T) {
	job := newJob(unsuspended)
	runs(0)(&job.Status)
	w := newWorld(t, job, podOf(job, ""))
	require.Equal(t, []string{"patch Job/j", "create QueueUnit/j"}, w.settle())
}

// A pod that has ended has the name of its node still.
func TestPodsThatHaveEndedDoNotKeepAJobRunning(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		job := newJob(unsuspended)
		runs(0)(&job.Status)
		pod := podOf(job, "n1")
		pod.Status.Phase = phase
		w := newWorld(t, job, pod)
		require.Equal(t, []string{"patch Job/j", "create QueueUnit/j"}, w.settle())
	}
}

func TestAdoption(t *testing.T) {
	job := newJob(unsuspended)
	runs(2)(&job.Status)
	w := newWorld(t, job, podOf(job, "n1"))
	before := w.job()
	require.Equal(t, []string{"create QueueUnit/j", "status QueueUnit/j"}, w.settle())
	require.Equal(t, before, w.job(), "its job is not touched")
	require.Equal(t, []string{"Adopted"}, w.told())
	u := w.unit()
	require.Equal(t, v1alpha1.PhaseRunning, u.Status.Phase)
	require.Equal(t, int64(1), u.Status.Attempts)
	require.Empty(t, u.Status.Admissions, "it holds what is bound, and who knows that is the scheduler")
	admitted := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionAdmitted)
	require.Equal(t, v1alpha1.ReasonAdopted, admitted.Reason)

	w.jobStatus(completes)
	w.settle()
	require.Equal(t, v1alpha1.PhaseSucceed, w.unit().Status.Phase)
}

func TestAdoptionGoesOnAfterACrash(t *testing.T) {
	job := newJob(unsuspended)
	runs(2)(&job.Status)
	w := newWorld(t, job, podOf(job, "n1"))
	w.refuse = func(verb string, _ client.Object) error {
		if verb == "status" {
			return apierrors.NewInternalError(context.DeadlineExceeded)
		}
		return nil
	}
	w.reconcile()
	_, err := w.r.Reconcile(quiet(), request("team", "j"))
	require.Error(t, err)
	require.False(t, *w.job().Spec.Suspend)
	w.refuse = nil
	w.restart()
	w.settle()
	require.Equal(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)
	require.False(t, *w.job().Spec.Suspend)
}

func TestJobCreatedAnewUnderItsName(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	first := w.unit()
	require.NoError(t, w.base.Delete(context.Background(), w.job()))
	require.NoError(t, w.base.Create(context.Background(), newJob(func(j *batchv1.Job) { j.UID = "job-2" })))
	require.Equal(t, []string{"delete QueueUnit/j", "create QueueUnit/j"}, w.settle())
	require.True(t, *w.job().Spec.Suspend, "I3: admitted was another job")
	require.NotEqual(t, first.ResourceVersion, w.unit().ResourceVersion)
	require.Equal(t, "job-2", string(w.unit().Spec.ConsumerRef.UID))
}

func TestUnitOfAJobThatIsGone(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	require.NoError(t, w.base.Delete(context.Background(), w.job()))
	require.Equal(t, []string{"delete QueueUnit/j"}, w.settle())
	require.Nil(t, w.unit())
}

func TestHandResumedJobIsSuspendedAgain(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	job := w.job()
	unsuspended(job)
	w.update(job)
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.True(t, *w.job().Spec.Suspend)
}

// Somebody resumes a job, which the controller had suspended, just before its admission. The gate holds its pods as
// long as the job has the mark.
func TestJobResumedByHandJustBeforeItsAdmission(t *testing.T) {
	w := newWorld(t, newJob(unsuspended))
	w.settle()
	require.NotEmpty(t, w.job().Annotations[v1alpha1.AnnotationSuspendedBy])
	job := w.job()
	unsuspended(job)
	w.update(job)
	w.admit()
	w.settle()
	require.True(t, *w.job().Spec.Suspend, "its pods lack what resuming gives them")
	w.jobStatus(noted)
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Empty(t, w.job().Annotations[v1alpha1.AnnotationSuspendedBy])
}

// oldNews is a cache that is behind with a unit, or with a job. notSeen is a unit that it has not seen at all.
type oldNews struct {
	client.Client
	unit *v1alpha1.QueueUnit
	job  *unstructured.Unstructured
}

var notSeen = &v1alpha1.QueueUnit{}

func (c oldNews) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.QueueUnit:
		if c.unit == notSeen {
			return apierrors.NewNotFound(v1alpha1.QueueUnitResource.GroupResource(), key.Name)
		}
		if c.unit != nil {
			c.unit.DeepCopyInto(o)
			return nil
		}
	case *unstructured.Unstructured:
		if c.job != nil {
			c.job.DeepCopyInto(o)
			return nil
		}
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// behind replaces the process by one whose cache is behind.
func (w *world) behind(cache oldNews) {
	w.t.Helper()
	w.restart()
	cache.Client = w.client
	w.r.Client = cache
}

// After a start the cache of units may be behind that of jobs. A job that was resumed is not suspended on that ground:
// its pods would be taken away and run a second time.
func TestOldNewsOfAUnitSuspendNothing(t *testing.T) {
	for name, old := range map[string]func(now *v1alpha1.QueueUnit) *v1alpha1.QueueUnit{
		"not admitted yet": func(now *v1alpha1.QueueUnit) *v1alpha1.QueueUnit { return now },
		"not seen yet":     func(*v1alpha1.QueueUnit) *v1alpha1.QueueUnit { return notSeen },
		"of an earlier job": func(now *v1alpha1.QueueUnit) *v1alpha1.QueueUnit {
			now.Spec.ConsumerRef.UID = "earlier"
			return now
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob())
			w.settle()
			cached := old(w.unit().DeepCopy())
			w.admit()
			w.settle()
			if name == "not admitted yet" {
				w.jobStatus(runs(2))
			}
			w.behind(oldNews{unit: cached})
			w.reconcile()
			require.False(t, *w.job().Spec.Suspend)
			require.True(t, unit.Phase(w.unit().Status.Phase).Holds())
		})
	}
}

// tally reads from the API server, and counts how often.
type tally struct {
	client.Reader
	reads *int
}

func (c tally) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	*c.reads++
	return c.Reader.Get(ctx, key, o, opts...)
}

// A unit that was made, and has not come yet, is waited for without a read of its job. If it came and went, the job may
// be gone: an outdated cache makes no other unit for it.
func TestOldNewsOfAJobMakeNoUnitAgain(t *testing.T) {
	w := newWorld(t, newJob())
	old, reads := w.unstructuredJob(), 0
	w.r.LiveJobs = tally{w.client, &reads}
	w.r.Client, w.r.Jobs = oldNews{Client: w.client, unit: notSeen}, oldNews{Client: w.client, job: old}
	w.reconcile()
	require.NotNil(t, w.unit())
	w.reconcile()
	require.Zero(t, reads)

	w.r.Client = w.client
	w.reconcile()
	require.NoError(t, w.base.Delete(t.Context(), w.unit()))
	require.NoError(t, w.base.Delete(t.Context(), w.job()))
	w.reconcile()
	require.Nil(t, w.unit())
	require.Equal(t, 1, reads)
}

// The cache of jobs can be behind that of units, after a start or a pause of the process. The unit can then belong to
// the next job of the name, to a newer request, or to a job that has become managed since. It must not be deleted
// because of that.
func TestOldNewsOfAJobDeleteNoUnit(t *testing.T) {
	for name, tc := range map[string]struct {
		before  *batchv1.Job
		between func(w *world)
	}{
		"created again under the name": {newJob(unsuspended), func(w *world) {
			require.NoError(t, w.base.Delete(t.Context(), w.job()))
			require.NoError(t, w.base.Delete(t.Context(), w.unit()))
			require.NoError(t, w.base.Create(t.Context(), newJob(func(job *batchv1.Job) { job.UID = "job-2" })))
		}},
		"made smaller while it waited": {newJob(), func(w *world) {
			job := w.job()
			job.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("250m")
			w.update(job)
		}},
		"labelled meanwhile": {newJob(func(job *batchv1.Job) { job.Labels = nil }), func(w *world) {
			job := w.job()
			job.Labels = map[string]string{v1alpha1.LabelQuotaName: "a"}
			w.update(job)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.settle()
			old := w.unstructuredJob()
			tc.between(w)
			w.settle()
			w.admit()
			w.behind(oldNews{job: old})
			w.writes = nil
			w.reconcile()
			require.NotContains(t, w.writes, "delete QueueUnit/j")
		})
	}
}

// The reason for the deletion of a unit can disappear before the request arrives.
func TestAUnitThatChangesMeanwhileIsNotDeleted(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	job := w.job()
	job.Labels = nil
	w.update(job)
	w.refuse = func(verb string, _ client.Object) error {
		if verb == "delete" {
			w.refuse = nil
			w.admit()
		}
		return nil
	}
	w.reconcile()
	require.NotNil(t, w.unit())
}

func TestEvictedJobIsSuspendedAndComesBack(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	w.settle()
	w.told()

	u := w.unit()
	u.Status.Phase = v1alpha1.PhaseEnqueued
	u.Status.Admissions = nil
	u.Status.Message = "held"
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "Deactivated", "held", epoch)
	w.updateStatus(u)
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.Equal(t, []string{"Evicted"}, w.told())
	require.True(t, *w.job().Spec.Suspend)

	// Once its earlier run is forgotten, its owner's templates are restored; while it is not, they must stay.
	require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
	w.jobStatus(func(s *batchv1.JobStatus) {
		noted(s)
		s.StartTime = nil
	})
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.Empty(t, w.job().Spec.Template.Labels)
	require.Empty(t, w.job().Spec.Template.Annotations)

	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
}

// A job that was created unsuspended has been started; its templates can be changed only once that is taken back.
func TestQuotaReachesThePodsOfAJobThatHasRun(t *testing.T) {
	w := newWorld(t, newJob(unsuspended, func(j *batchv1.Job) { runs(2)(&j.Status) }))
	w.settle()
	w.jobStatus(noted)
	require.Equal(t, []string{"status Job/j"}, w.settle())
	require.Nil(t, w.job().Status.StartTime)
	w.admit()
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
}

func TestTemplatesThatMayNotChange(t *testing.T) {
	w := newWorld(t, newJob(func(j *batchv1.Job) {
		j.Spec.Template.Labels = map[string]string{v1alpha1.LabelQuotaName: "a"}
	}))
	w.settle()
	w.admit()
	w.refuse = func(verb string, o client.Object) error {
		if verb == "patch" && o.GetAnnotations()[v1alpha1.AnnotationTemplateAdditions] != "" {
			return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", nil)
		}
		return nil
	}
	w.settle()
	require.False(t, *w.job().Spec.Suspend, "resumed without additions")
	require.Empty(t, w.job().Spec.Template.Annotations)
}

// An admitted job whose resumption a policy, a webhook or a quota of the cluster refuses says so in its unit.
func TestAResumptionThatIsRefused(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j",
			errors.New("no GPUs on Sundays")),
		"invalid": apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), "j", field.ErrorList{
			field.Forbidden(nil, "no GPUs on Sundays"),
		}),
		"webhook": apierrors.NewInternalError(errors.New(`failed calling webhook "no GPUs on Sundays"`)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob())
			w.settle()
			w.jobStatus(func(s *batchv1.JobStatus) {
				s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
			})
			w.admit()
			w.refuse = func(verb string, o client.Object) error {
				if o.GetObjectKind().GroupVersionKind().Kind == "Job" {
					return refusal
				}
				return nil
			}
			_, err := w.r.Reconcile(quiet(), request("team", "j"))
			require.ErrorIs(t, err, refusal)
			ready := meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionPodsReady)
			require.NotNil(t, ready)
			require.Equal(t, unitcondition.ReasonJobNotResumed, ready.Reason)
			require.Contains(t, ready.Message, "no GPUs on Sundays")
			require.True(t, *w.job().Spec.Suspend)
		})
	}
}

// The owner of a job forges the record of template additions, so that the controller writes the quota label of another
// team. No policy checks writes of the controller (C0).
func TestAForgedRecordNamesNobodyElsesQuota(t *testing.T) {
	forged := func(label string) func(j *batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Annotations = map[string]string{
				v1alpha1.QueueNameKey:                "victim",
				v1alpha1.AnnotationTemplateAdditions: `{"j":{"labels":{"` + v1alpha1.LabelQuotaName + `":"victim"}}}`,
			}
			delete(j.Labels, v1alpha1.LabelQuotaName)
			j.Spec.Template.Labels = map[string]string{"app": "x"}
			if label != "" {
				j.Labels = map[string]string{v1alpha1.LabelQuotaName: label}
			}
		}
	}
	for name, label := range map[string]string{"without a label": "", "with a label of its own": "a"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(forged(label)))
			for range 2 {
				w.settle()
				require.Equal(t, label, w.unit().Labels[v1alpha1.LabelQuotaName])
				require.NotEqual(t, "victim", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
				require.Empty(t, w.unit().Annotations[v1alpha1.AnnotationParkedReason])
				w.admit()
			}
			require.False(t, *w.job().Spec.Suspend)
			require.Equal(t, label, w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
		})
	}
}

// Secrets of a job stay out of its unit, because many may read units (M1).
func TestUnitsHoldNoSecrets(t *testing.T) {
	for _, whole := range []bool{false, true} {
		w := newWorld(t, newJob(func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "SECRET"}}
		}))
		w.r.Options.Plan.WholeTemplates = whole
		w.settle()
		u := w.unit()
		require.Equal(t, whole, strings.Contains(string(u.Spec.PodSets[0].Template.Raw), "SECRET"))
		require.Equal(t, "1", u.Spec.Request.Cpu().String())
	}
}

// A unit of the former release has the whole template. It stays, because otherwise an upgrade would write every pending
// unit, and it does not count as another job. A write for another reason reduces the template.
func TestWholeTemplatesOfTheReleaseBefore(t *testing.T) {
	env := func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "SECRET"}}
	}
	w := newWorld(t, newJob(env))
	w.r.Options.Plan.WholeTemplates = true
	w.settle()
	w.r.Options.Plan.WholeTemplates = false
	require.Empty(t, w.settle())
	w.admit()
	require.Equal(t, []string{"patch Job/j"}, w.settle(), "resumed")
	require.Contains(t, string(w.unit().Spec.PodSets[0].Template.Raw), "SECRET")

	w = newWorld(t, newJob(env))
	w.r.Options.Plan.WholeTemplates = true
	w.settle()
	w.r.Options.Plan.WholeTemplates = false
	job := w.job()
	one := int32(1)
	job.Spec.Parallelism = &one
	w.update(job)
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	require.NotContains(t, string(w.unit().Spec.PodSets[0].Template.Raw), "SECRET")
	w.r.Options.Plan.WholeTemplates = true
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle(), "what is missing is written")

	// As a person has one reduced that waits.
	w.r.Options.Plan.WholeTemplates = false
	require.Empty(t, w.settle())
	u := w.unit()
	u.Spec.PodSets[0].Template.Raw = nil
	w.update(u)
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	require.NotContains(t, string(w.unit().Spec.PodSets[0].Template.Raw), "SECRET")
	require.Contains(t, string(w.unit().Spec.PodSets[0].Template.Raw), "cpu")
}

func TestTamperedUnitIsCorrected(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	u := w.unit()
	request1(u)
	u.Labels[v1alpha1.LabelQuotaName] = "rich"
	high := int32(1000000)
	u.Spec.Priority = &high
	w.update(u)
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	u = w.unit()
	require.Equal(t, "1", u.Spec.Request.Cpu().String())
	require.Equal(t, "a", u.Labels[v1alpha1.LabelQuotaName])
	require.Nil(t, u.Spec.Priority)
}

func TestHandWrittenUnitWithAFalseRequestGainsNothing(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	made := w.unit()
	require.NoError(t, w.base.Delete(context.Background(), made))
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j"}, Spec: made.Spec}
	u.Labels = map[string]string{v1alpha1.LabelQuotaName: "a"}
	request1(u)
	require.NoError(t, w.base.Create(context.Background(), u))
	w.admit()
	require.Equal(t, []string{"delete QueueUnit/j", "create QueueUnit/j"}, w.settle())
	require.True(t, *w.job().Spec.Suspend)
	require.Equal(t, "1", w.unit().Spec.Request.Cpu().String())
}

func TestResizeWhileItWaits(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	job := w.job()
	one := int32(1)
	job.Spec.Parallelism = &one
	w.update(job)
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	require.Equal(t, int32(1), w.unit().Spec.PodSets[0].Count)
	require.Equal(t, "500m", w.unit().Spec.Request.Cpu().String())
}

func TestQuotaMismatchIsSaidAndForgiven(t *testing.T) {
	w := newWorld(t, newJob(func(j *batchv1.Job) {
		j.Spec.Template.Labels = map[string]string{v1alpha1.LabelQuotaName: "b"}
	}))
	require.Equal(t, []string{"create QueueUnit/j", "status QueueUnit/j"}, w.settle())
	require.Equal(t, []string{"Queued", "Pending"}, w.told())
	u := w.unit()
	require.False(t, *u.Spec.Active)
	require.Equal(t, "QuotaMismatch", u.Status.Conditions[0].Reason)

	job := w.job()
	job.Labels[v1alpha1.LabelQuotaName] = "b"
	w.update(job)
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	require.Nil(t, w.unit().Spec.Active)
	require.Equal(t, "b", w.unit().Labels[v1alpha1.LabelQuotaName])
}

// The owner of a job for another scheduler reads the reason and the field to change in an event of the job.
func TestAJobForAnotherSchedulerIsToldTheField(t *testing.T) {
	w := newWorld(t, newJob(func(j *batchv1.Job) { j.Spec.Template.Spec.SchedulerName = "volcano" }))
	w.settle()
	require.Len(t, w.events.Events, 2)
	require.Contains(t, <-w.events.Events, "Normal Queued ")
	require.Contains(t, <-w.events.Events, `Warning Pending OtherScheduler: the pods of j go to scheduler "volcano", and `+
		"the queue holds pods of koord-scheduler only: set .spec.template.spec.schedulerName to koord-scheduler, ")
}

func TestPendingIsToldOncePerReason(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.told()
	explain := func(reason string) {
		u := w.unit()
		at := metav1.NewTime(w.clock.Now())
		u.Status.LastUpdateTime = &at
		setCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, reason, "words", at)
		w.updateStatus(u)
		w.settle()
	}
	explain("ExceedsMax")
	require.Equal(t, []string{"Pending"}, w.told())
	explain("ExceedsMax")
	require.Empty(t, w.told())
	explain("QuotaExceeded")
	require.Equal(t, []string{"Pending"}, w.told(), "an error that was corrected is told by a newer event")
	explain("UnknownQueue")
	require.Equal(t, []string{"Pending"}, w.told())

	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.restart()
	w.settle()
	require.Empty(t, w.told(), "an earlier process told it")
	explain("ExceedsMax")
	require.Equal(t, []string{"Pending"}, w.told())
}

func TestPriorityOfClasses(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}
	base := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "base"}, Value: 7, GlobalDefault: true}
	for name, tc := range map[string]struct {
		class string
		want  *int32
	}{
		"class":         {"high", &high.Value},
		"default class": {"", &base.Value},
		"unknown class": {"none", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, high.DeepCopy(), base.DeepCopy(),
				newJob(func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = tc.class }))
			w.settle()
			require.Equal(t, tc.want, w.unit().Spec.Priority)
			require.Equal(t, tc.class, w.unit().Spec.PriorityClassName)
		})
	}
}

func TestNoLongerManaged(t *testing.T) {
	w := newWorld(t, newJob(unsuspended))
	before := w.job()
	w.settle()
	w.told()
	job := w.job()
	job.Labels = nil
	w.update(job)
	require.Equal(t, []string{"patch Job/j", "delete QueueUnit/j"}, w.settle())
	require.Equal(t, []string{"Released"}, w.told())
	require.Nil(t, w.unit())
	require.Equal(t, before.Spec, w.job().Spec)
	require.Empty(t, w.job().Annotations)
}

func TestNameTaken(t *testing.T) {
	stranger := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j"}}
	w := newWorld(t, newJob(), stranger)
	require.Empty(t, w.settle())
	w.settle()
	require.Equal(t, []string{"NameTaken"}, w.told(), "once")
	require.NoError(t, w.base.Delete(context.Background(), w.unit()))
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle())
}

// A unit that refers to a job of another namespace stands for nothing; the job of its name gets a unit of its own.
func TestAUnitOfAnotherNamespaceTakesNoName(t *testing.T) {
	w := newWorld(t, newJob(), &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "by-hand"},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: &corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Namespace: "quotas", Name: "x", UID: "x-1",
		}},
	})
	w.settle()
	w.settle()
	require.Equal(t, "job-1", string(w.unit().Spec.ConsumerRef.UID))
	require.Equal(t, []string{"UnitReplaced", "Queued"}, w.told())
}

func TestConflictsAreDecidedAgain(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	refused := 0
	w.refuse = func(verb string, o client.Object) error {
		if refused++; refused == 1 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, o.GetName(), nil)
		}
		return nil
	}
	require.Equal(t, conflictDelay, w.reconcile().RequeueAfter)
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, []string{"Queued", "Admitted"}, w.told(), "the event follows the write")
}

// A cache that is behind the own write must not lead to the same decision once more.
func TestOwnWritesAreWaitedFor(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	stale := w.job()
	w.settle()
	require.True(t, w.remembered().written.Behind(stale) || !*w.job().Spec.Suspend)
	w.remembered().written.Note(w.job())
	require.True(t, w.remembered().written.Behind(stale))
	require.False(t, w.remembered().written.Behind(w.job()))
	require.False(t, w.remembered().written.Behind(stale), "caught up with, forgotten")
}

// The job controller notes a suspension at the time at which the unit is made, and its event may come before that of
// the unit. The request would be refused, and the admission would wait for it.
func TestAUnitIsNotCreatedTwice(t *testing.T) {
	w := newWorld(t, newJob())
	w.r.Client = oldNews{Client: w.client, unit: notSeen}
	w.reconcile()
	require.Equal(t, []string{"create QueueUnit/j"}, w.writes)
	w.jobStatus(noted)
	require.Equal(t, conflictDelay, w.reconcile().RequeueAfter, "the watch may never bring it, when it was deleted again")
	require.Len(t, w.writes, 1)

	// Deleted while the watch was interrupted: nothing will tell.
	require.NoError(t, w.base.Delete(t.Context(), w.unit()))
	w.clock.SetTime(w.clock.Now().Add(conflictDelay))
	w.reconcile()
	require.Len(t, w.writes, 2)
	require.NotNil(t, w.unit())

	w.r.Client = w.client
	w.reconcile()
	require.Zero(t, w.remembered().created, "what was seen is forgotten")
	require.NoError(t, w.base.Delete(t.Context(), w.unit()))
	w.reconcile()
	require.Len(t, w.writes, 3, "what was seen and is gone is made anew at once")
	require.NoError(t, w.base.Delete(t.Context(), w.job()))
	w.reconcile()
	require.Nil(t, w.remembered(), "a job that is gone is forgotten")
}

func TestUnitsNameTheirJobs(t *testing.T) {
	wake := waker{kind: jobobjects.BatchJob(t)}
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j"}}
	u.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "team", Name: "j"}
	require.Len(t, wake.jobsOfUnit(context.Background(), u), 1)
	u.Name = "other"
	require.Len(t, wake.jobsOfUnit(context.Background(), u), 2, "the job that it names, and the one whose name it takes")
	require.Empty(t, wake.jobsOfUnit(context.Background(), &corev1.Pod{}))
}

// A job that was admitted keeps the request that it was admitted with, and one that is over asks for nothing.
func TestOnlyWaitingJobsAreWokenByTheirEstimates(t *testing.T) {
	var objects []client.Object
	for name, phase := range map[string]v1alpha1.QueueUnitPhase{
		"waits": v1alpha1.PhaseEnqueued, "backs-off": v1alpha1.PhaseTimeoutBackoff, "reserved": v1alpha1.PhaseReserved,
		"admitted": v1alpha1.PhaseDequeued, "runs": v1alpha1.PhaseRunning, "over": v1alpha1.PhaseSucceed, "without": "",
	} {
		objects = append(objects, newJob(func(j *batchv1.Job) { j.Name = name }))
		if name != "without" {
			u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
			u.Status.Phase = phase
			objects = append(objects, u)
		}
	}
	objects = append(objects, newJob(func(j *batchv1.Job) { j.Namespace, j.Name = "elsewhere", "runs" }))
	w := newWorld(t, objects...)
	wake := waker{kind: &w.r.Kind, jobs: w.base, units: w.base}
	for namespace, want := range map[string][]string{
		"team": {"team/waits", "team/backs-off", "team/reserved", "team/without"}, "elsewhere": {"elsewhere/runs"},
		"": {"team/waits", "team/backs-off", "team/reserved", "team/without", "elsewhere/runs"}, "nobody": nil,
	} {
		requests, err := wake.waitingJobs(t.Context(), namespace)
		require.NoError(t, err)
		var got []string
		for _, r := range requests {
			got = append(got, r.String())
		}
		require.ElementsMatch(t, want, got, namespace)
	}
}

// unreadable jobs cannot be read until the error is taken away.
type unreadable struct {
	client.Reader
	err error
}

func (u *unreadable) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if u.err != nil {
		return u.err
	}
	return u.Reader.Get(ctx, key, o, opts...)
}

// An error of a read is no deletion: a job is not told the same again after it, and starts to run when it did.
func TestMemoryOutlivesAnError(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	jobs := &unreadable{Reader: w.r.Jobs}
	w.r.Jobs = jobs
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	require.Equal(t, jobplan.RunningDelay, w.reconcile().RequeueAfter)
	w.clock.SetTime(w.clock.Now().Add(jobplan.RunningDelay / 2))
	jobs.err = errors.New("the cache is not filled")
	_, err := w.r.Reconcile(quiet(), request("team", "j"))
	require.ErrorIs(t, err, jobs.err)
	jobs.err = nil
	require.Equal(t, jobplan.RunningDelay/2, w.reconcile().RequeueAfter)

	require.NoError(t, w.base.Delete(t.Context(), w.job()))
	w.settle()
	require.Nil(t, w.remembered(), "a job that is gone is forgotten")
}

// Events are recorded at once, even if a status write has to wait.
func TestATellingDoesNotWait(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	job := w.job()
	job.Labels[v1alpha1.LabelQuotaName] = "b"
	w.update(job)
	w.told()
	require.Equal(t, jobplan.RunningDelay, w.reconcile().RequeueAfter)
	require.Equal(t, []string{"QuotaChanged"}, w.told())
	w.reconcile()
	require.Empty(t, w.told(), "once")
}
