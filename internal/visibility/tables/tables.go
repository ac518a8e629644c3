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

// Package tables has the columns that `kubectl get` prints of the aggregated API.
package tables

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Table is what `kubectl get` prints of one resource.
type Table struct {
	columns []metav1.TableColumnDefinition
	cells   func(runtime.Object) []any
}

func column(name, kind string) metav1.TableColumnDefinition {
	c := metav1.TableColumnDefinition{Name: name, Type: kind}
	if name == "Name" {
		c.Format = "name"
	}
	return c
}

// Queues has the columns of these resources.
var Queues = Table{
	columns: []metav1.TableColumnDefinition{
		column("Name", "string"), column("Policy", "string"), column("Priority", "integer"),
		column("Pending", "integer"), column("Parked", "integer"), column("Admitted", "integer"),
	},
	cells: func(o runtime.Object) []any {
		var name string
		var s *v1alpha1.QueueStatus
		switch q := o.(type) {
		case *v1alpha1.Queue:
			name, s = q.Name, &q.Status
		case *v1alpha1.LocalQueue:
			name, s = q.Name, &q.Status
		default:
			return nil
		}
		return []any{name, s.Policy, int64(s.Priority), int64(s.Pending), int64(s.Parked), int64(s.Admitted)}
	},
}

// Quotas has the columns of these resources.
var Quotas = Table{
	columns: []metav1.TableColumnDefinition{
		column("Name", "string"), column("Parent", "string"), column("Holding", "integer"), column("Waiting", "integer"),
	},
	cells: func(o runtime.Object) []any {
		var name string
		var s *v1alpha1.QuotaStatus
		switch q := o.(type) {
		case *v1alpha1.Quota:
			name, s = q.Name, &q.Status
		case *v1alpha1.LocalQuota:
			name, s = q.Name, &q.Status
		default:
			return nil
		}
		return []any{name, s.Parent, int64(s.Holding), int64(s.Waiting)}
	},
}

// Units has the columns of these resources.
var Units = Table{
	columns: []metav1.TableColumnDefinition{
		column("Name", "string"), column("Phase", "string"), column("Queue", "string"), column("Quota", "string"),
		column("Position", "integer"), column("Reason", "string"),
	},
	cells: func(o runtime.Object) []any {
		u, ok := o.(*v1alpha1.Unit)
		if !ok {
			return nil
		}
		s := &u.Status
		return []any{u.Name, s.Phase, s.Queue, s.Quota, int64(s.Position), s.Reason}
	},
}

// Records has the columns of these resources.
var Records = Table{
	columns: []metav1.TableColumnDefinition{
		column("Time", "date"), column("Event", "string"), column("Unit", "string"), column("Queue", "string"),
		column("Quota", "string"), column("Attempt", "integer"), column("Reason", "string"),
	},
	cells: func(o runtime.Object) []any {
		r, ok := o.(*v1alpha1.Record)
		if !ok {
			return nil
		}
		return []any{r.Time.UTC().Format(timeFormat), string(r.Event), r.Unit, r.Queue, r.Quota, r.Attempt, r.Reason}
	},
}

// Forecasts has the columns of these resources.
var Forecasts = Table{
	columns: []metav1.TableColumnDefinition{
		column("Name", "string"), column("About", "string"), column("Latest", "string"),
	},
	cells: func(o runtime.Object) []any {
		f, ok := o.(*v1alpha1.Forecast)
		if !ok {
			return nil
		}
		return []any{f.Name, textOf(f.Status.About), textOf(f.Status.Latest)}
	},
}

// Audits has the columns of these resources.
var Audits = Table{
	columns: []metav1.TableColumnDefinition{
		column("Name", "string"), column("At", "date"), column("Found", "integer"),
	},
	cells: func(o runtime.Object) []any {
		a, ok := o.(*v1alpha1.Audit)
		if !ok || a.Status == nil {
			return nil
		}
		return []any{a.Name, a.Status.At.UTC().Format(timeFormat), int64(a.Status.Found)}
	},
}

const timeFormat = "2006-01-02T15:04:05Z"

// ConvertToTable implements rest.TableConvertor.
func (t Table) ConvertToTable(_ context.Context, from runtime.Object, _ runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{ColumnDefinitions: t.columns}
	row := func(o runtime.Object) error {
		if cells := t.cells(o); cells != nil {
			out.Rows = append(out.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: o}})
		}
		return nil
	}
	if !meta.IsListType(from) {
		return out, row(from)
	}
	if list, err := meta.ListAccessor(from); err == nil {
		out.Continue, out.RemainingItemCount = list.GetContinue(), list.GetRemainingItemCount()
	}
	return out, meta.EachListItem(from, row)
}

func textOf(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(timeFormat)
}
