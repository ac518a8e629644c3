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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
)

// A unit that does not fit in its quota is admitted in another one of its list. The object names that quota with its
// nodes. The unit holds there while the write is in flight, in a rebuilt state, and in another process. After a loss it
// waits for its first quota again.
func TestAUnitIsAdmittedInAnotherQuotaOfItsList(t *testing.T) {
	const other = "other"
	listed := map[string]any{"quotas": []any{
		map[string]any{"name": testQuota},
		map[string]any{"name": other, "nodeSelector": map[string]any{"card": "h800"}},
	}}
	lists := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(u.Object, []string{testQuota, other}, "spec", "quotas")
	}
	r := newRig(t, quotasOf(4, testQuota, other))
	r.queueWith(testQuota, listed).lead()
	first := r.unit("first", 4, lists)
	r.step()
	r.send()
	require.Nil(t, unitFrom(r.api.get(first)).Choice, "it is in its own quota, which has no nodes of its own")
	key := r.unit("second", 4, lists)
	r.step()
	require.Equal(t, "cpu: 4", r.outstanding(other), "in flight")
	r.engine.core.Discard(recovery.Difference)
	r.step()
	require.Equal(t, "cpu: 4", r.outstanding(other), "rebuilt")
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, other, u.HeldIn)
	require.Equal(t, &v1alpha1.QuotaChoice{
		Name: other, First: testQuota, NodeSelector: map[string]string{"card": "h800"},
	}, u.Choice)
	pod := podFor("p", "", "1")
	require.Contains(t, u.Updates.Lacking(pod, r.engine.facts.checks.Listed), "card=h800")
	pod.Spec.NodeSelector = map[string]string{"card": "h800"}
	require.Empty(t, u.Updates.Lacking(pod, r.engine.facts.checks.Listed))
	r.sound()

	next := rigOn(t, r.api, r.quotas, r.clock)
	next.queueWith(testQuota, listed).feed(first).feed(key).lead()
	next.step()
	require.Equal(t, "cpu: 4", next.outstanding(other))
	info := next.engine.units.Get(key)
	require.Equal(t, testQuota, info.Queue, "its queue is that of its first quota")
	next.sound()

	next.api.edit(key, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	next.feed(key).step()
	next.send()
	require.Empty(t, next.outstanding(other))
	waiting, _, err := unstructured.NestedString(next.api.get(key).Object, "status", "effective", "quota")
	require.NoError(t, err)
	require.Equal(t, testQuota, waiting)
	require.Equal(t, testQuota, next.engine.units.Get(key).Quota)
	require.True(t, unitFrom(next.api.get(key)).AskedWrites, "until templates have it no more")
	next.sound()
}

// A unit that names another quota since is not where it was admitted by its list.
func TestAUnitWithAListIsMovedToAnotherQuota(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota, "other", "third"))
	r.queueWith("q", map[string]any{}).lead()
	of := func(names ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{v1alpha1.LabelQuotaName: names[0]})
			_ = unstructured.SetNestedStringSlice(u.Object, names, "spec", "quotas")
			_ = unstructured.SetNestedField(u.Object, "q", "spec", "queue")
		}
	}
	r.unit("full", 4, of(testQuota))
	r.step()
	r.send()
	key := r.unit("moves", 4, of(testQuota, "other"))
	r.step()
	r.send()
	require.Equal(t, "cpu: 4", r.outstanding("other"))
	r.api.edit(key, of(testQuota, "third"))
	r.feed(key).step()
	require.Empty(t, r.decisions(), "another list has no effect while it holds quota")
	r.api.edit(key, of("third"))
	r.feed(key).step()
	require.Contains(t, string(r.decision().Kind), "evict")
	r.send()
	r.send()
	require.Equal(t, "cpu: 4", r.outstanding("third"))
	require.Nil(t, unitFrom(r.api.get(key)).Choice)
	r.sound()
}
