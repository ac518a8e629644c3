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

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
)

// recorded is a unit of a job, or of none if it is "".
func recorded(name, job string, change ...func(*objects.Unit)) *objects.Unit {
	u := &objects.Unit{History: &objects.History{}, Path: testNamespace + "/" + name, Quota: testQuota}
	u.Namespace, u.Name, u.UID = testNamespace, name, types.UID("uid-"+name)
	u.CreationTimestamp = metav1.NewTime(testStart)
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
	a := r.add(recorded("a", "", func(u *objects.Unit) { u.Quota, u.Class = "", "high" }))
	r.add(recorded("b", "", func(u *objects.Unit) { u.Phase = unit.PhaseDequeued }))
	r.add(recorded("c", "", func(u *objects.Unit) { u.Priority = &priority }))
	require.Equal(t, []string{"team/a", "team/b", "team/c"}, r.keys())
	require.Equal(t, []string{"team/a"}, r.unlabelled())
	require.Equal(t, []string{"team/b"}, r.holders())
	require.Equal(t, []string{"team/a"}, r.ofClass("high", false))
	require.Equal(t, []string{"team/a", "team/b"}, r.ofClass("high", true),
		"b has the default, which may follow from a class")
	r.noteResolved("team/a", false)
	require.Equal(t, []string{"team/a"}, r.unresolved())

	r.replace(a, recorded("a", "", func(u *objects.Unit) { u.Class, u.Phase = "low", unit.PhaseRunning }))
	require.Empty(t, r.unlabelled())
	require.Empty(t, r.unresolved())
	require.Empty(t, r.ofClass("high", false))
	require.Equal(t, []string{"team/a"}, r.ofClass("low", false))
	require.Equal(t, []string{"team/a", "team/b"}, r.holders())
	for _, key := range r.keys() {
		r.remove(r.get(key))
	}
	r.unitNamedBy = nil // functions cannot be compared
	require.Equal(t, newRecords(nil, nil, nil, kinship.New()), r, "nothing is left of what went")
}

func TestUnitsOfOneJobAreCounted(t *testing.T) {
	r := newTestRecords()
	var list []*unitRecord
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, r.add(recorded(name, "job")))
	}
	r.publish(list[2])
	known, published := r.published("job")
	require.False(t, known || published, "they do not stand for a job of a managed kind")
	for _, rec := range list {
		r.resolved(rec, &unit.Unit{ConsumerManaged: true})
	}
	known, published = r.published("job")
	require.True(t, known && published)
	r.resolved(list[2], &unit.Unit{ConsumerManaged: true, Misnamed: true})
	known, published = r.published("job")
	require.True(t, known && !published, "another unit is that of the job")
	r.resolved(list[2], &unit.Unit{ConsumerManaged: true})
	r.withdraw(list[2])
	known, published = r.published("job")
	require.True(t, known && !published)
	for _, rec := range list {
		r.remove(rec)
	}
	require.Empty(t, r.byConsumer)
	require.Nil(t, noActivity.flight, "what all share is not written")
}

// newTestRecords are records without a core.
func newTestRecords() *records { return newRecords(nil, nil, byAnnotation, kinship.New()) }

// Which unit a pod names follows from what is managed, which changes while pods are there.
func TestPodsAreFoundByTheGroupThatTheyNameNow(t *testing.T) {
	r := ready(t, 10)
	pod := podFor("p", "", "4")
	pod.Labels = map[string]string{v1alpha1.LabelQuotaName: testQuota}
	pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: testNamespace + "/other"}
	r.engine.FeedPod(pod, false, false)
	r.step()
	require.Len(t, r.engine.pods.index.byName[testNamespace+"/other"], 1)

	m, err := managedjobs.Parse("kinds: [Pod.v1.]")
	require.NoError(t, err)
	groups, err := managedjobs.NewPredicate(m)
	require.NoError(t, err)
	before := r.engine.managed.Swap(groups)
	plain := pod.DeepCopy()
	plain.Annotations = nil
	r.engine.FeedPod(plain, false, false)
	r.step()
	require.Len(t, r.engine.pods.index.byName, 1)
	require.Len(t, r.engine.pods.index.byName[testNamespace+"/p-pods"], 1)

	r.engine.managed.Store(before)
	r.engine.pods.nameAgain()
	require.Empty(t, r.engine.pods.index.byName)
	r.engine.managed.Store(groups)
	r.engine.pods.nameAgain()
	require.Len(t, r.engine.pods.index.byName[testNamespace+"/p-pods"], 1)
	r.engine.FeedPod(plain, true, false)
	r.step()
	require.Empty(t, r.engine.pods.index.byName, "nothing is left of a pod that went")
}

func TestAPodMayNameAUnitWithoutConsumerOnly(t *testing.T) {
	r := newTestRecords()
	r.add(recorded("free", ""))
	r.add(recorded("taken", "job"))
	naming := func(key string) *corev1.Pod {
		pod := podFor("p", "", "1")
		pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: key}
		return pod
	}
	require.Equal(t, "team/free", r.unitOf(naming("team/free")))
	require.Empty(t, r.unitOf(naming("team/taken")))
	left := naming("team/taken")
	left.Spec.NodeName = "node"
	require.Equal(t, "team/taken", r.unitOf(left), "its owner has gone, and it runs")
	require.True(t, r.leftBehind(left), "so it is none of those that the unit waits for")
	require.False(t, r.leftBehind(naming("team/free")))
	left.Namespace = "elsewhere"
	require.Empty(t, r.unitOf(left))
	stranger := naming("team/free")
	stranger.Namespace = "elsewhere"
	require.Empty(t, r.unitOf(stranger))
}
