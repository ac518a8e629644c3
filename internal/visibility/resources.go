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
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/sight"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/tables"
)

// resourcesOf are all resources of the API by their paths.
func resourcesOf(r *Reader, sees *sight.Sight) map[string]rest.Storage {
	return map[string]rest.Storage{
		"queues":                   queues(r),
		"queues/waitingunits":      waitingUnits(r),
		"quotas":                   quotas(r),
		"quotas/units":             unitsOfQuota(r),
		"audits":                   auditsOf(r),
		"units":                    units(r),
		"visibleunits":             visibleUnits(&unitLists{reader: r, sees: sees}),
		"units/full":               fullUnits(r),
		"units/forecast":           &single{object: &v1alpha1.Forecast{}, get: r.forecasts.get},
		"forecasts":                newForecastLists(r.forecasts),
		"localqueues":              localQueues(r),
		"localqueues/waitingunits": localWaitingUnits(r),
		"localquotas":              localQuotas(r),
		"localquotas/units":        unitsOfLocalQuota(r),
		"records":                  transitions(records{r}),
		"snapshots":                &snapshots{reader: r, turn: make(chan struct{}, 1)},
	}
}

func queues(r *Reader) *storage {
	return &storage{
		lists: lists{
			singular: "queue", object: &v1alpha1.Queue{}, items: &v1alpha1.QueueList{}, Table: tables.Queues,
			list: byName(false, func(ctx context.Context, _ string, page namesPage) (runtime.Object, error) {
				return object(r.Queues(ctx, page))
			}),
		},
		get: func(ctx context.Context, _, name string) (runtime.Object, error) { return object(r.Queue(ctx, name)) },
	}
}

func localQueues(r *Reader) *storage {
	return &storage{
		lists: lists{
			singular: "localqueue", namespaced: true, object: &v1alpha1.LocalQueue{}, items: &v1alpha1.LocalQueueList{},
			Table: tables.Queues,
			list: byName(true, func(ctx context.Context, namespace string, page namesPage) (runtime.Object, error) {
				return object(r.LocalQueues(ctx, namespace, page))
			}),
		},
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.LocalQueue(ctx, namespace, name))
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
		lists: lists{
			singular: "quota", object: &v1alpha1.Quota{}, items: &v1alpha1.QuotaList{}, Table: tables.Quotas,
			list: byName(false, func(ctx context.Context, _ string, page namesPage) (runtime.Object, error) {
				return object(r.Quotas(ctx, page))
			}),
		},
		get: func(ctx context.Context, _, name string) (runtime.Object, error) { return object(r.Quota(ctx, name)) },
	}
}

func localQuotas(r *Reader) *storage {
	return &storage{
		lists: lists{
			singular: "localquota", namespaced: true, object: &v1alpha1.LocalQuota{}, items: &v1alpha1.LocalQuotaList{},
			Table: tables.Quotas,
			list: byName(true, func(ctx context.Context, namespace string, page namesPage) (runtime.Object, error) {
				return object(r.LocalQuotas(ctx, namespace, page))
			}),
		},
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.LocalQuota(ctx, namespace, name))
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
		lists: lists{
			singular: "unit", namespaced: true, object: &v1alpha1.Unit{}, items: &v1alpha1.UnitList{}, Table: tables.Units,
			list: (&unitLists{reader: r}).list,
		},
		get: func(ctx context.Context, namespace, name string) (runtime.Object, error) {
			return object(r.Unit(ctx, namespace, name))
		},
	}
}

// visibleUnits are the units of all namespaces in which the user may list units. Every user may list them.
func visibleUnits(l *unitLists) *lists {
	return &lists{
		singular: "visibleunit", object: &v1alpha1.Unit{}, items: &v1alpha1.UnitList{}, Table: tables.Units,
		list: l.list,
	}
}

// transitions are listed alone.
func transitions(of records) *lists {
	return &lists{
		singular: "record", namespaced: true, object: &v1alpha1.Record{}, items: &v1alpha1.RecordList{},
		Table: tables.Records, list: of.list,
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
			lists: lists{
				singular: "audit", object: &v1alpha1.Audit{}, items: &v1alpha1.AuditList{}, Table: tables.Audits,
				list: byName(false, func(ctx context.Context, _ string, _ namesPage) (runtime.Object, error) {
					return object(r.Audits(ctx))
				}),
			},
			get: func(ctx context.Context, _, name string) (runtime.Object, error) {
				if name != v1alpha1.LastAudit {
					return nil, notFound("audits", name)
				}
				return object(r.Audit(ctx))
			},
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
