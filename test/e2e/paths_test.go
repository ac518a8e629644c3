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
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const placement = `
apiVersion: v1
kind: ConfigMap
metadata: {name: koord-jobqueue-managed-jobs, namespace: koord-queue}
data:
  managedJobs: |
    placement:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: placed}}
      path: root.organization2.{namespace}
`

// asMember is a client of somebody who may write jobs in a namespace and use one quota.
func (c *cluster) asMember(t *testing.T, namespace, user, quota string) kubernetes.Interface {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}},
		{APIGroups: []string{"scheduling.sigs.k8s.io"}, Resources: []string{"elasticquotas"}, Verbs: []string{"use"},
			ResourceNames: []string{quota}},
	}}
	_, err := c.kube.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c.as(t, user)
}

func atPath(path string) jobOption {
	return func(j *batchv1.Job) { j.Labels = map[string]string{schedulingv1alpha1.QueuePathKey: path} }
}

// ofPlatform is the job as the library for platforms labels it.
func ofPlatform(t *testing.T, plain *batchv1.Job) *batchv1.Job {
	t.Helper()
	c, err := submit.ParseConfig([]byte("queueconfig: {scheduler: koord, queue: 'root.{{.Organization}}.{{.Type}}'}"))
	require.NoError(t, err)
	task, err := c.Job(&submit.Submitter{Organization: "organization1", Type: "ray"})
	require.NoError(t, err)
	plain.APIVersion, plain.Kind = "batch/v1", "Job"
	object, err := submit.ObjectOf(plain)
	require.NoError(t, err)
	labelled, _, err := c.Driver.Label(task, object)
	require.NoError(t, err)
	job := &batchv1.Job{}
	require.NoError(t, submit.Into(labelled, job))
	return job
}

// Somebody who may use an organization's quota runs a job in a quota below it by the path, and in no other
// organization. A job that names nothing runs in the quota that the placement of its namespace gives.
func TestJobsRunByPathsAndPlacement(t *testing.T) {
	c := start(t, "paths", controlplane.Options{Nodes: 3})
	require.NoError(t, c.Apply(t.Context(), []byte(placement)))
	c.complete(t)
	ns, placed := c.namespace(t, "organization1-jobs"), c.namespace(t, "placed")
	c.quota(t, ns, "organization1", 4, 4, isParent())
	c.quota(t, ns, "ray", 2, 2, under("organization1"))
	c.quota(t, ns, "organization2", 4, 4, isParent())
	c.quota(t, ns, "other", 2, 2, under("organization2"))
	c.quota(t, ns, placed, 2, 2, under("organization2"))

	alice := c.asMember(t, ns, "alice", "organization1")
	create := func(name, path string) error {
		_, err := alice.BatchV1().Jobs(ns).Create(t.Context(), newJob(ns, name, atPath(path)), metav1.CreateOptions{})
		return err
	}
	var err error
	require.Eventually(t, func() bool { err = create("by-path", "root.organization1.ray"); return err == nil }, soon, pace,
		"the controller publishes the quotas above: %v", err)
	runsIn := func(namespace, name, quota, path string) {
		t.Helper()
		require.Eventually(t, func() bool { return jobDone(c.job(t, namespace, name)) }, soon, pace, name)
		c.boundAfterAdmission(t, namespace, name)
		unit := c.unit(t, namespace, name)
		require.Equal(t, quota, unit.Labels[schedulingv1alpha1.LabelQuotaName])
		require.Equal(t, path, unit.Annotations[schedulingv1alpha1.QueuePathKey])
		for _, pod := range c.podsOf(t, namespace, name) {
			require.Equal(t, quota, pod.Labels[schedulingv1alpha1.LabelQuotaName], "Koordinator charges the pod")
		}
	}
	runsIn(ns, "by-path", "ray", "root.organization1.ray")
	_, err = alice.BatchV1().Jobs(ns).Create(t.Context(), ofPlatform(t, newJob(ns, "of-platform")), metav1.CreateOptions{})
	require.NoError(t, err)
	runsIn(ns, "of-platform", "ray", "root.organization1.ray")
	for _, path := range []string{"root.organization2.other", "root.organization1.other", "root.organization2"} {
		err := create("refused", path)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", path, err)
		require.ErrorContains(t, err, "neither alice nor namespace "+ns+" may use quota o")
	}

	c.create(t, newJob(ns, "elsewhere", atPath("root.organization1.other")),
		newJob(ns, "later", atPath("root.organization1.later")), newJob(placed, "plain"))
	require.Contains(t, c.waitReason(t, ns, "elsewhere", "UnknownQuota"), `has no quota "other" below "organization1"`)
	c.waitReason(t, ns, "later", "UnknownQuota")
	c.quota(t, ns, "later", 1, 1, under("organization1"))
	runsIn(ns, "later", "later", "root.organization1.later")
	runsIn(placed, "plain", placed, "root.organization2."+placed)
	require.Empty(t, c.podsOf(t, ns, "elsewhere"), "another organization's quota is not reached")
}
