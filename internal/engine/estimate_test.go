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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const differencesTotal = "scheduler_jobqueue_request_differences_total"

// differences compares the counter with lines of labels and values.
func (r *rig) differences(registry metrics.KubeRegistry, want ...string) {
	r.t.Helper()
	text := ""
	for _, line := range want {
		text += differencesTotal + line + "\n"
	}
	if text != "" {
		text = "# HELP " + differencesTotal + " [ALPHA] Number of admitted units with a pod that asks for more or " +
			"less than was estimated. Only resources that the quota limits are counted.\n" +
			"# TYPE " + differencesTotal + " counter\n" + text
	}
	require.NoError(r.t, testutil.GatherAndCompare(registry, strings.NewReader(text), differencesTotal))
}

func (r *rig) counted(pod *corev1.Pod) {
	request, err := resources.FromQuantities(r.engine.opts.PodRequest(pod))
	require.NoError(r.t, err)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = q.Used.Add(request) })
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.drive.FeedPod(pod, false, false)
	r.step()
	r.sound()
}

// A unit whose pods ask for less than was estimated lets go of the difference, and it is said once.
func TestPodsThatAskForLess(t *testing.T) {
	r := ready(t, 4)
	registry := metrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	r.job("a", "job-a").job("b", "job-b")
	r.unit("a", 4, withConsumer("job-a")) // four pods
	r.step()
	r.send()
	next := r.unit("b", 2, withConsumer("job-b"))
	r.step()
	require.Empty(t, r.decisions(), "all is reserved")

	for _, name := range []string{"a-0", "a-1", "a-2"} {
		r.counted(podFor(name, "job-a", "500m"))
	}
	require.Equal(t, "cpu: 1", r.outstanding(testQuota))
	r.differences(registry, `{direction="less",quota="`+testQuota+`",resource="cpu"} 1`)
	last := podFor("a-3", "job-a", "500m")
	last.Spec.Containers[0].Resources.Requests["example.com/own"] = resource.MustParse("1")
	r.counted(last)
	r.differences(registry, `{direction="less",quota="`+testQuota+`",resource="cpu"} 1`) // others are not limited
	require.Equal(t, next, r.decision().Key.String())
	require.Equal(t, "cpu: 2", r.outstanding(testQuota), "the other unit's")
}

func TestPodsThatAskForMore(t *testing.T) {
	r := ready(t, 10)
	registry := metrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	r.job("a", "job-a")
	r.unit("a", 2, withConsumer("job-a"))
	r.step()
	r.counted(podFor("stranger", "", "5"))
	r.differences(registry)
	r.send()
	r.counted(podFor("a-0", "job-a", "1"))
	r.differences(registry)
	r.counted(podFor("a-1", "job-a", "3"))
	r.differences(registry, `{direction="more",quota="`+testQuota+`",resource="cpu"} 1`)
	require.Equal(t, "", r.outstanding(testQuota))
}

// The request of each pod of a set is known only if the sets add up to the request.
func TestExpectedPods(t *testing.T) {
	sets := func(request string, sets ...any) *objects.Unit {
		return unitFrom(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "namespace": "ns"},
			"spec":     map[string]any{"request": map[string]any{"cpu": request}, "podSet": sets},
		}})
	}
	set := func(name string, count int64, cpu string) map[string]any {
		return map[string]any{"name": name, "count": count, "template": map[string]any{"spec": map[string]any{
			"containers": []any{
				map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}},
			},
		}}}
	}
	one := sets("7", set("main", 2, "1"))
	require.Equal(t, unit.Expected{}, one.Expected(false), "its pods are what somebody says")
	require.Equal(t, "cpu: 3500m", one.Expected(true).Each.String())
	require.EqualValues(t, 2, one.Expected(true).Pods)

	two := sets("7", set("driver", 1, "1"), set("worker", 3, "2"))
	require.Equal(t, "cpu: 2", two.Expected(true).Each.String())
	require.EqualValues(t, 4, two.Expected(true).Pods)
	pod := podFor("p", "job-a", "2")
	require.Nil(t, two.SetOf(pod))
	pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedPodSet: "worker"}
	require.Equal(t, "worker", two.SetOf(pod).Name)

	changed := sets("9", set("driver", 1, "1"), set("worker", 3, "2"))
	require.Zero(t, changed.Expected(true).Each.Len())
	require.EqualValues(t, 4, changed.Expected(true).Pods)
	require.Equal(t, unit.Expected{}, sets("9").Expected(true), "without pods nothing is known")
}
