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

package controlplane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

func start(t *testing.T, opts controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	opts.Dir = t.TempDir()
	opts.Progress = func(message string) { t.Log(message) }
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cp.Stop()) })
	return cp
}

func TestMinimalServesTheAPIAndRefusesStrangers(t *testing.T) {
	cp := start(t, controlplane.Options{})
	admin, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	version, err := admin.Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.35.4", version.GitVersion)

	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig(controlplane.SchedulerIdentity))
	require.NoError(t, err)
	scheduler, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = scheduler.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "before manifests/base/rbac the scheduler has no right: %v", err)
	require.ErrorContains(t, err, controlplane.SchedulerUser)

	_, err = controlplane.Start(t.Context(), controlplane.Options{Dir: cp.Dir()})
	require.ErrorContains(t, err, "not empty")
}

func TestAProcessThatDiesIsReportedAndCanBeRestarted(t *testing.T) {
	cp := start(t, controlplane.Options{})
	admin, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	_, err = admin.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "survives"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	require.NoError(t, cp.Kill(controlplane.APIServer))
	require.NoError(t, cp.Kill(controlplane.Etcd))
	require.False(t, cp.Running(controlplane.Etcd))
	require.NoError(t, cp.Restart(t.Context(), controlplane.Etcd))
	require.NoError(t, cp.Restart(t.Context(), controlplane.APIServer))
	_, err = admin.CoreV1().ConfigMaps("default").Get(t.Context(), "survives", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, cp.Exits(), "an end that was asked for is none to report")

	for range 2 { // an ended component can be restarted
		err = cp.StartController(t.Context(), controlplane.ControllerOptions{Binary: "/bin/false"})
		require.ErrorContains(t, err, "is not ready")
		exit := <-cp.Exits()
		require.Equal(t, controlplane.Controller, exit.Component)
	}
}

func TestAPausedProcessGoesOnWhereItWas(t *testing.T) {
	cp := start(t, controlplane.Options{})
	admin, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	get := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := admin.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	require.NoError(t, cp.Pause(controlplane.APIServer))
	require.Eventually(t, func() bool { return errors.Is(get(time.Second), context.DeadlineExceeded) }, 10*time.Second,
		time.Millisecond, "the kernel stops it after the signal, and not with it")
	require.True(t, cp.Running(controlplane.APIServer))
	require.NoError(t, cp.Resume(controlplane.APIServer))
	require.NoError(t, get(30*time.Second))
	require.Empty(t, cp.Exits())

	require.NoError(t, cp.Pause(controlplane.Etcd))
	require.NoError(t, cp.StopComponent(controlplane.Etcd), "one that is paused can be ended")
	require.False(t, cp.Running(controlplane.Etcd))
	require.Error(t, cp.Pause(controlplane.Etcd), "and what does not run cannot be paused")
}

// boundJob is a job whose pods are on a node from the start, as no scheduler is part of Full.
func boundJob(name, runTime string, fail bool) *batchv1.Job {
	annotations := map[string]string{controlplane.RunTimeAnnotation: runTime}
	if fail {
		annotations[controlplane.FailAnnotation] = "true"
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
				Spec: corev1.PodSpec{
					NodeName:      controlplane.NodeName(3),
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "none"}},
				},
			},
		},
	}
}

func TestFullPlaysJobs(t *testing.T) {
	cp := start(t, controlplane.Options{Components: controlplane.Full(), Nodes: 20})
	admin, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	jobs := admin.BatchV1().Jobs("default")
	for _, job := range []*batchv1.Job{
		boundJob("succeeds", "100ms", false), boundJob("fails", "100ms", true), boundJob("stays", "1h", false),
	} {
		_, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	eventually := func(name string, reached func(batchv1.JobStatus) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			live, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && reached(live.Status)
		}, 2*time.Minute, 100*time.Millisecond)
	}
	// A pod of any other owner ends if it says when, else never.
	pods := admin.CoreV1().Pods("default")
	for name, annotations := range map[string]map[string]string{
		"ends":        {controlplane.RunTimeAnnotation: "100ms"},
		"fails-alone": {controlplane.RunTimeAnnotation: "100ms", controlplane.FailAnnotation: "true"},
		"runs-on":     nil,
	} {
		template := boundJob(name, "", false).Spec.Template
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: template.Spec,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for name, want := range map[string]corev1.PodPhase{
		"ends": corev1.PodSucceeded, "fails-alone": corev1.PodFailed, "runs-on": corev1.PodRunning,
	} {
		require.Eventually(t, func() bool {
			pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && pod.Status.Phase == want
		}, 2*time.Minute, 100*time.Millisecond, name)
		require.NoError(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	eventually("succeeds", func(s batchv1.JobStatus) bool { return s.Succeeded == 1 && s.CompletionTime != nil })
	eventually("fails", func(s batchv1.JobStatus) bool { return s.Failed == 1 })
	eventually("stays", func(s batchv1.JobStatus) bool { return s.Ready != nil && *s.Ready == 1 })

	// Suspending a running job deletes its pods, deleting a job removes what it owned.
	_, err = jobs.Patch(t.Context(), "stays", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	background := metav1.DeletePropagationBackground
	require.NoError(t, jobs.Delete(t.Context(), "succeeds", metav1.DeleteOptions{PropagationPolicy: &background}))
	require.Eventually(t, func() bool {
		pods, err := admin.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 // of the job that failed
	}, 2*time.Minute, 100*time.Millisecond)

	// Both come back without what they knew.
	require.NoError(t, cp.Kill(controlplane.KWOK))
	require.NoError(t, cp.Kill(controlplane.ControllerManager))
	_, err = jobs.Create(t.Context(), boundJob("later", "100ms", false), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, cp.Restart(t.Context(), controlplane.ControllerManager))
	require.NoError(t, cp.Restart(t.Context(), controlplane.KWOK))
	eventually("later", func(s batchv1.JobStatus) bool { return s.Succeeded == 1 })
}
