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

package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// podWith is a pod of koord-scheduler with these labels.
func podWith(labels map[string]string) *corev1.Pod {
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Labels: labels},
		Spec: corev1.PodSpec{SchedulerName: "koord-scheduler", Containers: []corev1.Container{
			{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: one}},
		}},
	}
}

// on is the same on a node.
func on(node string, pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = node
	return pod
}

func (u tenant) create(t *testing.T, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return u.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
}

func (u tenant) update(t *testing.T, pod *corev1.Pod, change func(*corev1.Pod)) error {
	t.Helper()
	pod = pod.DeepCopy()
	change(pod)
	_, err := u.CoreV1().Pods(pod.Namespace).
		Update(t.Context(), pod, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func adminTenant(t *testing.T) tenant {
	t.Helper()
	typed, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	return tenant{Interface: typed, dynamic: clientOf(t, controlplane.Admin)}
}

// A pod stays where it is charged, and on a node it stays preemptible or not.
func tenancyOfPodsThatExist(t *testing.T) {
	admin, alice, controller := adminTenant(t), tenantNamed(t, "alice"), tenantNamed(t, jobController)
	mayUse(t, admin, "tenant-a", "d", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"})
	set := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels[key] = value
			if value == "" {
				delete(p.Labels, key)
			}
		}
	}
	made := func(pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		pod, err := admin.create(t, "tenant-a", pod)
		require.NoError(t, err)
		return pod
	}
	first := made(podWith(quotaOf("quota-a").labels))
	const stays = "the labels that name the quota of a pod stay as they are"
	for _, key := range v1alpha1.QuotaLabels {
		pod := made(podWith(named(key, "quota-a")))
		refused(t, alice.update(t, pod, set(key, "")), stays)
		refused(t, alice.update(t, pod, set(key, "quota-d")), stays)
		require.NoError(t, alice.update(t, pod, set("a", "b")))
		require.NoError(t, controller.update(t, pod, set(key, "quota-b")), "a listed account")
		for _, other := range v1alpha1.QuotaLabels {
			if other != key {
				refused(t, alice.update(t, pod, set(other, "quota-d")), stays)
			}
		}
	}
	bare := made(podWith(nil))
	require.NoError(t, alice.update(t, bare, set(v1alpha1.LabelQuotaName, "quota-a")), "it names none yet")
	refused(t, alice.update(t, bare, set(v1alpha1.LabelQuotaName, "quota-b")), `need the verb "use" on elasticquotas`)
	refused(t, alice.update(t, made(on("node-a", podWith(nil))), set(v1alpha1.LabelQuotaName, "quota-a")), stays)

	const preemptible = "a pod on a node stays preemptible or not"
	labels := quotaOf("quota-a").labels
	require.NoError(t, alice.update(t, first, set(v1alpha1.LabelPreemptible, "false")), "it is on no node yet")
	running := made(on("node-a", podWith(labels)))
	refused(t, alice.update(t, running, set(v1alpha1.LabelPreemptible, "false")), preemptible)
	labels[v1alpha1.LabelPreemptible] = "false"
	running = made(on("node-a", podWith(labels)))
	refused(t, alice.update(t, running, set(v1alpha1.LabelPreemptible, "true")), preemptible)
	refused(t, alice.update(t, running, set(v1alpha1.LabelPreemptible, "")), preemptible)
	require.NoError(t, alice.update(t, running, set("a", "b")))
	tenancyOfNaming(t, alice, controller, made)
	tenancyOfResizing(t, alice, running)
}

// A pod that runs keeps the place of the unit that it names, also when its job is gone.
func tenancyOfNaming(t *testing.T, alice, controller tenant, made func(*corev1.Pod) *corev1.Pod) {
	t.Helper()
	name := func(unit string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if delete(p.Annotations, v1alpha1.AnnotationRelatedQueueUnit); unit != "" {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AnnotationRelatedQueueUnit, unit)
			}
		}
	}
	pod := func() *corev1.Pod {
		pod := podWith(quotaOf("quota-a").labels)
		name("tenant-a/j")(pod)
		return pod
	}
	const names = "a pod on a node names the queue unit that it was made for"
	running := made(on("node-a", pod()))
	refused(t, alice.update(t, running, name("")), names)
	refused(t, alice.update(t, running, name("tenant-a/k")), names)
	refused(t, alice.update(t, made(on("node-a", podWith(quotaOf("quota-a").labels))), name("tenant-a/j")), names)
	require.NoError(t, controller.update(t, running, name("")), "a listed account")
	require.NoError(t, alice.update(t, made(pod()), name("")), "it is on no node yet")
}

// A pod that names a quota does not grow in its place past what was admitted.
func tenancyOfResizing(t *testing.T, alice tenant, running *corev1.Pod) {
	t.Helper()
	resize := func(requests string) error {
		pod := running.DeepCopy()
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(requests)
		_, err := alice.CoreV1().Pods(pod.Namespace).UpdateResize(t.Context(), pod.Name, pod,
			metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	refused(t, resize("64"), "the requests of a pod that names a quota stay as they are")
	require.NoError(t, resize("1"))
}

// While the ConfigMap is gone pods go on that have nothing to do with the queue, and no others.
func tenancyWithoutConfigMap(t *testing.T) {
	admin, alice := adminTenant(t), tenantNamed(t, "alice")
	maps := admin.CoreV1().ConfigMaps("koord-queue")
	require.NoError(t, maps.Delete(t.Context(), "jobqueue-tenancy", metav1.DeleteOptions{}))
	defer install(t, "overlays/enforced")
	create := func(u tenant, namespace string, labels map[string]string) error {
		_, err := u.CoreV1().Pods(namespace).
			Create(t.Context(), podWith(labels), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	require.Eventually(t, func() bool { return create(alice, "tenant-a", quotaOf("quota-a").labels) != nil },
		10*time.Second, 100*time.Millisecond, "the API server knows")
	require.ErrorContains(t, create(alice, managed, nil), "failed to configure binding")
	require.NoError(t, create(alice, "tenant-a", nil))
	require.NoError(t, create(admin, "kube-system", quotaOf("quota-a").labels))
}
