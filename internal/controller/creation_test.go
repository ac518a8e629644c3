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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/estimate"
)

// informers answer for the one kind that is asked for.
type informers struct {
	informer controllertest.FakeInformer
	err      error
}

func (i *informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if i.err != nil {
		return nil, i.err
	}
	return &i.informer, nil
}

// withProfiles has the reconciler read profiles as if they had been found.
func (w *world) withProfiles() *world {
	found := &informers{informer: controllertest.FakeInformer{Synced: true}}
	w.r.Shared.Profiles = estimate.NewProfiles(found, w.clock, nil)
	require.NoError(w.t, w.r.Shared.Profiles.Look(quiet()))
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	require.NoError(w.t, w.base.Create(context.Background(), o))
}

// koordManager registers the webhook as koord-manager does.
func koordManager() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "koordinator-mutating-webhook-configuration"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mpod-create.koordinator.sh",
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
				},
			}},
		}},
	}
}

func batchProfile(
	edits ...func(*koordinatorv1alpha1.ClusterColocationProfile),
) *koordinatorv1alpha1.ClusterColocationProfile {
	p := &koordinatorv1alpha1.ClusterColocationProfile{ObjectMeta: metav1.ObjectMeta{Name: "batch"}}
	p.Spec.PriorityClassName = "koord-batch"
	p.Spec.QoSClass = "BE"
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func batchClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "koord-batch"}, Value: 5500}
}

func asks(u *v1alpha1.QueueUnit) map[corev1.ResourceName]string {
	out := map[corev1.ResourceName]string{}
	for name, quantity := range u.Spec.Request {
		out[name] = quantity.String()
	}
	return out
}

func TestLimitRangesAndRuntimeClassesCount(t *testing.T) {
	w := newWorld(t, newJob(func(j *batchv1.Job) {
		name := "heavy"
		j.Spec.Template.Spec.RuntimeClassName = &name
	}),
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "team"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type:           corev1.LimitTypeContainer,
				DefaultRequest: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("4")},
			}}}},
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "elsewhere"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type:           corev1.LimitTypeContainer,
				DefaultRequest: corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")},
			}}}},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "h",
			Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("250m")}}},
	)
	w.settle()
	want := map[corev1.ResourceName]string{"cpu": "1500m", "memory": "2Gi"}
	require.Equal(t, want, asks(w.unit()))
	w.admit()
	w.settle()
	w.evict()
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	require.Equal(t, want, asks(w.unit()), "it asks for the same when it waits again")

	w.jobStatus(noted)
	w.admit()
	w.settle()
	w.evict()
	u := w.unit()
	u.Status.Phase = v1alpha1.PhaseTimeoutBackoff
	w.updateStatus(u)
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	require.Equal(t, want, asks(w.unit()), "and while it is backed off")
}

func TestProfilesCount(t *testing.T) {
	w := newWorld(t, newJob(), koordManager(), batchClass(), batchProfile()).withProfiles()
	w.settle()
	u := w.unit()
	require.Equal(t, map[corev1.ResourceName]string{"kubernetes.io/batch-cpu": "1k"}, asks(u))
	require.Equal(t, "a", u.Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "koord-batch", u.Spec.PriorityClassName)
	require.EqualValues(t, 5500, *u.Spec.Priority)

	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, "500m", w.job().Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String(),
		"the template is the job's own")
}

func TestProfilesWithoutTheirWebhookDoNotCount(t *testing.T) {
	w := newWorld(t, newJob(), batchClass(), batchProfile()).withProfiles()
	w.settle()
	require.Equal(t, map[corev1.ResourceName]string{"cpu": "1"}, asks(w.unit()))

	w = newWorld(t, newJob(), koordManager(), batchClass(), batchProfile()).withProfiles()
	namespace := &corev1.Namespace{}
	require.NoError(t, w.base.Get(context.Background(), client.ObjectKey{Name: "team"}, namespace))
	namespace.Labels = map[string]string{"control-plane": "x"}
	w.update(namespace)
	w.settle()
	require.Equal(t, map[corev1.ResourceName]string{"cpu": "1"}, asks(w.unit()),
		"the webhook is not called in this namespace")
}

func TestProfileOfChanceIsLeftOut(t *testing.T) {
	w := newWorld(t, newJob(), koordManager(), batchClass(),
		batchProfile(func(p *koordinatorv1alpha1.ClusterColocationProfile) {
			half := intstr.FromString("50%")
			p.Spec.Probability = &half
		})).withProfiles()
	w.settle()
	require.Equal(t, map[corev1.ResourceName]string{"cpu": "1"}, asks(w.unit()))
}

// A profile puts pods into a quota, and their job waits for that quota. The template gets the quota that the job names:
// otherwise the profile would be applied to it twice.
func TestQuotaFollowsTheProfile(t *testing.T) {
	w := newWorld(t, newJob(), koordManager(), batchProfile(func(p *koordinatorv1alpha1.ClusterColocationProfile) {
		p.Spec = koordinatorv1alpha1.ClusterColocationProfileSpec{
			LabelSuffixes: map[string]string{v1alpha1.LabelQuotaName: "-spot"},
			Labels:        map[string]string{v1alpha1.LabelPreemptible: "false"},
		}
	})).withProfiles()
	w.settle()
	require.Equal(t, "a-spot", w.unit().Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "a-spot", w.unit().Spec.Queue)
	require.Equal(t, "false", w.unit().Labels[v1alpha1.LabelPreemptible])
	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, "a", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
	require.NotContains(t, w.job().Spec.Template.Labels, v1alpha1.LabelPreemptible)
}

// The scheduler judges pods by the labels that they have in the end, so a job is managed by them too.
func TestJobIsManagedByTheQuotaOfAProfile(t *testing.T) {
	w := newWorld(t, newJob(func(j *batchv1.Job) { j.Labels = nil }), koordManager(),
		batchProfile(func(p *koordinatorv1alpha1.ClusterColocationProfile) {
			p.Spec = koordinatorv1alpha1.ClusterColocationProfileSpec{
				Labels: map[string]string{v1alpha1.LabelQuotaName: "injected"},
			}
		})).withProfiles()
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle())
	require.Equal(t, "injected", w.unit().Labels[v1alpha1.LabelQuotaName])
}

// A profile that comes while a job waits is found when the job is looked at, at the latest when it is admitted. Then
// the unit gives its admission back and waits at its place, and the job is not resumed in between.
func TestEstimateThatChanges(t *testing.T) {
	w := newWorld(t, newJob(), koordManager(), batchClass()).withProfiles()
	w.settle()
	uid := w.unit().UID
	require.Equal(t, map[corev1.ResourceName]string{"cpu": "1"}, asks(w.unit()))
	w.create(batchProfile())
	w.admit()
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	require.True(t, *w.job().Spec.Suspend)
	require.False(t, *w.unit().Spec.Active)
	require.Contains(t, w.told(), "EstimateChanged")

	// Even if the profile goes again, nothing happens before the scheduler has spoken.
	profile := batchProfile()
	require.NoError(t, w.base.Delete(context.Background(), profile))
	require.Empty(t, w.settle())
	w.create(batchProfile())

	u := w.unit() // the scheduler
	u.Status.Phase, u.Status.Admissions = v1alpha1.PhaseEnqueued, nil
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "Inactive", "", epoch)
	w.updateStatus(u)
	require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
	u = w.unit()
	require.Equal(t, uid, u.UID, "it keeps its place")
	require.Nil(t, u.Spec.Active)
	require.NotContains(t, u.Annotations, v1alpha1.AnnotationParkedReason)
	require.Equal(t, map[corev1.ResourceName]string{"kubernetes.io/batch-cpu": "1k"}, asks(u))
	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
}

func TestProfilesAreWaitedForAWhile(t *testing.T) {
	w := newWorld(t, newJob())
	served := &informers{err: &meta.NoKindMatchError{}}
	p := estimate.NewProfiles(served, w.clock, nil)
	w.r.Shared.Profiles = p
	require.Equal(t, settleDelay, w.reconcile().RequeueAfter, "nobody has looked")
	require.Nil(t, w.unit())

	require.Error(t, p.Look(quiet()))
	require.True(t, p.Settled(), "the CRD is not there")
	require.False(t, p.Readable())
	w.settle()
	require.NotNil(t, w.unit())

	served.err = errors.New("the API server does not answer")
	require.Error(t, p.Look(quiet()))
	require.True(t, p.Settled())

	served.err = nil
	require.NoError(t, p.Look(quiet()), "the CRD has come")
	require.False(t, p.Settled(), "and is being read")
	w.clock.SetTime(w.clock.Now().Add(31 * time.Second))
	require.True(t, p.Settled(), "but not for ever")
	require.False(t, p.Readable())
	served.informer.Synced = true
	require.True(t, p.Readable())
}
