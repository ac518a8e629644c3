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

package visibility

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// resourcesOf are all resources of the API by their paths.
func resourcesOf(r *Reader) map[string]rest.Storage {
	return map[string]rest.Storage{
		"queues":                   queues(r),
		"queues/waitingunits":      waitingUnits(r),
		"quotas":                   quotas(r),
		"quotas/units":             unitsOfQuota(r),
		"audits":                   auditsOf(r),
		"units":                    units(r),
		"units/full":               fullUnits(r),
		"units/forecast":           &single{object: &v1alpha1.Forecast{}, get: r.forecasts.get},
		"forecasts":                newForecastLists(r.forecasts),
		"localqueues":              localQueues(r),
		"localqueues/waitingunits": localWaitingUnits(r),
		"localquotas":              localQuotas(r),
		"localquotas/units":        unitsOfLocalQuota(r),
		"records":                  &records{reader: r, table: recordTable},
		"snapshots":                &snapshots{reader: r, turn: make(chan struct{}, 1)},
	}
}

func queues(r *Reader) *storage {
	return &storage{
		singular: "queue", object: &v1alpha1.Queue{}, items: &v1alpha1.QueueList{}, table: queueTable,
		get: func(ctx context.Context, _, name string) (runtime.Object, error) { return object(r.Queue(ctx, name)) },
		list: func(ctx context.Context, _ string, page namesPage) (runtime.Object, error) {
			return object(r.Queues(ctx, page))
		},
	}
}

func localQueues(r *Reader) *storage {
	return &storage{
		singular: "localqueue", namespaced: true, object: &v1alpha1.LocalQueue{}, items: &v1alpha1.LocalQueueList{},
		table: queueTable,
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.LocalQueue(ctx, namespace, name))
		},
		list: func(ctx context.Context, namespace string, page namesPage) (runtime.Object, error) {
			return object(r.LocalQueues(ctx, namespace, page))
		},
	}
}

func waitingUnits(r *Reader) *pages {
	return &pages{
		items: &v1alpha1.WaitingUnitList{},
		get: func(ctx context.Context, _, name string, page placesPage) (runtime.Object, error) {
			return object(r.Line(ctx, name, page))
		},
	}
}

func localWaitingUnits(r *Reader) *pages {
	return &pages{
		items: &v1alpha1.WaitingUnitList{},
		get: func(ctx context.Context, namespace, name string, page placesPage) (runtime.Object, error) {
			return object(r.LocalLine(ctx, namespace, name, page))
		},
	}
}

func quotas(r *Reader) *storage {
	return &storage{
		singular: "quota", object: &v1alpha1.Quota{}, items: &v1alpha1.QuotaList{}, table: quotaTable,
		get: func(ctx context.Context, _, name string) (runtime.Object, error) { return object(r.Quota(ctx, name)) },
		list: func(ctx context.Context, _ string, page namesPage) (runtime.Object, error) {
			return object(r.Quotas(ctx, page))
		},
	}
}

func localQuotas(r *Reader) *storage {
	return &storage{
		singular: "localquota", namespaced: true, object: &v1alpha1.LocalQuota{}, items: &v1alpha1.LocalQuotaList{},
		table: quotaTable,
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.LocalQuota(ctx, namespace, name))
		},
		list: func(ctx context.Context, namespace string, page namesPage) (runtime.Object, error) {
			return object(r.LocalQuotas(ctx, namespace, page))
		},
	}
}

func unitsOfQuota(r *Reader) *pages {
	return &pages{
		items: &v1alpha1.UnitList{},
		get: func(ctx context.Context, _, name string, page placesPage) (runtime.Object, error) {
			return object(r.UnitsOfQuota(ctx, name, page))
		},
	}
}

func unitsOfLocalQuota(r *Reader) *pages {
	return &pages{
		items: &v1alpha1.UnitList{},
		get: func(ctx context.Context, namespace, name string, page placesPage) (runtime.Object, error) {
			return object(r.UnitsOfLocalQuota(ctx, namespace, name, page))
		},
	}
}

func units(r *Reader) *storage {
	return &storage{
		singular: "unit", namespaced: true, object: &v1alpha1.Unit{}, items: &v1alpha1.UnitList{}, table: unitTable,
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.Unit(ctx, namespace, name))
		},
		list: func(ctx context.Context, namespace string, page namesPage) (runtime.Object, error) {
			return object(r.Units(ctx, namespace, page))
		},
	}
}

func fullUnits(r *Reader) *single {
	return &single{
		object: &v1alpha1.Unit{},
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.FullUnit(ctx, namespace, name))
		},
	}
}

func auditsOf(r *Reader) *audits {
	return &audits{
		storage: storage{
			singular: "audit", object: &v1alpha1.Audit{}, items: &v1alpha1.AuditList{}, table: auditTable,
			get: func(ctx context.Context, _, name string) (runtime.Object, error) {
				if name != v1alpha1.LastAudit {
					return nil, notFound("audits", name)
				}
				return object(r.Audit(ctx))
			},
			list: func(ctx context.Context, _ string, _ namesPage) (runtime.Object, error) { return object(r.Audits(ctx)) },
		},
		create: func(ctx context.Context) (runtime.Object, error) { return object(r.RequestAudit(ctx)) },
	}
}

// object keeps a nil pointer from becoming an object.
func object[T runtime.Object](answer T, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return answer, nil
}
