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

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	kueue "github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

var (
	epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	names = Names{
		QueueNamespace: "koord-queue", SchedulerNamespace: "koordinator-system",
		SchedulerLease: "koord-scheduler", ControllerLease: "jobqueue-controller",
	}
)

// world is an installation without a fault, to plant one.
type world struct {
	objects []client.Object
	served  map[string][]string
	denied  map[string]bool
	audit   *visibility.Audit
	refused map[string]bool
	endless bool
}

const managedText = "kinds:\n- Job.v1.batch\n- PyTorchJob.v1.kubeflow.org\n"

func healthy(t *testing.T) *world {
	m, err := managedjobs.Parse(managedText)
	require.NoError(t, err)
	w := &world{
		served: map[string][]string{
			"scheduling.x-k8s.io/v1alpha1":             {"queues", "queues/status", "queueunits", "queueunits/status"},
			"scheduling.sigs.k8s.io/v1alpha1":          {"elasticquotas"},
			"visibility.koord-queue.x-k8s.io/v1alpha1": {"units", "localqueues"},
			"kueue.x-k8s.io/v1beta1":                   {"admissionchecks"},
			"batch/v1":                                 {"jobs"},
			"kubeflow.org/v1":                          {"pytorchjobs"},
		},
		denied: map[string]bool{}, refused: map[string]bool{},
		audit: &visibility.Audit{Status: &visibility.AuditStatus{At: metav1.NewTime(epoch.Add(-time.Minute))}},
	}
	w.add(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "koord-queue"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "koordinator-system"}},
		lease("koordinator-system", "koord-scheduler"), lease("koord-queue", "jobqueue-controller"),
		configMap("koordinator-system", "koord-scheduler-config", "koord-scheduler-config",
			"kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: koord-scheduler}]"),
		configMap("koordinator-system", schedulerDeployment, "scheduler-config.yaml", `
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  plugins: {preEnqueue: {enabled: [{name: JobQueue}]}, preFilter: {enabled: [{name: ElasticQuota}]}}
`),
		configMap("koord-queue", "koord-jobqueue-controller", "controller.yaml", ""),
		configMap("koord-queue", managedjobs.ConfigMap, managedjobs.Key, managedText),
		configMap("koord-queue", ancestors.ConfigMap, "authors", ""),
		parse(t, "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, "+
			"metadata: {name: v1alpha1.visibility.koord-queue.x-k8s.io}, status: {conditions: [{type: Available, status: "+
			"'True'}]}}"),
		deployment(t, "koord-queue", controllerDeployment, "controller", "r.example/jobqueue-controller:v1", 2),
		deployment(t, "koordinator-system", schedulerDeployment, "scheduler", "r.example/koord-scheduler:v1", 2),
		deployment(t, "koordinator-system", stockDeployment, "scheduler", "koordinator/koord-scheduler:v1.8.0", 0),
		&v1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "q",
				Annotations: map[string]string{v1alpha1.AnnotationAvailableQuota: "a, *"}},
			Spec: v1alpha1.QueueSpec{AdmissionChecks: []v1alpha1.QueueAdmissionCheck{{Name: "capacity"}}},
		},
		quota(t, "a", ""), quota(t, "b", "a"),
		&kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "capacity"}, Status: kueue.AdmissionCheckStatus{
			Conditions: []metav1.Condition{{Type: kueue.ConditionActive, Status: metav1.ConditionTrue}}}},
		&v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "u",
			Annotations: map[string]string{v1alpha1.AnnotationParkedReason: "HeldByOwner"}}},
	)
	managed := w.find("ConfigMap", managedjobs.ConfigMap)
	managed.SetAnnotations(map[string]string{managedjobs.AnnotationHash: m.Hash()})
	for _, name := range append([]string{"quota-pytorchjob"}, corePolicies...) {
		w.add(&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyPrefix + name}},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: policyPrefix + name},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName:        policyPrefix + name,
					ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			})
	}
	return w
}

func (w *world) add(objects ...client.Object) { w.objects = append(w.objects, objects...) }

func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	switch o.(type) {
	case *corev1.Namespace:
		return "Namespace"
	case *corev1.ConfigMap:
		return "ConfigMap"
	case *coordinationv1.Lease:
		return "Lease"
	case *v1alpha1.Queue:
		return "Queue"
	case *v1alpha1.QueueUnit:
		return "QueueUnit"
	case *kueue.AdmissionCheck:
		return "AdmissionCheck"
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return "Policy"
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return "Binding"
	}
	return ""
}

func (w *world) find(kind, name string) client.Object {
	for _, o := range w.objects {
		if kindOf(o) == kind && o.GetName() == name {
			return o
		}
	}
	panic("no " + kind + " " + name)
}

func (w *world) drop(kind, name string) {
	found := w.find(kind, name)
	for i, o := range w.objects {
		if o == found {
			w.objects = append(w.objects[:i:i], w.objects[i+1:]...)
			return
		}
	}
}

func lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("pod"), LeaseDurationSeconds: ptr.To(int32(15)),
			RenewTime: ptr.To(metav1.NewMicroTime(epoch.Add(-2 * time.Second))),
		},
	}
}

func configMap(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{key: text}}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func deployment(t *testing.T, namespace, name, container, image string, replicas int) *unstructured.Unstructured {
	return parse(t, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: %s, name: %s}, "+
		"spec: {replicas: %d, template: {spec: {containers: [{name: %s, image: '%s'}]}}}}", namespace, name, replicas,
		container, image))
}

func quota(t *testing.T, name, parent string) *unstructured.Unstructured {
	u := parse(t, "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {namespace: team, name: "+
		""+name+"}}")
	if parent != "" {
		u.SetLabels(map[string]string{v1alpha1.LabelQuotaParent: parent})
	}
	return u
}

// read is what Read makes of the world.
func (w *world) read(t *testing.T) *Installation {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		kueue.AddToScheme, schedulingv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	builder := fake.NewClientBuilder().WithReturnManagedFields().WithScheme(scheme).WithObjects(w.objects...)
	objects := builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if w.refused["reviews"] {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no"))
			}
			review := o.(*authorizationv1.SubjectAccessReview)
			attributes := review.Spec.ResourceAttributes
			right := attributes.Verb + " " + attributes.Resource
			review.Status.Allowed = !w.denied[right] && !w.denied[right+" "+attributes.Name]
			return nil
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.QueueUnitList); ok && w.endless {
				defer list.SetContinue("more")
			}
			if _, ok := list.(*v1alpha1.QueueList); ok && w.refused["queues"] {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "queues"}, "", errors.New("no"))
			}
			return c.List(ctx, list, o...)
		},
	}).Build()
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	for gv, resources := range w.served {
		list := &metav1.APIResourceList{GroupVersion: gv}
		for _, name := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		discovery.Resources = append(discovery.Resources, list)
	}
	audit := func(context.Context) (*visibility.Audit, error) { return w.audit, nil }
	return Read(t.Context(), Cluster{Objects: objects, Discovery: discovery, Audit: audit}, names, epoch)
}

// TestARefusalIsToldOnce: the caller may ask about no right of any service account.
func TestARefusalIsToldOnce(t *testing.T) {
	w := healthy(t)
	w.refused["reviews"] = true
	require.Len(t, w.read(t).Unread, 1)
}

// Of very many units the first ones are examined.
func TestAnEndIsFound(t *testing.T) {
	w := healthy(t)
	w.endless = true
	for i := range page {
		w.add(&v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("u", i)}})
	}
	require.Regexp(t, "^QueueUnits: those behind the first 1[0-9]{4}$", strings.Join(w.read(t).Unread, "\n"))
}

// TestEveryFaultIsFound plants faults one by one into an installation that has none. Each gives its finding and no
// other.
func TestEveryFaultIsFound(t *testing.T) {
	for code, plant := range map[string]func(*testing.T, *world){
		"":                 func(*testing.T, *world) {},
		"NamespaceMissing": func(_ *testing.T, w *world) { w.drop("Namespace", "koordinator-system") },
		"CRDMissing": func(_ *testing.T, w *world) {
			w.served["scheduling.x-k8s.io/v1alpha1"] = []string{"queues", "queues/status"}
		},
		"CRDOutdated": func(_ *testing.T, w *world) {
			w.served["scheduling.x-k8s.io/v1alpha1"] = []string{"queues", "queues/status", "queueunits"}
		},
		"QuotaCRDMissing": func(_ *testing.T, w *world) { delete(w.served, "scheduling.sigs.k8s.io/v1alpha1") },
		"SchedulerNotLeading": func(_ *testing.T, w *world) {
			w.find("Lease", "koord-scheduler").(*coordinationv1.Lease).Spec.RenewTime.Time = epoch.Add(-time.Hour)
		},
		"PluginNotEnabled": func(_ *testing.T, w *world) {
			w.find("ConfigMap", schedulerDeployment).(*corev1.ConfigMap).Data["scheduler-config.yaml"] = "kind: " +
				"KubeSchedulerConfiguration\nprofiles: [{}]"
		},
		"QuotaPluginNotEnabled": func(_ *testing.T, w *world) {
			w.find("ConfigMap", schedulerDeployment).(*corev1.ConfigMap).Data["scheduler-config.yaml"] =
				"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {preEnqueue: {enabled: [{name: JobQueue}]}}}]"
		},
		"ControllerNotLeading": func(_ *testing.T, w *world) { w.drop("Lease", "jobqueue-controller") },
		"VersionsDiffer": func(t *testing.T, w *world) {
			w.drop("Deployment", controllerDeployment)
			w.add(deployment(t, "koord-queue", controllerDeployment, "controller", "r.example:5000/jobqueue-controller:v2", 2))
		},
		"StockSchedulerRuns": func(t *testing.T, w *world) {
			w.drop("Deployment", stockDeployment)
			w.add(deployment(t, "koordinator-system", stockDeployment, "scheduler", "koordinator/koord-scheduler:v1.8.0", 2))
		},
		"ManagedJobsInvalid": func(_ *testing.T, w *world) {
			w.find("ConfigMap", managedjobs.ConfigMap).(*corev1.ConfigMap).Data[managedjobs.Key] = "kinds: " +
				"[Nothing.v1.example.com]"
		},
		"AliasOfInstalledSystem": func(t *testing.T, w *world) {
			w.understandKueue(t)
			w.served["kueue.x-k8s.io/v1beta2"] = []string{"localqueues"}
		},
		"NamespaceNotLabelled": func(t *testing.T, w *world) {
			w.understandKueue(t)
			w.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"a": "b"}}})
		},
		"PriorityClassMissing": func(t *testing.T, w *world) {
			w.configure(t, "jobDefaults: [{kind: Job.v1.batch, priorityClassName: gone}]")
		},
		"ManagedJobsNotRead": func(_ *testing.T, w *world) {
			w.find("ConfigMap",
				managedjobs.ConfigMap).SetAnnotations(nil)
		},
		"ManagedJobsMissing": func(_ *testing.T, w *world) { w.drop("ConfigMap", managedjobs.ConfigMap) },
		"KindNotServed":      func(_ *testing.T, w *world) { delete(w.served, "kubeflow.org/v1") },
		"RightsMissing":      func(_ *testing.T, w *world) { w.denied["patch pytorchjobs"] = true },
		"PoliciesMissing":    func(_ *testing.T, w *world) { w.drop("Policy", policyPrefix+"node") },
		"PoliciesWarnOnly": func(_ *testing.T, w *world) {
			binding := w.find("Binding", policyPrefix+"pod").(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
			binding.Spec.ValidationActions =
				[]admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
		},
		"KindPolicyWarns": func(_ *testing.T, w *world) {
			binding := w.find("Binding",
				policyPrefix+"quota-pytorchjob").(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
			binding.Spec.ValidationActions =
				[]admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
		},
		"PolicyParametersMissing": func(_ *testing.T, w *world) { w.drop("ConfigMap", ancestors.ConfigMap) },
		"KindPolicyMissing":       func(_ *testing.T, w *world) { w.drop("Policy", policyPrefix+"quota-pytorchjob") },
		"VisibilityMissing": func(_ *testing.T, w *world) {
			w.drop("APIService",
				"v1alpha1.visibility.koord-queue.x-k8s.io")
		},
		"VisibilityUnavailable": func(t *testing.T, w *world) {
			w.drop("APIService", "v1alpha1.visibility.koord-queue.x-k8s.io")
			w.add(parse(t, "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: "+
				"v1alpha1.visibility.koord-queue.x-k8s.io}, "+
				"status: {conditions: [{type: Available, status: 'False', reason: MissingEndpoints, message: none}]}}"))
		},
		"VisibilityWrong": func(_ *testing.T, w *world) {
			w.served["visibility.koord-queue.x-k8s.io/v1alpha1"] = []string{"queues", "queues/pendingqueueunits"}
		},
		"QueueOutsideOfQueueNamespace": func(_ *testing.T, w *world) {
			w.add(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}})
		},
		"QueueNotActive": func(_ *testing.T, w *world) {
			w.find("Queue", "q").(*v1alpha1.Queue).Status.Conditions =
				[]metav1.Condition{{Type: "Active", Status: metav1.ConditionFalse, Reason: "UnknownPolicy"}}
		},
		"QueueQuotaMissing": func(_ *testing.T, w *world) {
			w.find("Queue", "q").SetAnnotations(map[string]string{v1alpha1.AnnotationAvailableQuotaShort: "a,gone"})
		},
		"PrioritiesNotAllowed": func(_ *testing.T, w *world) {
			w.find("Queue", "q").(*v1alpha1.Queue).Spec.Preemption =
				&v1alpha1.QueuePreemption{WithinQueue: ptr.To(v1alpha1.PreemptLowerPriority)}
		},
		"IgnoredKey": func(_ *testing.T, w *world) {
			w.find("Queue", "q").SetAnnotations(map[string]string{"koord-queue/wait-for-pods-running": "true"})
		},
		"AdmissionCheckMissing": func(_ *testing.T, w *world) { w.drop("AdmissionCheck", "capacity") },
		"AdmissionCheckNotActive": func(_ *testing.T, w *world) {
			w.find("AdmissionCheck", "capacity").(*kueue.AdmissionCheck).Status.Conditions = nil
		},
		"QuotaParentMissing": func(t *testing.T, w *world) { w.add(quota(t, "c", "gone")) },
		"QuotaOwnAncestor":   func(t *testing.T, w *world) { w.add(quota(t, "c", "c")) },
		"QuotaPodsNotCounted": func(t *testing.T, w *world) {
			c := quota(t, "c", "")
			require.NoError(t, unstructured.SetNestedField(c.Object, "3", "spec", "max", "pods"))
			w.add(c)
		},
		"QuotaNameTaken": func(t *testing.T, w *world) {
			c := quota(t, "a", "")
			c.SetNamespace("other")
			c.SetCreationTimestamp(metav1.NewTime(epoch))
			w.add(c)
		},
		"UnitsParked": func(_ *testing.T, w *world) {
			w.find("QueueUnit", "u").SetAnnotations(map[string]string{v1alpha1.AnnotationParkedReason: "QuotaMismatch"})
		},
		"PodsHeld": func(_ *testing.T, w *world) {
			w.find("QueueUnit", "u").(*v1alpha1.QueueUnit).Status.Conditions =
				[]metav1.Condition{{Type: "Admitted", Status: metav1.ConditionTrue, Reason: "PodsHeldBySuspension"}}
		},
		"UseNotGranted": func(_ *testing.T, w *world) {
			w.find("QueueUnit", "u").SetLabels(map[string]string{v1alpha1.LabelQuotaName: "a"})
			w.denied["use elasticquotas"] = true
		},
		"AuditDifferences": func(_ *testing.T, w *world) { w.audit.Status.Found = 2 },
		"AuditOld":         func(_ *testing.T, w *world) { w.audit.Status.At.Time = epoch.Add(-time.Hour) },
		"NotExamined":      func(_ *testing.T, w *world) { w.refused["queues"] = true },
	} {
		t.Run(code, func(t *testing.T) {
			w := healthy(t)
			plant(t, w)
			var codes []string
			for _, f := range Examine(w.read(t)) {
				codes = append(codes, f.Code)
				require.NotEmpty(t, f.Message)
			}
			if code == "" {
				require.Empty(t, codes)
				return
			}
			require.Equal(t, []string{code}, codes)
		})
	}
}

// edit of a key of a ConfigMap by a program.
func edit(manager, key string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:` + key + `":{}}}`)},
	}}
}

// rendered says that a release of the chart has the ConfigMap.
func (w *world) rendered(configMap, release string) {
	if release == "" {
		return
	}
	o := w.find("ConfigMap", configMap)
	annotations := map[string]string{annotationRelease: release}
	maps.Copy(annotations, o.GetAnnotations())
	o.SetAnnotations(annotations)
}

// understandKueue has the labels of Kueue understood, and the controller has read that.
func (w *world) understandKueue(t *testing.T) {
	w.configure(t, "schedulerNames: [koord-scheduler]\naliases:\n"+
		"- {system: Kueue, namespaceSelector: {matchLabels: {a: b}}, queues: {q: {quota: a}}}\n")
}

// configure more, and the controller has read it.
func (w *world) configure(t *testing.T, more string) {
	text := managedText + more
	m, err := managedjobs.Parse(text)
	require.NoError(t, err)
	configMap := w.find("ConfigMap", managedjobs.ConfigMap).(*corev1.ConfigMap)
	configMap.Data[managedjobs.Key] = text
	configMap.SetAnnotations(map[string]string{managedjobs.AnnotationHash: m.Hash()})
}

// TestADefaultClassThatIsThere is no fault.
func TestADefaultClassThatIsThere(t *testing.T) {
	w := healthy(t)
	w.configure(t, "jobDefaults: [{kind: Job.v1.batch, priorityClassName: there}]")
	w.add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "there"}})
	require.Empty(t, Examine(w.read(t)))
}

// TestEditsThatAnUpgradeUndoes: each ConfigMap that the chart renders.
func TestEditsThatAnUpgradeUndoes(t *testing.T) {
	for name, key := range map[string]string{
		managedjobs.ConfigMap: managedjobs.Key, ancestors.ConfigMap: "authors",
		"koord-jobqueue-controller": "controller.yaml", "koord-jobqueue-scheduler": "scheduler-config.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			w := healthy(t)
			w.rendered(name, "queue")
			w.find("ConfigMap", name).SetManagedFields(edit("kubectl-edit", key))
			findings := Examine(w.read(t))
			require.Len(t, findings, 1)
			require.Equal(t, "ChartObjectEdited", findings[0].Code)
			require.Contains(t, findings[0].Message, name)
		})
	}
}

// TestASchedulerOfOnesOwn: the image may run in Koordinator's Deployment.
func TestASchedulerOfOnesOwn(t *testing.T) {
	w := healthy(t)
	w.drop("Deployment", schedulerDeployment)
	w.drop("Deployment", stockDeployment)
	w.add(deployment(t, "koordinator-system", stockDeployment, "scheduler", "r.example/koord-scheduler:v2", 2))
	findings := Examine(w.read(t))
	require.Len(t, findings, 1)
	require.Equal(t, "VersionsDiffer", findings[0].Code)
}

// TestEditsThatNoUpgradeUndoes: an object that no chart renders may be edited, and so may keys that the chart does not
// render. The controller writes some of those.
func TestEditsThatNoUpgradeUndoes(t *testing.T) {
	for name, c := range map[string]struct{ configMap, release, manager, key string }{
		"kustomize":  {managedjobs.ConfigMap, "", "kubectl-edit", managedjobs.Key},
		"Helm":       {managedjobs.ConfigMap, "queue", "helm", managedjobs.Key},
		"Flux":       {managedjobs.ConfigMap, "queue", "helm-controller", managedjobs.Key},
		"other keys": {ancestors.ConfigMap, "queue", "kubectl-patch", "finalizers"},
		"controller": {ancestors.ConfigMap, "queue", "jobqueue-controller", ancestors.Key},
	} {
		t.Run(name, func(t *testing.T) {
			w := healthy(t)
			configMap := w.find("ConfigMap", c.configMap)
			w.rendered(c.configMap, c.release)
			configMap.SetManagedFields(edit(c.manager, c.key))
			require.Empty(t, Examine(w.read(t)))
		})
	}
}

// TestAllPoliciesWarn: kinds warn as the others do, which is one finding.
func TestAllPoliciesWarn(t *testing.T) {
	w := healthy(t)
	for _, o := range w.objects {
		if binding, ok := o.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
			binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		}
	}
	findings := Examine(w.read(t))
	require.Len(t, findings, 1)
	require.Equal(t, "PoliciesWarnOnly", findings[0].Code)
}

// TestARightOnAQuotaAbove counts for the quotas below it, as it does for the policies.
func TestARightOnAQuotaAbove(t *testing.T) {
	w := healthy(t)
	w.find("QueueUnit", "u").SetLabels(map[string]string{v1alpha1.LabelQuotaName: "b"})
	w.denied["use elasticquotas b"] = true
	require.Len(t, Examine(w.read(t)), 1)
	w.find("ConfigMap", ancestors.ConfigMap).(*corev1.ConfigMap).Data[ancestors.Key] = "b middle a\nc a\n"
	require.Empty(t, Examine(w.read(t)))
}

// TestThePolicyThatStays: this policy refuses nothing on purpose.
func TestThePolicyThatStays(t *testing.T) {
	w := healthy(t)
	const name = "jobqueue-keep-parameters"
	w.add(&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit},
			},
		})
	require.Empty(t, Examine(w.read(t)))
}

// TestAnAliasOfASystemThatIsNotInstalled is no fault.
func TestAnAliasOfASystemThatIsNotInstalled(t *testing.T) {
	w := healthy(t)
	w.understandKueue(t)
	require.Empty(t, Examine(w.read(t)))
}

// TestAnEmptyCluster has findings and no panic.
// Kueue 0.20 serves AdmissionChecks in v1beta2 alone.
func TestChecksOfALaterKueue(t *testing.T) {
	w := healthy(t)
	delete(w.served, "kueue.x-k8s.io/v1beta1")
	w.served["kueue.x-k8s.io/v1beta2"] = []string{"admissionchecks"}
	w.drop("AdmissionCheck", "capacity")
	w.add(parse(t, "{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: capacity}, "+
		"spec: {controllerName: example.com/capacity}, status: {conditions: [{type: Active, status: 'True'}]}}"))
	require.Empty(t, Examine(w.read(t)))
}

func TestAnEmptyCluster(t *testing.T) {
	require.NotEmpty(t, Examine((&world{}).read(t)))
}

// TestNamespacesThatPoliciesDoNotBound are those whose jobs are queued for another reason than a label.
func TestNamespacesThatPoliciesDoNotBound(t *testing.T) {
	placement := "placement: [{namespaceSelector: {matchLabels: {a: b}}, path: root.a}]"
	for name, c := range map[string]struct {
		configuration string
		labels        map[string]string
		want          []string
	}{
		"a placement":              {placement, map[string]string{"a": "b"}, []string{"team"}},
		"with the label":           {placement, map[string]string{"a": "b", v1alpha1.LabelManaged: "true"}, nil},
		"not selected":             {placement, nil, nil},
		"a quota takes it":         {"manageMappedNamespaces: Always", nil, []string{"team"}},
		"a quota, and that is off": {"manageMappedNamespaces: Never", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := healthy(t)
			w.configure(t, c.configuration)
			w.add(quota(t, "team", ""),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: c.labels}})
			require.Equal(t, c.want, w.read(t).Unlabelled)
		})
	}
}

// One namespace that says how great a priority it allows is enough: who has preemption by priority knows of it.
func TestPrioritiesAreAllowed(t *testing.T) {
	for policy, warned := range map[v1alpha1.QueuePreemption]bool{
		{Reclaim: ptr.To(v1alpha1.PreemptLowerPriority)}: true, {Reclaim: ptr.To(v1alpha1.PreemptAny)}: false, {}: false,
	} {
		i := &Installation{Names: Names{QueueNamespace: "koord-queue"}}
		q := v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "q"}}
		q.Spec.Preemption = &policy
		i.Queues = []v1alpha1.Queue{q}
		require.Equal(t, warned, len(i.unallowedPriorities()) > 0)
		i.PrioritiesAllowed = true
		require.Empty(t, i.unallowedPriorities())
		i.PrioritiesAllowed, i.Unread = false, []string{"namespaces: forbidden"}
		require.Empty(t, i.unallowedPriorities(), "nobody knows")
	}
	w := healthy(t)
	require.False(t, w.read(t).PrioritiesAllowed)
	w.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "team", Annotations: map[string]string{v1alpha1.AnnotationMaxPriority: "5"},
	}})
	require.True(t, w.read(t).PrioritiesAllowed)
}

// TestACommandForADescribedKind names the file, without which the kind is not known.
func TestACommandForADescribedKind(t *testing.T) {
	require.Equal(t, "kubectl jobqueue kinds rights PyTorchJob.v1.kubeflow.org | kubectl apply -f -",
		kindsCommand("rights", "PyTorchJob.v1.kubeflow.org"))
	require.Equal(t, "kubectl jobqueue kinds policy Train.v1.example.com --managed-jobs=FILE | kubectl apply -f -",
		kindsCommand("policy", "Train.v1.example.com"))
}
