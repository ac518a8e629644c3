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

package unitbook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// recorded is a unit of a job, or of none if it is "".
func recorded(name, job string, change ...func(*objects.Unit)) *objects.Unit {
	u := &objects.Unit{History: &objects.History{}, Path: "team/" + name, Quota: "team-quota"}
	u.Namespace, u.Name, u.UID = "team", name, types.UID("uid-"+name)
	u.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	u.HasConsumer, u.Consumer.UID = job != "", job
	for _, f := range change {
		f(u)
	}
	return u
}

// byAnnotation is what pods name where nothing is managed.
var byAnnotation = (*managedjobs.Predicate)(nil).UnitNamedBy

func TestRecordsFindUnitsByWhatTheirAnswerDependsOn(t *testing.T) {
	r := newTestRecords()
	priority := int32(1)
	a := r.Add(recorded("a", "", func(u *objects.Unit) { u.Quota, u.Class = "", "high" }))
	r.Add(recorded("b", "", func(u *objects.Unit) { u.Phase = unit.PhaseDequeued }))
	r.Add(recorded("c", "", func(u *objects.Unit) { u.Priority = &priority }))
	require.Equal(t, []string{"team/a", "team/b", "team/c"}, r.Keys())
	require.Equal(t, []string{"team/a"}, r.Unlabelled())
	require.Equal(t, []string{"team/b"}, r.Holders())
	require.Equal(t, []string{"team/a"}, r.OfClass("high", false))
	require.Equal(t, []string{"team/a", "team/b"}, r.OfClass("high", true),
		"b has the default, which may follow from a class")
	r.NoteResolved("team/a", false)
	require.Equal(t, []string{"team/a"}, r.Unresolved())

	r.Replace(a, recorded("a", "", func(u *objects.Unit) { u.Class, u.Phase = "low", unit.PhaseRunning }))
	require.Empty(t, r.Unlabelled())
	require.Empty(t, r.Unresolved())
	require.Empty(t, r.OfClass("high", false))
	require.Equal(t, []string{"team/a"}, r.OfClass("low", false))
	require.Equal(t, []string{"team/a", "team/b"}, r.Holders())
	for _, key := range r.Keys() {
		r.Remove(r.Get(key))
	}
	require.False(t, r.listing.names.Has("team"))
	r.unitNamedBy, r.listing.names = nil, ordered.Names{} // functions cannot be compared
	want := New(nil, nil, nil, kinship.New())
	want.listing.names = ordered.Names{}
	require.Equal(t, want, r, "nothing is left of what went")
}

func TestUnitsOfOneJobAreCounted(t *testing.T) {
	r := newTestRecords()
	var list []*Record
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, r.Add(recorded(name, "job")))
	}
	r.Publish(list[2])
	known, published := r.Published("job")
	require.False(t, known || published, "they do not stand for a job of a managed kind")
	for _, rec := range list {
		r.Resolved(rec, &unit.Unit{ConsumerManaged: true})
	}
	known, published = r.Published("job")
	require.True(t, known && published)
	r.Resolved(list[2], &unit.Unit{ConsumerManaged: true, Misnamed: true})
	known, published = r.Published("job")
	require.True(t, known && !published, "another unit is that of the job")
	r.Resolved(list[2], &unit.Unit{ConsumerManaged: true})
	r.Withdraw(list[2])
	known, published = r.Published("job")
	require.True(t, known && !published)
	for _, rec := range list {
		r.Remove(rec)
	}
	require.Empty(t, r.byConsumer)
	require.Nil(t, noActivity.Flight, "what all share is not written")
}

// newTestRecords are records without a core.
func newTestRecords() *Book { return New(nil, nil, byAnnotation, kinship.New()) }

func TestAPodMayNameAUnitWithoutConsumerOnly(t *testing.T) {
	r := newTestRecords()
	r.Add(recorded("free", ""))
	r.Add(recorded("taken", "job"))
	naming := func(key string) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "team", "p"
		pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: key}
		return pod
	}
	require.Equal(t, "team/free", r.UnitOf(naming("team/free")))
	require.Empty(t, r.UnitOf(naming("team/taken")))
	left := naming("team/taken")
	left.Spec.NodeName = "node"
	require.Equal(t, "team/taken", r.UnitOf(left), "its owner has gone, and it runs")
	require.True(t, r.LeftBehind(left), "so it is none of those that the unit waits for")
	require.False(t, r.LeftBehind(naming("team/free")))
	left.Namespace = "elsewhere"
	require.Empty(t, r.UnitOf(left))
	stranger := naming("team/free")
	stranger.Namespace = "elsewhere"
	require.Empty(t, r.UnitOf(stranger))
}
