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

// Package doctor examines an installation. Read reads it once, with the rights of the caller. Examine is a pure
// function that returns one finding for each fault.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// Use is a quota that units of a namespace are charged to.
type Use struct{ Namespace, Quota string }

// Names say where the parts of an installation are.
type Names struct {
	// QueueNamespace has the Queues, the controller and its configuration; SchedulerNamespace has the scheduler.
	QueueNamespace, SchedulerNamespace string
	// SchedulerLease and ControllerLease are the names of the leases of both, in their namespaces.
	SchedulerLease, ControllerLease string
}

// Installation is what was read. A field is empty if its objects do not exist. Unread has the reads that failed.
type Installation struct {
	Names
	Now time.Time

	// Served has the resources of each group and version, subresources among them.
	Served     map[schema.GroupVersion]map[string]bool
	Namespaces map[string]bool
	// SchedulerLease and ControllerLease are nil if nobody has ever led.
	SchedulerLease, ControllerLease *coordinationv1.Lease
	// SchedulerConfigs are the texts of the KubeSchedulerConfigurations in ConfigMaps, by ConfigMap.
	SchedulerConfigs map[string]string
	// Deployments of controller and schedulers, by name.
	Deployments map[string]*Deployment
	// Settings are the ConfigMaps with the configurations of controller and scheduler that the chart renders, by name.
	Settings    map[string]*corev1.ConfigMap
	ManagedJobs *corev1.ConfigMap
	// Managed are the kinds of jobs that ManagedJobs names, and Denied the rights that the controller lacks for each.
	Managed []jobkind.Kind
	Denied  map[string][]string
	// MissingClasses are the priority classes that ManagedJobs names and that do not exist.
	MissingClasses []string
	// Unlabelled are the namespaces whose jobs are queued although neither they nor their namespace say so.
	Unlabelled []string
	// PrioritiesAllowed: a namespace says how great a priority it allows.
	PrioritiesAllowed bool
	// Tenancy is the ConfigMap with the parameters of the policies.
	Tenancy  *corev1.ConfigMap
	Policies map[string]bool
	// Bindings has the actions of each binding of a policy.
	Bindings   map[string][]admissionregistrationv1.ValidationAction
	APIService *unstructured.Unstructured
	Queues     []v1alpha1.Queue
	Units      []v1alpha1.QueueUnit
	Quotas     []unstructured.Unstructured
	// Ungranted are the quotas that units are charged to although their namespace has no right to use them.
	Ungranted []Use
	Checks    map[string]*kueue.AdmissionCheck
	// Audit is the last one, nil if there was none.
	Audit  *visibility.Audit
	Unread []string
}

// Cluster is what Read asks.
type Cluster struct {
	Objects   client.Client
	Discovery discovery.DiscoveryInterface
	// Audit returns the last audit of the aggregated API.
	Audit func(context.Context) (*visibility.Audit, error)
}

var (
	quotaGV      = schema.GroupVersion{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1"}
	visibilityGV = visibility.SchemeGroupVersion
	queueGV      = v1alpha1.SchemeGroupVersion
)

// page is the number of objects in one request.
const page = 500

// Read reads everything that Examine needs. Unread names the unreadable parts.
func Read(ctx context.Context, from Cluster, names Names, now time.Time) *Installation {
	i := &Installation{
		Names: names, Now: now,
		Namespaces: map[string]bool{}, SchedulerConfigs: map[string]string{}, Denied: map[string][]string{},
		Deployments: map[string]*Deployment{}, Settings: map[string]*corev1.ConfigMap{},
		Policies: map[string]bool{}, Bindings: map[string][]admissionregistrationv1.ValidationAction{},
		Checks: map[string]*kueue.AdmissionCheck{},
	}
	r := &reader{ctx: ctx, from: from, into: i}
	r.served()
	for _, name := range []string{names.QueueNamespace, names.SchedulerNamespace} {
		i.Namespaces[name] = r.get("namespace "+name, types.NamespacedName{Name: name}, &corev1.Namespace{})
	}
	i.SchedulerLease = r.lease(names.SchedulerNamespace, names.SchedulerLease)
	i.ControllerLease = r.lease(names.QueueNamespace, names.ControllerLease)
	r.schedulerConfigs()
	r.deployments()
	r.settings()
	r.managedJobs()
	r.tenancy()
	r.apiService()
	r.each("Queues", &v1alpha1.QueueList{}, "", func(o client.Object) {
		i.Queues = append(i.Queues,
			*o.(*v1alpha1.Queue))
	})
	r.each("QueueUnits", &v1alpha1.QueueUnitList{}, "", func(o client.Object) {
		i.Units = append(i.Units, *o.(*v1alpha1.QueueUnit))
	})
	r.uses()
	quotas := &unstructured.UnstructuredList{}
	quotas.SetGroupVersionKind(quotaGV.WithKind("ElasticQuotaList"))
	r.each("ElasticQuotas", quotas, "", func(o client.Object) {
		i.Quotas = append(i.Quotas, *o.(*unstructured.Unstructured))
	})
	r.namespaces()
	r.checks()
	if audit, err := from.Audit(ctx); !r.failed("the last audit", err) {
		i.Audit = audit
	}
	return i
}

// reader reads until the context ends, and notes what it could not read.
type reader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call of Read
	from Cluster
	into *Installation
}

// failed notes an error. An object that does not exist is none.
func (r *reader) failed(what string, err error) bool {
	if err == nil {
		return false
	}
	text := fmt.Sprintf("%s: %s", what, err)
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) && !slices.Contains(r.into.Unread, text) {
		r.into.Unread = append(r.into.Unread, text)
	}
	return true
}

func (r *reader) get(what string, key types.NamespacedName, into client.Object) bool {
	return !r.failed(what, r.from.Objects.Get(r.ctx, key, into))
}

// mostObjects of one kind are examined.
const mostObjects = 20 * page

// each calls do with the objects of a list, up to mostObjects.
func (r *reader) each(what string, list client.ObjectList, namespace string, do func(client.Object)) {
	for token, n := "", 0; ; {
		err := r.from.Objects.List(r.ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(token))
		if r.failed(what, err) {
			return
		}
		objects, err := meta.ExtractList(list)
		if r.failed(what, err) {
			return
		}
		for _, o := range objects {
			do(o.(client.Object))
		}
		n += len(objects)
		if token = list.GetContinue(); token == "" {
			return
		}
		if n >= mostObjects {
			r.failed(what, fmt.Errorf("those behind the first %d", n))
			return
		}
	}
}

func (r *reader) served() {
	r.into.Served = map[schema.GroupVersion]map[string]bool{}
	_, lists, err := r.from.Discovery.ServerGroupsAndResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		err = nil // the group has no resources then, which is a finding
	}
	if r.failed("the APIs of the cluster", err) {
		r.into.Served = nil
		return
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		names := map[string]bool{}
		for i := range list.APIResources {
			names[list.APIResources[i].Name] = true
		}
		r.into.Served[gv] = names
	}
}

func (r *reader) lease(namespace, name string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	if r.get("lease "+namespace+"/"+name, types.NamespacedName{Namespace: namespace, Name: name}, lease) {
		return lease
	}
	return nil
}

func (r *reader) schedulerConfigs() {
	r.each("ConfigMaps of namespace "+r.into.SchedulerNamespace, &corev1.ConfigMapList{}, r.into.SchedulerNamespace,
		func(o client.Object) {
			for _, text := range o.(*corev1.ConfigMap).Data {
				if isSchedulerConfig(text) {
					r.into.SchedulerConfigs[o.GetName()] = text
				}
			}
		})
}

func (r *reader) managedJobs() {
	i, configMap := r.into, &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: i.QueueNamespace, Name: managedjobs.ConfigMap}
	if !r.get("ConfigMap "+key.String(), key, configMap) {
		return
	}
	i.ManagedJobs = configMap
	m, err := managedjobs.From(configMap.Data)
	if err != nil {
		return // Examine says so
	}
	predicate, err := managedjobs.NewPredicate(m)
	if err != nil {
		return
	}
	for _, name := range m.DefaultClasses() {
		what := "PriorityClass " + name
		if !r.get(what, types.NamespacedName{Name: name}, &schedulingv1.PriorityClass{}) && !i.couldNotRead(what) {
			i.MissingClasses = append(i.MissingClasses, name)
		}
	}
	i.Managed = predicate.Kinds()
	for n := range i.Managed {
		kind := &i.Managed[n]
		for _, verb := range []string{"list", "watch", "patch"} {
			if kind.OfPods() {
				continue
			}
			right := authorizationv1.ResourceAttributes{Group: kind.GVR.Group, Resource: kind.GVR.Resource, Verb: verb}
			if allowed, known := r.may(i.QueueNamespace, "jobqueue-controller", right); known && !allowed {
				i.Denied[kind.String()] = append(i.Denied[kind.String()], verb)
			}
		}
	}
}

// mostUses bounds the namespaces with their quotas that are asked about.
const mostUses = 100

// uses asks for each namespace and quota of the units whether the namespace may use the quota, or one above it.
func (r *reader) uses() {
	asked, above := map[Use]bool{}, map[string][]string{}
	if r.into.Tenancy != nil {
		above = ancestors.Read(r.into.Tenancy.Data[ancestors.Key])
	}
	for n := range r.into.Units {
		u := &r.into.Units[n]
		use := Use{Namespace: u.Namespace, Quota: u.Labels[v1alpha1.LabelQuotaName]}
		if use.Quota == "" || asked[use] || len(asked) == mostUses {
			continue
		}
		asked[use] = true
		if r.lacksUse(use.Namespace, append([]string{use.Quota}, above[use.Quota]...)) {
			r.into.Ungranted = append(r.into.Ungranted, use)
		}
	}
}

// lacksUse says that a namespace may use none of the quotas.
func (r *reader) lacksUse(namespace string, quotas []string) bool {
	for _, quota := range quotas {
		allowed, known := r.may(namespace, "default", authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: quotaGV.Group, Resource: "elasticquotas", Name: quota, Verb: "use",
		})
		if allowed || !known {
			return false
		}
	}
	return true
}

// may asks for a right of a service account.
func (r *reader) may(namespace, account string, right authorizationv1.ResourceAttributes) (allowed, known bool) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &right,
	}}
	if r.failed("rights of service accounts", r.from.Objects.Create(r.ctx, review)) {
		return false, false
	}
	return review.Status.Allowed, true
}

func (r *reader) tenancy() {
	i, configMap := r.into, &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: i.QueueNamespace, Name: ancestors.ConfigMap}
	if r.get("ConfigMap "+key.String(), key, configMap) {
		i.Tenancy = configMap
	}
	r.each("ValidatingAdmissionPolicies", &admissionregistrationv1.ValidatingAdmissionPolicyList{}, "",
		func(o client.Object) { i.Policies[o.GetName()] = true })
	r.each("ValidatingAdmissionPolicyBindings", &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, "",
		func(o client.Object) {
			binding := o.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
			i.Bindings[binding.Spec.PolicyName] = append(i.Bindings[binding.Spec.PolicyName], binding.Spec.ValidationActions...)
		})
}

func (r *reader) apiService() {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1",
		Kind: "APIService"})
	name := visibilityGV.Version + "." + visibilityGV.Group
	if r.get("APIService "+name, types.NamespacedName{Name: name}, service) {
		r.into.APIService = service
	}
}

func (r *reader) checks() {
	i := slices.IndexFunc(kueue.AdmissionCheckResources, func(of schema.GroupVersionResource) bool {
		return r.into.Served[of.GroupVersion()][of.Resource]
	})
	if i < 0 {
		return
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.AdmissionCheckResources[i].GroupVersion().WithKind("AdmissionCheckList"))
	r.each("AdmissionChecks", list, metav1.NamespaceAll, func(o client.Object) {
		check := &kueue.AdmissionCheck{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, check)
		if !r.failed("AdmissionCheck "+o.GetName(), err) {
			r.into.Checks[o.GetName()] = check
		}
	})
}
