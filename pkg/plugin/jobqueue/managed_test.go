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
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	fwktype "k8s.io/kube-scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// kubeHandle is as much of the framework as following the configuration takes.
type kubeHandle struct {
	fwktype.Handle
	client  kubernetes.Interface
	sharing informers.SharedInformerFactory
}

func (h kubeHandle) ClientSet() kubernetes.Interface                        { return h.client }
func (h kubeHandle) SharedInformerFactory() informers.SharedInformerFactory { return h.sharing }

// A configuration that names a kind which cannot be listed takes effect all the same, and the next one is read.
func TestAConfigurationIsReadThoughAKindOfTheOneBeforeCannotBeListed(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	jobsAPI := metadatafake.NewSimpleMetadataClient(scheme)
	refusal := apierrors.NewInternalError(errors.New("conversion webhook failed"))
	jobsAPI.PrependReactor("list", "rayjobs", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, refusal
	})
	jobsAPI.PrependWatchReactor("rayjobs", func(kubetesting.Action) (bool, watch.Interface, error) {
		return true, nil, refusal
	})
	configMap := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "managed-jobs"},
			Data: map[string]string{managedjobs.Key: text}}
	}
	client := kubefake.NewClientset(configMap("kinds: [Job.v1.batch]"))
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	args := &config.JobQueueArgs{}
	args.ManagedJobsConfigMap.Namespace, args.ManagedJobsConfigMap.Name = "koord-queue", "managed-jobs"
	c := &core{args: args, metadata: jobsAPI, clock: clock, metrics: metrics.New(metrics.Scheduler),
		handle:     kubeHandle{client: client, sharing: informers.NewSharedInformerFactory(client, 0)},
		stragglers: newStragglers(clock, 0)}
	managedJobs, err := c.managedJobs(t.Context())
	require.NoError(t, err)
	predicate, err := managedjobs.NewPredicate(managedJobs)
	require.NoError(t, err)
	first, err := c.newManaged(predicate)
	require.NoError(t, err)
	c.managed.Store(first)
	unused, err := objects.NewClient(&rest.Config{Host: "http://in-this-process", QPS: -1, Transport: memoryAPI{}})
	require.NoError(t, err)
	c.engine, err = engine.New(engine.Options{Client: unused, Quotas: fullQuotas{}, Clock: clock, Jobs: first.factory,
		Predicate: predicate, Submit: func(*statuswrite.Write) {}})
	require.NoError(t, err)
	first.start(t.Context())
	go c.engine.Run(t.Context())
	go c.followConfiguration(t.Context())

	takes := func(text string) {
		t.Helper()
		_, err := client.CoreV1().ConfigMaps("koord-queue").Update(t.Context(), configMap(text), metav1.UpdateOptions{})
		require.NoError(t, err)
		wanted, err := managedjobs.From(configMap(text).Data)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			clock.Step(time.Second)
			return c.managed.Load().predicate.Hash() == wanted.Hash()
		}, 10*time.Second, time.Millisecond, text)
	}
	takes("kinds: [Job.v1.batch, RayJob.v1.ray.io]")
	takes("kinds: [Job.v1.batch]")

	// Somebody deletes the namespace of queues. The defaults would gate pods of jobs that nobody manages.
	takes("requireQueueName: true")
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorContains(t, c.takeConfiguration(ended, nil), "gone")
}
