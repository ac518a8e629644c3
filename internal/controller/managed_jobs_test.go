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
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

func TestManagedJobsReconciler(t *testing.T) {
	ctx := quiet()
	key := types.NamespacedName{Namespace: "koord-queue", Name: managedjobs.ConfigMap}
	c := fake.NewClientBuilder().Build()
	var used []*managedjobs.Predicate
	recorder := events.NewFakeRecorder(10)
	r := &ManagedJobsReconciler{
		Key: key, Client: c, Recorder: recorder, hash: managedjobs.Default().Hash(),
		Use:       func(p *managedjobs.Predicate) { used = append(used, p) },
		Installed: func(system alias.System) (bool, error) { return system == alias.Kueue, nil },
	}
	reconcile := func() {
		_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		require.NoError(t, err)
	}
	write := func(text string) {
		cm := &corev1.ConfigMap{}
		require.NoError(t, c.Get(ctx, key, cm))
		cm.Data = map[string]string{managedjobs.Key: text}
		require.NoError(t, c.Update(ctx, cm))
		reconcile()
	}

	reconcile()
	require.Empty(t, used, "without a ConfigMap the defaults hold")

	require.NoError(t,
		c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	write("kinds: [Job.v1.batch]")
	require.Empty(t, used)
	cm := &corev1.ConfigMap{}
	require.NoError(t, c.Get(ctx, key, cm))
	require.Equal(t, r.hash, cm.Annotations[managedjobs.AnnotationHash])
	version := cm.ResourceVersion
	reconcile()
	require.NoError(t, c.Get(ctx, key, cm))
	require.Equal(t, version, cm.ResourceVersion, "I12")

	write("kindes: []")
	require.Empty(t, used, "what is not valid does not take effect")
	require.Len(t, recorder.Events, 1)
	_, err := ReadManagedJobs(ctx, c, key.Namespace)
	require.ErrorContains(t, err, "kindes")

	write("requireQueueName: true")
	require.Len(t, used, 1)
	require.NoError(t, c.Get(ctx, key, cm))
	require.Equal(t, used[0].Hash(), cm.Annotations[managedjobs.AnnotationHash], "what is in force is said")
	reconcile()
	require.Len(t, used, 1, "it takes effect once")
	m, err := ReadManagedJobs(ctx, c, key.Namespace)
	require.NoError(t, err)
	require.True(t, m.RequireQueueName)

	require.NoError(t, c.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "there"}}))
	<-recorder.Events
	write("kinds: [Job.v1.batch, JobSet.v1alpha2.jobset.x-k8s.io]\njobDefaults: [{kind: Job.v1.batch, " +
		"priorityClassName: there}, {kind: JobSet.v1alpha2.jobset.x-k8s.io, priorityClassName: gone}]")
	require.Len(t, used, 2, "that is not fatal")
	require.Contains(t, <-recorder.Events, `UnknownPriorityClass jobDefaults names priorityClassName "gone"`)
	reconcile()
	require.Empty(t, recorder.Events)

	const kueue = "schedulerNames: [x]\naliases:\n" +
		"- {system: Kueue, namespaceSelector: {matchLabels: {a: b}}, queues: {q: {quota: a}}"
	write(kueue + "}")
	require.Contains(t, <-recorder.Events, "AliasRefused")
	require.Len(t, used, 3)
	want, err := managedjobs.Parse("schedulerNames: [x]")
	require.NoError(t, err)
	require.Equal(t, want.Hash(), used[2].Hash(), "the rest of the configuration takes effect")
	reconcile()
	require.Empty(t, recorder.Events, "it is told once")
	write(kueue + ", force: true}")
	require.Len(t, used, 4)
	require.Empty(t, recorder.Events)

	require.NoError(t, c.Get(ctx, key, cm))
	require.NoError(t, c.Delete(ctx, cm))
	reconcile()
	require.Len(t, used, 4, "without the ConfigMap the configuration in force stays")
	m, err = ReadManagedJobs(context.Background(), client.Reader(c), key.Namespace)
	require.NoError(t, err)
	require.Equal(t, managedjobs.Default(), m)
}
