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

package e2e_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// otherProfiles has koord-scheduler schedule pods that name no scheduler, or that of YuniKorn or Volcano.
func otherProfiles(config map[string]any) {
	profiles := config["profiles"].([]any)
	for _, name := range []string{"default-scheduler", "yunikorn", "volcano"} {
		profile := maps.Clone(profiles[0].(map[string]any))
		profile["schedulerName"] = name
		profiles = append(profiles, profile)
	}
	config["profiles"] = profiles
}

const aliases = `
apiVersion: v1
kind: ConfigMap
metadata: {name: koord-jobqueue-managed-jobs, namespace: koord-queue}
data:
  managedJobs: |
    schedulerNames: [koord-scheduler, default-scheduler, yunikorn, volcano]
    aliases:
    - system: Kueue
      namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: moved}}
      queues: {user-queue: {quota: moved}}
      priorities: {high: 50}
    - system: YuniKorn
      namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: moved}}
      queues: {root.sandbox: {quota: moved}}
    - system: Volcano
      namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: moved}}
      queues: {test: {quota: moved}}
`

// localQueues is enough of Kueue for the API server to serve its queues.
const localQueues = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: localqueues.kueue.x-k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: kueue.x-k8s.io
  names: {kind: LocalQueue, plural: localqueues, singular: localqueue}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// allowSchedulers has the policies of tenancy let jobs name other profiles of the scheduler, too.
func (c *cluster) allowSchedulers(t *testing.T, names ...string) {
	t.Helper()
	patch := fmt.Sprintf(`{"data":{"schedulers":%q}}`, strings.Join(append(names, "koord-scheduler"), "\n"))
	_, err := c.kube.CoreV1().ConfigMaps(schedulingv1alpha1.DefaultQueueNamespace).
		Patch(t.Context(), "jobqueue-tenancy", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// refusesInstalled: an alias of a system whose queues are served does not count before it is forced.
func (c *cluster) refusesInstalled(t *testing.T, ns, kueue string) {
	t.Helper()
	require.NoError(t, c.Apply(t.Context(), []byte(localQueues)))
	maps := c.kube.CoreV1().ConfigMaps(schedulingv1alpha1.DefaultQueueNamespace)
	touched := 0
	require.Eventually(t, func() bool { // the controller looks every few seconds at what is served
		touched++
		_, err := maps.Patch(t.Context(), managedjobs.ConfigMap, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, touched), metav1.PatchOptions{})
		require.NoError(t, err)
		list, err := c.kube.CoreV1().Events(schedulingv1alpha1.DefaultQueueNamespace).List(t.Context(),
			metav1.ListOptions{FieldSelector: "reason=AliasRefused"})
		require.NoError(t, err)
		return len(list.Items) > 0
	}, soon, 5*pace)
	require.NoError(t, c.Apply(t.Context(), []byte(kueue)))
	c.waitEvent(t, ns, "refused", "Unmanaged")
	require.Nil(t, c.unit(t, ns, "refused"))
	forced := strings.Replace(aliases, "priorities:", "force: true\n      priorities:", 1)
	require.NoError(t, c.Apply(t.Context(), []byte(forced)))
	require.Eventually(t, func() bool { return jobDone(c.job(t, ns, "refused")) }, soon, pace)
}

// sample is a job with what the sample job of a system has: its labels, and the scheduler that it names.
func sample(namespace, name, labels, template, scheduler string, pods int) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {%s}}
spec:
  parallelism: %[6]d
  completions: %[6]d
  suspend: %[7]t
  template:
    metadata: {%[4]s}
    spec:
      schedulerName: %[5]s
      restartPolicy: Never
      containers: [{name: main, image: none, resources: {requests: {cpu: 100m, memory: 200Mi}}}]
---`, name, namespace, labels, template, scheduler, pods, labels != "")
}

// Jobs of users of Kueue, YuniKorn and Volcano run through the queue if the administrator enables their labels. A job
// that names two queues gets an event, and is neither suspended nor scheduled.
func TestJobsOfOtherSystemsRunByAliases(t *testing.T) {
	c := start(t, "aliases", controlplane.Options{Nodes: 3})
	ns, other := c.namespace(t, "moved"), c.namespace(t, "not-moved")
	require.NoError(t, c.Apply(t.Context(), []byte(aliases)))
	c.allowSchedulers(t, "default-scheduler", "yunikorn", "volcano")
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{Mutate: otherProfiles}))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	c.quota(t, ns, "moved", 1, 1)

	kueue := func(namespace, name string) string {
		return sample(namespace, name, "kueue.x-k8s.io/queue-name: user-queue, kueue.x-k8s.io/priority-class: high, "+
			`kueue.x-k8s.io/max-exec-time-seconds: "600"`, "", "default-scheduler", 3)
	}
	require.NoError(t, c.Apply(t.Context(), []byte(kueue(ns, "kueue")+
		sample(ns, "yunikorn", "", "labels: {applicationId: batch-sleep-job-1, queue: root.sandbox}", "yunikorn", 10)+
		sample(ns, "volcano", "", "annotations: {scheduling.volcano.sh/queue-name: test}", "volcano", 3))))
	for _, name := range []string{"kueue", "yunikorn", "volcano"} {
		require.Eventually(t, func() bool { return jobDone(c.job(t, ns, name)) }, soon, pace, name)
		c.boundAfterAdmission(t, ns, name)
		unit := c.unit(t, ns, name)
		require.Equal(t, "moved", unit.Labels[schedulingv1alpha1.LabelQuotaName])
		for _, pod := range c.podsOf(t, ns, name) {
			require.Equal(t, "moved", pod.Labels[schedulingv1alpha1.LabelQuotaName], "Koordinator charges the pod")
		}
	}
	asked := c.unit(t, ns, "kueue").Spec
	require.EqualValues(t, 50, *asked.Priority)
	require.EqualValues(t, 600, *asked.MaximumExecutionTimeSeconds)
	require.NoError(t, c.Apply(t.Context(), []byte(kueue(other, "kueue")+
		sample(ns, "ambiguous", "", "labels: {queue: root.sandbox}, annotations: {scheduling.volcano.sh/queue-name: test}",
			"default-scheduler", 1))))
	c.waitEvent(t, ns, "ambiguous", "AmbiguousQueue")
	require.Eventually(t, func() bool { return len(c.podsOf(t, ns, "ambiguous")) == 1 }, soon, pace)
	stays(t, 2*second, "its pod is not bound, and the job is as its owner wrote it", func() bool {
		suspended := ptr.Deref(c.job(t, ns, "ambiguous").Spec.Suspend, false)
		return c.podsOf(t, ns, "ambiguous")[0].Spec.NodeName == "" && !suspended
	})
	c.waitEvent(t, other, "kueue", "Unmanaged")
	require.True(t, *c.job(t, other, "kueue").Spec.Suspend, "the label means nothing here")
	require.NoError(t, c.Apply(t.Context(), []byte(sample(ns, "agrees", "kueue.x-k8s.io/queue-name: user-queue, "+
		schedulingv1alpha1.LabelQuotaName+": moved", "", "default-scheduler", 1))))
	require.Eventually(t, func() bool { return jobDone(c.job(t, ns, "agrees")) }, soon, pace)
	c.refusesInstalled(t, ns, kueue(ns, "refused"))
}
