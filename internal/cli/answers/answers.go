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

// Package answers reads units, queues and quotas for the commands, with the rights of the caller. Objects come from the
// API server. Positions, shortages and amounts come from the aggregated API of the scheduler. If that API is absent,
// answers have only the contents of the objects.
package answers

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// page is the number of objects in one request.
const page = 500

// Reader asks both APIs.
type Reader struct {
	// Objects of the API server.
	Objects client.Client
	live    rest.Interface
}

// New returns a reader with the rights of a client configuration.
func New(config *rest.Config) (*Reader, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := visibility.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper, err := mapperOf(config)
	if err != nil {
		return nil, err
	}
	objects, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &visibility.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	live, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Reader{Objects: objects, live: live}, nil
}

// mapperOf knows the resources that most commands read, and asks the API server about other kinds only.
func mapperOf(config *rest.Config) (meta.RESTMapper, error) {
	known := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"), v1alpha1.SchemeGroupVersion.WithKind("Queue"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	} {
		known.Add(kind, meta.RESTScopeNamespace)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	others, err := apiutil.NewDynamicRESTMapper(config, transport)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, others}}, err
}

// Units returns all QueueUnits of a namespace, or of all namespaces if it is empty.
func (r *Reader) Units(ctx context.Context, namespace string) ([]v1alpha1.QueueUnit, error) {
	return selected(ctx, r.Objects, math.MaxInt, client.InNamespace(namespace))
}

// Admitted returns the QueueUnits of a namespace, or of all, that hold quota, up to most of them.
func (r *Reader) Admitted(ctx context.Context, namespace string, most int) ([]v1alpha1.QueueUnit, error) {
	return selected(ctx, r.Objects, most, client.InNamespace(namespace),
		client.MatchingFieldsSelector{Selector: holdsQuota()})
}

// holdsQuota selects units of phases that hold quota. The API server leaves out the others.
func holdsQuota() fields.Selector {
	var others []fields.Selector
	for _, phase := range unit.Phases() {
		if !phase.Holds() {
			others = append(others, fields.OneTermNotEqualSelector("status.phase", string(phase)))
		}
	}
	return fields.AndSelectors(others...)
}

// selected returns the QueueUnits that options select, page by page, up to most of them.
func selected(
	ctx context.Context, from client.Reader, most int, options ...client.ListOption,
) ([]v1alpha1.QueueUnit, error) {
	var units []v1alpha1.QueueUnit
	for token := ""; ; {
		list := &v1alpha1.QueueUnitList{}
		size := client.Limit(int64(min(page, most-len(units))))
		err := from.List(ctx, list, append([]client.ListOption{size, client.Continue(token)}, options...)...)
		if err != nil {
			return nil, err
		}
		units = append(units, list.Items...)
		if token = list.Continue; token == "" || len(units) >= most {
			return units, nil
		}
	}
}

// fieldJob selects the QueueUnits of a job by the name of the job.
const fieldJob = "spec.consumerRef.name"

// kindUnit is the kind of a unit that stands for no job, as JobName says it.
const kindUnit = "queueunit"

// Unit returns the QueueUnit of a job, usually with one request. The job is NAME or KIND/NAME. NAME may be that of the
// unit, too. It is an error if several jobs have the name.
func (r *Reader) Unit(ctx context.Context, namespace, job string) (*v1alpha1.QueueUnit, error) {
	kind, name, typed := strings.Cut(job, "/")
	if !typed {
		kind, name = "", job
	}
	isUnit := strings.EqualFold(kind, kindUnit)
	if !isUnit {
		of, err := r.unitsOf(ctx, namespace, kind, name)
		switch {
		case err != nil:
			return nil, err
		case len(of) == 1:
			return of[0], nil
		case len(of) > 1:
			return nil, fmt.Errorf("several jobs in namespace %q have that name; choose one of: %s", namespace, jobsOf(of))
		}
	}
	u := &v1alpha1.QueueUnit{}
	if (isUnit || kind == "") && name != "" {
		err := r.Objects.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, u)
		if err == nil || !apierrors.IsNotFound(err) {
			return u, err
		}
	}
	return nil, fmt.Errorf("no QueueUnit in namespace %q stands for job %q: is it of a managed kind, with a quota label "+
		"or a queue name?", namespace, job)
}

// unitsOf are the units of the jobs of a kind and a name. An empty kind is any.
func (r *Reader) unitsOf(ctx context.Context, namespace, kind, name string) (of []*v1alpha1.QueueUnit, err error) {
	units, err := r.unitsOfJobs(ctx, namespace, name)
	for i := range units {
		ref := units[i].Spec.ConsumerRef
		if ref != nil && ref.Name == name && (kind == "" || strings.EqualFold(ref.Kind, kind)) {
			of = append(of, &units[i])
		}
	}
	return of, err
}

// unitsOfJobs are the units of the jobs of a name, of any kind. A CustomResourceDefinition of an earlier release cannot
// select them; then they are all units of the namespace.
func (r *Reader) unitsOfJobs(ctx context.Context, namespace, name string) ([]v1alpha1.QueueUnit, error) {
	list := &v1alpha1.QueueUnitList{}
	err := r.Objects.List(ctx, list, client.InNamespace(namespace), client.Limit(page),
		client.MatchingFields{fieldJob: name})
	if apierrors.IsBadRequest(err) {
		return r.Units(ctx, namespace)
	}
	return list.Items, err
}

func jobsOf(units []*v1alpha1.QueueUnit) string {
	names := make([]string, 0, len(units))
	for _, u := range units {
		names = append(names, strings.ToLower(u.Spec.ConsumerRef.Kind)+"/"+u.Spec.ConsumerRef.Name)
	}
	return strings.Join(names, ", ")
}

// LiveUnit is the answer of the aggregated API for one unit.
func (r *Reader) LiveUnit(ctx context.Context, namespace, name string) (*visibility.Unit, error) {
	u := &visibility.Unit{}
	return u, r.live.Get().Namespace(namespace).Resource("units").Name(name).Do(ctx).Into(u)
}

// Forecast says when a unit will be admitted.
func (r *Reader) Forecast(ctx context.Context, namespace, name string) (*visibility.Forecast, error) {
	f := &visibility.Forecast{}
	return f, r.live.Get().Namespace(namespace).Resource("units").Name(name).SubResource("forecast").Do(ctx).Into(f)
}

// Forecasts say when the first units of a namespace will be admitted, by namespace/name. Without a namespace they are
// those of all, and with a queue those of one.
func (r *Reader) Forecasts(ctx context.Context, namespace, queue string) (map[string]*visibility.Forecast, error) {
	list := &visibility.ForecastList{}
	req := r.live.Get().Resource("forecasts")
	if namespace != "" {
		req = req.Namespace(namespace)
	}
	if queue != "" {
		req = req.Param("fieldSelector", fields.OneTermEqualSelector("queue", queue).String())
	}
	if err := req.Do(ctx).Into(list); err != nil {
		return nil, err
	}
	all := make(map[string]*visibility.Forecast, len(list.Items))
	for i := range list.Items {
		f := &list.Items[i]
		all[f.Namespace+"/"+f.Name] = f
	}
	return all, nil
}

// LiveUnits are the answers for all units of a namespace, by name.
func (r *Reader) LiveUnits(ctx context.Context, namespace string) (map[string]visibility.Unit, error) {
	units := map[string]visibility.Unit{}
	for token := ""; ; {
		list := &visibility.UnitList{}
		req := r.live.Get().Namespace(namespace).Resource("units").Param("limit", fmt.Sprint(page))
		if token != "" {
			req = req.Param("continue", token)
		}
		if err := req.Do(ctx).Into(list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			list.Items[i].Observation = list.Observation
			units[list.Items[i].Name] = list.Items[i]
		}
		if token = list.Continue; token == "" {
			return units, nil
		}
	}
}

// UnitsPage is a page of units by namespace and name. Without a namespace they are those of all namespaces in which the
// caller may list units. selector is that of the labels, and byField of the fields job, queue, quota and state.
func (r *Reader) UnitsPage(
	ctx context.Context, namespace, selector, byField string, limit int64, token string,
) (*visibility.UnitList, error) {
	req := r.live.Get().Resource("visibleunits")
	if namespace != "" {
		req = r.live.Get().Namespace(namespace).Resource("units")
	}
	for name, value := range map[string]string{
		"labelSelector": selector, "fieldSelector": byField, "continue": token, "limit": fmt.Sprint(limit),
	} {
		if value != "" {
			req = req.Param(name, value)
		}
	}
	list := &visibility.UnitList{}
	return list, req.Do(ctx).Into(list)
}

// Snapshot has the facts that the scheduler decides by. The caller needs the right to read those of all namespaces.
func (r *Reader) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	answer := &visibility.Snapshot{}
	if err := r.live.Get().Resource("snapshots").Name(visibility.SnapshotNow).Do(ctx).Into(answer); err != nil {
		return nil, err
	}
	return snapshot.Read(bytes.NewReader(answer.Document))
}

// LocalQuota is a quota that units of a namespace use. It is nil with an error.
func (r *Reader) LocalQuota(ctx context.Context, namespace, name string) (*visibility.LocalQuota, error) {
	q := &visibility.LocalQuota{}
	if err := r.live.Get().Namespace(namespace).Resource("localquotas").Name(name).Do(ctx).Into(q); err != nil {
		return nil, err
	}
	return q, nil
}

// Line is the beginning of the line of a queue: in full, or, without the right to that, as the namespace may see it.
func (r *Reader) Line(ctx context.Context, namespace, queue string, limit int) (*visibility.WaitingUnitList, error) {
	list := &visibility.WaitingUnitList{}
	ask := func(request *rest.Request) error {
		return request.Name(queue).SubResource("waitingunits").Param("limit", fmt.Sprint(limit)).Do(ctx).Into(list)
	}
	err := ask(r.live.Get().Resource("queues"))
	if apierrors.IsForbidden(err) {
		err = ask(r.live.Get().Namespace(namespace).Resource("localqueues"))
	}
	return list, err
}

// Queues are those that units of a namespace are in, or all of them if it is empty.
func (r *Reader) Queues(ctx context.Context, namespace string) ([]visibility.Queue, error) {
	var queues []visibility.Queue
	for token, first := "", true; first || token != ""; first = false {
		if namespace == "" {
			list := &visibility.QueueList{}
			if err := paged(r.live.Get().Resource("queues"), token).Do(ctx).Into(list); err != nil {
				return nil, err
			}
			queues, token = append(queues, list.Items...), list.Continue
			continue
		}
		list := &visibility.LocalQueueList{}
		if err := paged(r.live.Get().Namespace(namespace).Resource("localqueues"), token).Do(ctx).Into(list); err != nil {
			return nil, err
		}
		for _, q := range list.Items {
			queues = append(queues, visibility.Queue(q))
		}
		token = list.Continue
	}
	return queues, nil
}

// Quotas are the levels of the tree that a namespace uses, or all of them if it is empty.
func (r *Reader) Quotas(ctx context.Context, namespace string) ([]visibility.Quota, error) {
	var quotas []visibility.Quota
	for token := ""; ; {
		var meta metav1.ListMeta
		if namespace == "" {
			list := &visibility.QuotaList{}
			if err := paged(r.live.Get().Resource("quotas"), token).Do(ctx).Into(list); err != nil {
				return nil, err
			}
			quotas, meta = append(quotas, list.Items...), list.ListMeta
		} else {
			list := &visibility.LocalQuotaList{}
			if err := paged(r.live.Get().Namespace(namespace).Resource("localquotas"), token).Do(ctx).Into(list); err != nil {
				return nil, err
			}
			for _, q := range list.Items {
				quotas = append(quotas, visibility.Quota(q))
			}
			meta = list.ListMeta
		}
		if token = meta.Continue; token == "" {
			return quotas, nil
		}
	}
}

// Unanswered names the aggregated API in an error. If the right to ask about all namespaces is missing, it says what
// may be asked without it.
func Unanswered(err error, all bool) error {
	switch {
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("the aggregated API of koord-scheduler does not answer: %w", err)
	case all:
		return fmt.Errorf("%w. Ask with --namespace and without -A, or with the role jobqueue-operator", err)
	}
	return err
}

// Audit is the last audit of the scheduler.
func (r *Reader) Audit(ctx context.Context) (*visibility.Audit, error) {
	audit := &visibility.Audit{}
	return audit, r.live.Get().Resource("audits").Name(visibility.LastAudit).Do(ctx).Into(audit)
}

func paged(req *rest.Request, token string) *rest.Request {
	req = req.Param("limit", fmt.Sprint(page))
	if token != "" {
		req = req.Param("continue", token)
	}
	return req
}
