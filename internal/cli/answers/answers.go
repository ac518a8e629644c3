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
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
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
	objects, err := client.New(config, client.Options{Scheme: scheme})
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

// Units returns all QueueUnits of a namespace, or of all namespaces if it is empty.
func (r *Reader) Units(ctx context.Context, namespace string) ([]v1alpha1.QueueUnit, error) {
	var units []v1alpha1.QueueUnit
	for token := ""; ; {
		list := &v1alpha1.QueueUnitList{}
		err := r.Objects.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(token))
		if err != nil {
			return nil, err
		}
		units = append(units, list.Items...)
		if token = list.Continue; token == "" {
			return units, nil
		}
	}
}

// Unit returns the QueueUnit of a job. The job is NAME or KIND/NAME; NAME may be that of the unit, too. It is an error
// if several jobs have the name.
func (r *Reader) Unit(ctx context.Context, namespace, job string) (*v1alpha1.QueueUnit, error) {
	units, err := r.Units(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return find(units, namespace, job)
}

func find(units []v1alpha1.QueueUnit, namespace, job string) (*v1alpha1.QueueUnit, error) {
	kind, name, typed := strings.Cut(job, "/")
	if !typed {
		kind, name = "", job
	}
	var of, named []*v1alpha1.QueueUnit
	for i := range units {
		u := &units[i]
		ref := u.Spec.ConsumerRef
		if ref != nil && ref.Name == name && (kind == "" || strings.EqualFold(ref.Kind, kind)) {
			of = append(of, u)
		}
		if kind == "" && u.Name == name {
			named = append(named, u)
		}
	}
	switch {
	case len(of) == 1:
		return of[0], nil
	case len(of) > 1:
		return nil, fmt.Errorf("several jobs in namespace %q have that name; choose one of: %s", namespace, jobsOf(of))
	case len(named) == 1:
		return named[0], nil
	}
	return nil, fmt.Errorf("no QueueUnit in namespace %q stands for job %q: is it of a managed kind, with a quota label "+
		"or a queue name?", namespace, job)
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
