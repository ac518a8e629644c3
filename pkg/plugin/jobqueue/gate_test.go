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

package jobqueue

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	reservationutil "github.com/koordinator-sh/koordinator/pkg/util/reservation"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fakeSnapshot: consumers maps a job to whether its unit is admitted; units maps admitted units to their jobs.
type fakeSnapshot struct {
	loaded    bool
	consumers map[types.UID]bool
	units     map[string]types.UID
	// beyond are pods that their units hold too little for.
	beyond map[types.UID]bool
	// lacking has the missing updates of pods.
	lacking map[types.UID]string
	// until says when the units of pods have run for as long as they may.
	until map[types.UID]time.Time
}

func (s *fakeSnapshot) Loaded() bool                        { return s.loaded }
func (s *fakeSnapshot) AdmittedConsumer(uid types.UID) bool { return s.loaded && s.consumers[uid] }
func (s *fakeSnapshot) UnitOfConsumer(uid types.UID) bool   { _, ok := s.consumers[uid]; return ok }
func (s *fakeSnapshot) AdmittedUnit(k string) (types.UID, bool) {
	u, ok := s.units[k]
	return u, ok && s.loaded
}

func (s *fakeSnapshot) Granted(pod types.UID) bool {
	return s.loaded && !s.beyond[pod] && s.lacking[pod] == ""
}
func (s *fakeSnapshot) Lacking(pod types.UID) string      { return s.lacking[pod] }
func (s *fakeSnapshot) RunsUntil(pod types.UID) time.Time { return s.until[pod] }

type world struct {
	snapshot   fakeSnapshot
	jobs       map[types.UID]Job
	namespaces map[string]map[string]string
	clock      *clocktesting.FakeClock
	watched    []string
}

func newWorld() *world {
	return &world{
		snapshot:   fakeSnapshot{loaded: true, consumers: map[types.UID]bool{}, units: map[string]types.UID{}},
		jobs:       map[types.UID]Job{},
		namespaces: map[string]map[string]string{"team": {"queue": "on"}, "other": {}, "kube-system": {}},
		clock:      clocktesting.NewFakeClock(epoch),
	}
}

func (w *world) gate(t *testing.T, managed managedjobs.Jobs) *Gate {
	t.Helper()
	predicate, err := managedjobs.NewPredicate(managed)
	require.NoError(t, err)
	return &Gate{
		Snapshot:        func() Snapshot { return &w.snapshot },
		Predicate:       func() *managedjobs.Predicate { return predicate },
		Job:             func(uid types.UID) (Job, bool) { j, ok := w.jobs[uid]; return j, ok },
		NamespaceLabels: func(n string) (map[string]string, bool) { l, ok := w.namespaces[n]; return l, ok },
		Clock:           w.clock,
		Grace:           30 * time.Second,
		Watch: func(pod *corev1.Pod, unseen bool) {
			kind := "unknown"
			if unseen {
				kind = "unseen"
			}
			w.watched = append(w.watched, kind+":"+pod.Name)
		},
	}
}

func ownedBy(kind, apiVersion, uid string) *metav1.OwnerReference {
	return &metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: uid, UID: types.UID(uid), Controller: ptr.To(true),
	}
}

func jobPod(job string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "p", UID: "p", Labels: labels, CreationTimestamp: metav1.Time{Time: epoch},
		OwnerReferences: []metav1.OwnerReference{*ownedBy("Job", "batch/v1", job)},
	}}
}

var (
	quotaLabel = map[string]string{v1alpha1.LabelQuotaName: "q"}
	unlabelled = map[string]string{"app": "x"}
)

func TestGate(t *testing.T) {
	annotate := func(pod *corev1.Pod, unit string) *corev1.Pod {
		pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: unit}
		return pod
	}
	orphan := func(labels map[string]string) *corev1.Pod {
		pod := jobPod("j", labels)
		pod.OwnerReferences = nil
		return pod
	}
	gated := managedjobs.Jobs{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "on"}},
		OtherQueueLabels:  []string{"kueue.x-k8s.io/queue-name"},
		UnmanagedJobs:     managedjobs.UnmanagedGate,
	}
	var understood managedjobs.Jobs
	for _, system := range []alias.System{alias.Kueue, alias.Volcano} {
		understood.Aliases = append(understood.Aliases, alias.Entry{System: system,
			NamespaceSelector: gated.NamespaceSelector,
			Queues:            map[string]alias.Names{"k": {Quota: "a"}, "v": {Quota: "b"}}})
	}
	for _, tt := range []struct {
		name    string
		managed managedjobs.Jobs
		given   func(w *world)
		pod     *corev1.Pod
		want    verdict
	}{
		{"no pod", managedjobs.Jobs{}, nil, nil, foreign},
		{"a pod without an owner, labelled", managedjobs.Jobs{}, nil, orphan(quotaLabel), foreign},
		{"a pod of a kind that is not managed", managedjobs.Jobs{}, nil, func() *corev1.Pod {
			pod := jobPod("j", quotaLabel)
			pod.OwnerReferences = []metav1.OwnerReference{*ownedBy("ReplicaSet", "apps/v1", "r")}
			return pod
		}(), foreign},
		{"a pod that is bound", managedjobs.Jobs{}, nil, func() *corev1.Pod {
			pod := jobPod("j", quotaLabel)
			pod.Spec.NodeName = "n"
			return pod
		}(), foreign},
		{"the pod of a Reservation", managedjobs.Jobs{}, nil, func() *corev1.Pod {
			pod := jobPod("j", quotaLabel)
			pod.Annotations = map[string]string{reservationutil.AnnotationReservePod: "true"}
			pod.Name = string(pod.UID)
			return pod
		}(), foreign},
		{"a pod whose author calls it that of a Reservation", managedjobs.Jobs{},
			func(w *world) { w.snapshot.consumers["j"] = false }, func() *corev1.Pod {
				pod := jobPod("j", quotaLabel)
				pod.Name, pod.Annotations = "named", map[string]string{reservationutil.AnnotationReservePod: "true"}
				return pod
			}(), waiting},
		{"a label on the pod, no unit yet", managedjobs.Jobs{}, nil, jobPod("j", quotaLabel), unknown},
		{"its unit waits", managedjobs.Jobs{}, func(w *world) { w.snapshot.consumers["j"] = false },
			jobPod("j", quotaLabel), waiting},
		{"its unit is admitted", managedjobs.Jobs{}, func(w *world) { w.snapshot.consumers["j"] = true },
			jobPod("j", quotaLabel), admitted},
		{"its unit is admitted, and holds too little for it", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.consumers["j"], w.snapshot.beyond = true, map[types.UID]bool{"p": true}
		}, jobPod("j", quotaLabel), beyond},
		{"its unit is admitted, and it lacks what checks asked for", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.consumers["j"], w.snapshot.lacking = true, map[types.UID]string{"p": "nodeSelector zone=a"}
		}, jobPod("j", quotaLabel), lacking},
		{"its unit is admitted, its job is suspended by the controller", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.consumers["j"] = true
			w.jobs["j"] = Job{Annotations: map[string]string{v1alpha1.AnnotationSuspendedBy: v1alpha1.CreatedByController}}
		}, jobPod("j", quotaLabel), suspended},
		{"admitted, but the state is not loaded", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.consumers["j"], w.snapshot.loaded = true, false
		}, jobPod("j", quotaLabel), waiting},
		{"the unit of another job of the same name is admitted", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.consumers["old"] = true
		}, jobPod("j", quotaLabel), unknown},
		{"no label on the pod, job not seen", managedjobs.Jobs{}, nil, jobPod("j", unlabelled), unseen},
		{"no label on the pod, none on the job", managedjobs.Jobs{}, func(w *world) { w.jobs["j"] = Job{} },
			jobPod("j", unlabelled), foreign},
		{"the label is on the job only", managedjobs.Jobs{}, func(w *world) { w.jobs["j"] = Job{Labels: quotaLabel} },
			jobPod("j", unlabelled), unknown},
		{"the queue is an annotation of the job", managedjobs.Jobs{}, func(w *world) {
			w.jobs["j"] = Job{Annotations: map[string]string{v1alpha1.QueueNameKey: "x"}}
		}, jobPod("j", unlabelled), unknown},
		{"a unit made by hand for a job that is not managed", managedjobs.Jobs{}, func(w *world) {
			w.jobs["j"] = Job{}
			w.snapshot.consumers["j"] = false
		}, jobPod("j", unlabelled), foreign},
		{"another queue system has the job", managedjobs.Jobs{OtherQueueLabels: []string{"kueue.x-k8s.io/queue-name"}},
			func(w *world) {
				w.jobs["j"] = Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "k"}}
			}, jobPod("j", quotaLabel), foreign},
		{"a queue system that is not here has the job", managedjobs.Jobs{}, func(w *world) {
			w.jobs["j"] = Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "k"}}
		}, jobPod("j", quotaLabel), unknown},
		{"a quota label is not enough", managedjobs.Jobs{RequireQueueName: true}, func(w *world) { w.jobs["j"] = Job{} },
			jobPod("j", quotaLabel), foreign},
		{"a job without labels where jobs run by a queue", gated, func(w *world) { w.jobs["j"] = Job{} },
			jobPod("j", unlabelled), unmanaged},
		{"the same, before the job is seen", gated, nil, jobPod("j", unlabelled), unseen},
		{"the same, of another queue system that is here", gated, func(w *world) {
			w.jobs["j"] = Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "k"}}
		}, jobPod("j", unlabelled), foreign},
		{"the same in a namespace where they may run without", gated, func(w *world) { w.jobs["j"] = Job{} },
			func() *corev1.Pod {
				pod := jobPod("j", unlabelled)
				pod.Namespace = "other"
				return pod
			}(), foreign},
		{"a job with a label there", gated, func(w *world) { w.jobs["j"] = Job{Labels: quotaLabel} },
			jobPod("j", unlabelled), unknown},
		{"a job without labels where its owner is only told", managedjobs.Jobs{
			NamespaceSelector: gated.NamespaceSelector, UnmanagedJobs: managedjobs.UnmanagedWarn,
		}, func(w *world) { w.jobs["j"] = Job{} }, jobPod("j", unlabelled), foreign},
		{"labels of another system that are understood", understood, func(w *world) {
			w.jobs["j"] = Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "k"}}
		}, jobPod("j", unlabelled), unknown},
		{"the path of a quota", managedjobs.Jobs{}, func(w *world) {
			w.jobs["j"] = Job{Labels: map[string]string{v1alpha1.QueuePathKey: "root.a"}}
		}, jobPod("j", unlabelled), unknown},
		{"no label where the namespace gives a path", managedjobs.Jobs{
			Placement: []quotapath.Rule{{NamespaceSelector: gated.NamespaceSelector, Path: "root.{namespace}"}},
		}, func(w *world) { w.jobs["j"] = Job{} }, jobPod("j", unlabelled), unknown},
		{"the same, and it is a pod without a job", managedjobs.Jobs{
			Placement: []quotapath.Rule{{NamespaceSelector: gated.NamespaceSelector, Path: "root.{namespace}"}},
			Kinds:     managedjobs.KindsNamed("Job.v1.batch", "Pod.v1."),
		}, nil, orphan(unlabelled), foreign},
		{"the same, and of a second system", understood, func(w *world) {
			w.jobs["j"] = Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "k", "volcano.sh/queue-name": "v"}}
		}, jobPod("j", unlabelled), unknown},
		{"the same in another namespace", understood, func(w *world) {
			w.jobs["j"] = Job{Labels: map[string]string{"kueue.x-k8s.io/queue-name": "k"}}
		}, func() *corev1.Pod {
			pod := jobPod("j", unlabelled)
			pod.Namespace = "other"
			return pod
		}(), foreign},
		{"a system namespace", managedjobs.Jobs{}, func(w *world) { w.jobs["j"] = Job{} }, func() *corev1.Pod {
			pod := jobPod("j", quotaLabel)
			pod.Namespace = "kube-system"
			return pod
		}(), foreign},
		{"a namespace that is not selected", managedjobs.Jobs{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "on"}},
		}, nil, func() *corev1.Pod {
			pod := jobPod("j", quotaLabel)
			pod.Namespace = "other"
			return pod
		}(), foreign},
		{"a namespace that has not been seen", managedjobs.Jobs{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "on"}},
		}, func(w *world) {
			w.jobs["j"] = Job{}
			delete(w.namespaces, "team")
		}, jobPod("j", quotaLabel), unseen},

		{"the annotation names an admitted unit without consumer", managedjobs.Jobs{},
			func(w *world) { w.snapshot.units["team/u"] = "" }, annotate(orphan(nil), "team/u"), admitted},
		{"the annotation names an admitted unit that holds too little", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.units["team/u"], w.snapshot.beyond = "", map[types.UID]bool{"p": true}
		}, annotate(orphan(nil), "team/u"), beyond},
		{"the annotation names a unit that is not admitted", managedjobs.Jobs{}, nil,
			annotate(orphan(nil), "team/u"), waiting},
		{"the annotation names a unit of another namespace", managedjobs.Jobs{},
			func(w *world) { w.snapshot.units["other/u"] = "" }, annotate(orphan(nil), "other/u"), waiting},
		{"the annotation is malformed", managedjobs.Jobs{}, nil, annotate(orphan(nil), "u"), waiting},
		{"the annotation names the unit of the pod's owner", managedjobs.Jobs{},
			func(w *world) { w.snapshot.units["team/u"] = "r" }, func() *corev1.Pod {
				pod := annotate(orphan(nil), "team/u")
				pod.OwnerReferences = []metav1.OwnerReference{*ownedBy("PyTorchJob", "kubeflow.org/v1", "r")}
				return pod
			}(), admitted},
		{"the annotation names the unit of somebody else's job", managedjobs.Jobs{},
			func(w *world) { w.snapshot.units["team/u"] = "victim" }, func() *corev1.Pod {
				pod := annotate(orphan(nil), "team/u")
				pod.OwnerReferences = []metav1.OwnerReference{*ownedBy("PyTorchJob", "kubeflow.org/v1", "r")}
				return pod
			}(), waiting},
		{"an admitted unit without consumer does not free a managed job's pods", managedjobs.Jobs{}, func(w *world) {
			w.snapshot.units["team/u"] = ""
			w.snapshot.consumers["j"] = false
		}, annotate(jobPod("j", quotaLabel), "team/u"), waiting},
		{"the annotation names the unit of a job further up", managedjobs.Jobs{}, func(w *world) {
			w.jobs["j"] = Job{Owner: ownedBy("Workflow", "argoproj.io/v1", "top")}
			w.snapshot.units["team/u"] = "top"
		}, annotate(jobPod("j", unlabelled), "team/u"), admitted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if tt.given != nil {
				tt.given(w)
			}
			gate := w.gate(t, tt.managed)
			require.Equal(t, tt.want, gate.verdict(tt.pod))
			status := gate.Check(tt.pod)
			_, held := why[tt.want]
			require.Equal(t, !held, gate.Passes(tt.pod))
			require.Equal(t, tt.want == admitted, gate.Admitted(tt.pod))
			if tt.pod != nil {
				bound := tt.pod.DeepCopy()
				bound.Spec.NodeName = "n"
				ofAdmitted := []verdict{admitted, beyond, lacking}
				require.Equal(t, slices.Contains(ofAdmitted, tt.want), gate.Runs(bound))
			}
			if held {
				require.Equal(t, fwktype.UnschedulableAndUnresolvable, status.Code())
				require.NotEmpty(t, status.Message())
				require.Contains(t, status.Message(), w.snapshot.lacking["p"])
			} else {
				require.True(t, status.IsSuccess())
			}
			switch tt.want {
			case unknown, suspended, unmanaged:
				require.Equal(t, []string{"unknown:p"}, w.watched)
			case unseen:
				require.Equal(t, []string{"unseen:p"}, w.watched)
			default:
				require.Empty(t, w.watched)
			}
		})
	}
}

// Pods that nobody owns wait for the unit of their group where such pods are managed.
func TestPodsOfGroups(t *testing.T) {
	free := func(labels map[string]string, annotations map[string]string) *corev1.Pod {
		pod := jobPod("", labels)
		pod.OwnerReferences, pod.Annotations = nil, annotations
		return pod
	}
	inGroup := map[string]string{v1alpha1.LabelQuotaName: "q", podgroup.LabelName: "g"}
	madeUp := func(labels map[string]string) *corev1.Pod {
		pod, yes := free(labels, nil), true
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Nothing", Name: "n", UID: "never", Controller: &yes},
		}
		return pod
	}
	for _, tt := range []struct {
		name      string
		unmanaged managedjobs.UnmanagedJobs
		given     func(w *world)
		pod       *corev1.Pod
		want      verdict
	}{
		{"without a unit", "", nil, free(quotaLabel, nil), waiting},
		{"its unit is admitted", "", func(w *world) { w.snapshot.units["team/p-pods"] = "" }, free(quotaLabel, nil),
			admitted},
		{"that of its group is", "", func(w *world) { w.snapshot.units["team/g-pods"] = "" }, free(inGroup, nil), admitted},
		{"its unit holds too little", "", func(w *world) {
			w.snapshot.units["team/g-pods"], w.snapshot.beyond = "", map[types.UID]bool{"p": true}
		}, free(inGroup, nil), beyond},
		{"a unit of this name has a job", "", func(w *world) { w.snapshot.units["team/p-pods"] = "job" },
			free(quotaLabel, nil), waiting},
		{"it names another unit", "", func(w *world) { w.snapshot.units["team/p-pods"] = "" },
			free(quotaLabel, map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "team/other"}), waiting},
		{"its namespace is not known", "", func(w *world) { delete(w.namespaces, "team") }, free(quotaLabel, nil), unseen},
		{"it asks for no queue", managedjobs.UnmanagedPass, nil, free(unlabelled, nil), foreign},
		{"it asks for none where all have to", managedjobs.UnmanagedGate, nil, free(unlabelled, nil), unmanaged},
		{"its owner is made up", managedjobs.UnmanagedGate, nil, madeUp(unlabelled), unmanaged},
		{"its owner is made up, and it has a quota", managedjobs.UnmanagedGate, nil, madeUp(quotaLabel), unmanaged},
		{"another queue system has it", managedjobs.UnmanagedGate, nil,
			madeUp(map[string]string{"example.com/queue": "q"}), foreign},
		{"its owner is of a kind that is not managed", managedjobs.UnmanagedPass, nil, madeUp(quotaLabel), foreign},
		{"its owner is made up, its namespace is not managed", managedjobs.UnmanagedGate, func(w *world) {
			w.namespaces["kube-system"] = nil
		}, func() *corev1.Pod { pod := madeUp(quotaLabel); pod.Namespace = "kube-system"; return pod }(), foreign},
		{"its owner is made up, and a unit without consumer is its own", managedjobs.UnmanagedGate, func(w *world) {
			w.snapshot.units["team/other"] = ""
		}, func() *corev1.Pod {
			pod := madeUp(quotaLabel)
			pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "team/other"}
			return pod
		}(), admitted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if tt.given != nil {
				tt.given(w)
			}
			gate := w.gate(t, managedjobs.Jobs{Kinds: managedjobs.KindsNamed("Pod.v1."), UnmanagedJobs: tt.unmanaged,
				OtherQueueLabels: []string{"example.com/queue"}})
			require.Equal(t, tt.want, gate.verdict(tt.pod))
		})
	}
}

// Jobs that say nothing are managed where a quota takes their namespace, as the configuration has it.
func TestPodsOfMappedNamespaces(t *testing.T) {
	w := newWorld()
	w.jobs["j"] = Job{}
	labelled := map[string]string{v1alpha1.LabelManaged: "true"}
	for _, tt := range []struct {
		name   string
		manage managedjobs.MappedNamespaces
		labels map[string]string
		mapped bool
		passes bool
	}{
		{"a quota takes the labelled namespace", "", labelled, true, false},
		{"the label alone", "", labelled, false, true},
		{"the quota alone", "", nil, true, true},
		{"another value of the label", "", map[string]string{v1alpha1.LabelManaged: "false"}, true, true},
		{"any namespace that a quota takes", managedjobs.MappedAlways, nil, true, false},
		{"any that none takes", managedjobs.MappedAlways, nil, false, true},
		{"no namespace", managedjobs.MappedNever, labelled, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.namespaces["team"] = tt.labels
			gate := w.gate(t, managedjobs.Jobs{ManageMappedNamespaces: tt.manage})
			gate.Mapped = func(namespace string) bool { return namespace == "team" && tt.mapped }
			require.Equal(t, tt.passes, gate.Passes(jobPod("j", unlabelled)))
		})
	}
}

// Of the jobs that made a pod the closest one that has a unit stands for it: its pods are counted there.
func TestTheClosestJobWithAUnitStandsForAPod(t *testing.T) {
	managed := managedjobs.Jobs{Kinds: managedjobs.KindsNamed("Job.v1.batch", "Workflow.v1alpha1.argoproj.io",
		"JobSet.v1alpha2.jobset.x-k8s.io")}
	job, flow := ownedBy("Job", "batch/v1", "top"), ownedBy("Workflow", "argoproj.io/v1alpha1", "top")
	set, mpi := ownedBy("JobSet", "jobset.x-k8s.io/v1alpha2", "top"), ownedBy("MPIJob", "kubeflow.org/v2beta1", "top")
	for name, tt := range map[string]struct {
		owner *metav1.OwnerReference
		given func(w *world)
		want  verdict
	}{
		"no unit, labels above":      {flow, func(w *world) { w.jobs["top"] = Job{Labels: quotaLabel} }, unknown},
		"that of its maker":          {flow, func(w *world) { w.snapshot.consumers["top"] = true }, admitted},
		"its own, which waits":       {flow, func(w *world) { w.own(false, true) }, waiting},
		"its own, which is admitted": {flow, func(w *world) { w.own(true, false) }, admitted},
		"labels of its own, no unit": {flow, func(w *world) { w.label("child") }, unknown},
		"a maker that is its own":    {flow, func(w *world) { w.jobs["top"] = Job{Owner: flow} }, foreign},
		"a maker that resumes it":    {set, func(w *world) { w.label("child") }, foreign},
		"its own, and a maker since": {set, func(w *world) { w.own(false, false); delete(w.jobs, "top") }, waiting},
		"its own, and another since": {mpi, func(w *world) { w.own(false, false) }, waiting},
		"its own, and one of a Job":  {job, func(w *world) { w.own(false, true) }, waiting},
		"of a Job, which makes no Job": {job, func(w *world) {
			w.label("child")
			w.snapshot.consumers["top"] = true
		}, unknown},
		"its maker's, and labels of its own": {flow, func(w *world) {
			w.label("child")
			w.snapshot.consumers["top"] = true
		}, admitted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.jobs["child"], w.jobs["top"] = Job{Owner: tt.owner}, Job{}
			tt.given(w)
			require.Equal(t, tt.want, w.gate(t, managed).verdict(jobPod("child", unlabelled)))
		})
	}
}

// own gives the child a unit and a label, and its maker a unit.
func (w *world) own(child, top bool) {
	w.label("child")
	w.snapshot.consumers["child"], w.snapshot.consumers["top"] = child, top
}

func (w *world) label(uid types.UID) {
	job := w.jobs[uid]
	job.Labels = quotaLabel
	w.jobs[uid] = job
}

func TestPodsOfUnknownJobsPassAfterTheGracePeriodOnlyIfToldSo(t *testing.T) {
	w := newWorld()
	gate := w.gate(t, managedjobs.Jobs{})
	labelled, unlabelledPod := jobPod("j", quotaLabel), jobPod("x", unlabelled)
	w.clock.Step(time.Hour)
	require.Equal(t, unknown, gate.verdict(labelled))
	require.Equal(t, unseen, gate.verdict(unlabelledPod))
	gate.PassUnknown = true
	require.Equal(t, overdue, gate.verdict(labelled))
	require.Equal(t, overdue, gate.verdict(unlabelledPod))
	require.True(t, gate.Passes(labelled))
	require.False(t, gate.Admitted(labelled), "it passes, but nothing is reserved for it")
	w.snapshot.loaded = false
	require.Equal(t, unknown, gate.verdict(labelled), "its unit may be there and not be loaded")
	w.snapshot.loaded = true
	labelled.CreationTimestamp = metav1.Time{Time: w.clock.Now().Add(-30 * time.Second)}
	require.Equal(t, unknown, gate.verdict(labelled))
	w.snapshot.consumers["j"] = false
	w.clock.Step(time.Hour)
	require.Equal(t, waiting, gate.verdict(labelled), "a job whose unit waits is not unknown")
}

// BenchmarkGate: PreEnqueue of a pod, by one goroutine and by all that there are processors for.
func BenchmarkGate(b *testing.B) {
	w := newWorld()
	predicate, _ := managedjobs.NewPredicate(managedjobs.Jobs{})
	gate := &Gate{
		Snapshot:        func() Snapshot { return &w.snapshot },
		Predicate:       func() *managedjobs.Predicate { return predicate },
		Job:             func(uid types.UID) (Job, bool) { j, ok := w.jobs[uid]; return j, ok },
		NamespaceLabels: func(n string) (map[string]string, bool) { l, ok := w.namespaces[n]; return l, ok },
		Clock:           w.clock,
	}
	w.snapshot.consumers["j"] = true
	w.jobs["j"] = Job{Labels: quotaLabel}
	p := &Plugin{core: &core{gate: gate}}
	pod := jobPod("j", quotaLabel)
	b.Run("goroutines=1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.PreEnqueue(b.Context(), pod)
		}
	})
	b.Run("goroutines=many", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(more *testing.PB) {
			for more.Next() {
				p.PreEnqueue(b.Context(), pod)
			}
		})
	})
}

// BenchmarkLess: the order of the scheduling queue, by all goroutines that there are processors for.
func BenchmarkLess(b *testing.B) {
	p := &Plugin{}
	info := func(priority int32) fwktype.QueuedPodInfo {
		pod := jobPod("j", quotaLabel)
		pod.Spec.Priority = &priority
		podInfo, err := framework.NewPodInfo(pod)
		require.NoError(b, err)
		return &framework.QueuedPodInfo{PodInfo: podInfo, Timestamp: epoch}
	}
	first, second := info(2), info(1)
	b.ReportAllocs()
	b.RunParallel(func(more *testing.PB) {
		for more.Next() {
			p.Less(first, second)
		}
	})
}
