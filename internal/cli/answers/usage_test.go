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

package answers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

func TestUsage(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(hours float64) time.Time { return from.Add(time.Duration(hours * float64(time.Hour))) }
	cpu := func(n string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(n)} }
	record := func(hours float64, event visibility.RecordEvent, uid string, held corev1.ResourceList) visibility.Record {
		return visibility.Record{
			ObjectMeta: metav1.ObjectMeta{Namespace: "red"}, Time: metav1.NewMicroTime(at(hours)), Event: event, UID: uid,
			Quota: "q", Held: held,
		}
	}
	ended := record(3, visibility.RecordSucceeded, "began-before", cpu("2"))
	ended.Ran = &metav1.Duration{Duration: 10 * time.Hour}
	resized := record(4, visibility.RecordResized, "elastic", cpu("1"))
	resized.HeldBefore = cpu("8")
	unit := func(uid string, phase v1alpha1.QueueUnitPhase, allocated time.Time) v1alpha1.QueueUnit {
		since := metav1.NewTime(allocated)
		return v1alpha1.QueueUnit{
			ObjectMeta: metav1.ObjectMeta{Namespace: "red", UID: types.UID(uid)},
			Status: v1alpha1.QueueUnitStatus{
				Phase: phase, LastAllocateTime: &since, Effective: &v1alpha1.Effective{Quota: "q"},
				Admissions: []v1alpha1.Admission{{Resources: cpu("1")}, {Resources: cpu("2")}},
			},
		}
	}
	for name, test := range map[string]struct {
		records []visibility.Record
		units   []v1alpha1.QueueUnit
		hours   float64
	}{
		"whole": {records: []visibility.Record{
			record(1, visibility.RecordEnqueued, "a", nil), record(1, visibility.RecordReserved, "a", cpu("4")),
			record(2, visibility.RecordAdmitted, "a", cpu("4")), record(2, visibility.RecordRunning, "a", cpu("4")),
			record(3.5, visibility.RecordFailed, "a", cpu("4")),
		}, hours: 10},
		"evicted and admitted again": {records: []visibility.Record{
			record(1, visibility.RecordAdmitted, "a", cpu("4")), record(2, visibility.RecordEvicted, "a", cpu("4")),
			record(5, visibility.RecordAdmitted, "a", cpu("4")), record(7, visibility.RecordDeleted, "a", cpu("4")),
		}, hours: 12},
		"began before": {records: []visibility.Record{ended}, hours: 6},
		"resized, began before": {
			records: []visibility.Record{resized}, units: []v1alpha1.QueueUnit{unit("elastic", "Running", at(-5))},
			hours: 4*8 + 6,
		},
		"runs, not in the record": {
			units: []v1alpha1.QueueUnit{unit("a", "Running", at(8)), unit("b", "Enqueued", at(1))}, hours: 6,
		},
		"runs": {
			records: []visibility.Record{record(9, visibility.RecordAdmitted, "a", cpu("5"))},
			units:   []v1alpha1.QueueUnit{unit("a", "Running", at(9))}, hours: 5,
		},
		"its end was missed": {records: []visibility.Record{record(1, visibility.RecordAdmitted, "a", cpu("5"))}},
	} {
		t.Run(name, func(t *testing.T) {
			found := UsageOf(test.records, test.units, from, at(10))
			if test.hours == 0 {
				require.Empty(t, found)
				return
			}
			require.Equal(t, []Usage{{
				Quota: "q", Namespace: "red", Jobs: 1, Hours: map[corev1.ResourceName]float64{"cpu": test.hours},
			}}, found)
			require.Equal(t, []corev1.ResourceName{"cpu"}, Resources(found))
		})
	}
}

func TestTakeRecords(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	record := func(seconds int, kind string) visibility.Record {
		return visibility.Record{Time: metav1.NewMicroTime(begin.Add(time.Duration(seconds) * time.Second)), Kind: kind}
	}
	page := []visibility.Record{record(3, "Job.v1.batch"), record(2, "RayJob.v1.ray.io"), record(1, "Job.v1.batch")}
	for name, test := range map[string]struct {
		query       RecordQuery
		kind        string
		n           int
		done, older bool
	}{
		"all":           {n: 3},
		"since":         {query: RecordQuery{Since: begin.Add(2 * time.Second)}, n: 2, done: true},
		"limit":         {query: RecordQuery{Limit: 1}, n: 1, done: true, older: true},
		"limit reached": {query: RecordQuery{Limit: 3}, n: 3},
		"kind":          {kind: "job", n: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Records{}
			require.Equal(t, test.done, f.take(page, &test.query, test.kind))
			require.Len(t, f.Items, test.n)
			require.Equal(t, test.older, f.Older)
		})
	}
}
