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

package quota

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sfeature "k8s.io/apiserver/pkg/util/feature"
	"pgregory.net/rapid"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/features"
	utilfeature "github.com/koordinator-sh/koordinator/pkg/util/feature"

	queuev1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// A job is charged to the same quota as its pods in ElasticQuota. If that quota does not exist, the queue says so,
// while ElasticQuota uses the default quota. Each check of rapid compares twenty objects.
func TestAJobIsChargedToTheQuotaOfItsPods(t *testing.T) {
	live := newRealPlugin(t)
	for _, disabled := range []bool{false, true} {
		t.Run(fmt.Sprintf("DisableDefaultQuota=%v", disabled), func(t *testing.T) {
			defer utilfeature.SetFeatureGateDuringTest(t, k8sfeature.DefaultMutableFeatureGate,
				features.DisableDefaultQuota, disabled)()
			asked := map[string]int{}
			effort.Check(t, func(t *rapid.T) {
				quotas := drawMapping(t)
				adapter := live.hooked(t, slices.Collect(maps.Values(quotas))...)
				for i := range 20 {
					namespace, labels := drawObject(t)
					got := adapter.Resolve(namespace, labels)
					want, class := chargedTo(live, i, namespace, labels), "to an existing quota"
					if _, exists := quotas[got]; !exists && got != extension.DefaultQuotaName {
						// ElasticQuota falls back; the job is parked, because its quota is unknown.
						class = "to an unknown quota"
						if got == "" {
							class = "to none"
						}
						require.Contains(t, []string{"", extension.DefaultQuotaName}, want)
						require.Equal(t, disabled, want == "")
					} else {
						require.Equal(t, want, got, "namespace %s, labels %v", namespace, labels)
						if got == extension.DefaultQuotaName {
							class = "to the default quota"
						}
					}
					asked[class]++
				}
			})
			t.Log(asked)
			require.NotZero(t, asked["to an existing quota"])
			require.NotZero(t, asked["to an unknown quota"])
			require.NotZero(t, asked[map[bool]string{true: "to none", false: "to the default quota"}[disabled]])
		})
	}
}

// Names of quotas and of namespaces are the same ones, so that they meet.
var mappingNames = []string{"one", "two", "three", "four"}

// drawMapping draws quotas in their own and in other namespaces, some of which take further namespaces by annotation. A
// namespace is in at most one annotation: of two, ElasticQuota takes either.
func drawMapping(t *rapid.T) map[string]*v1alpha1.ElasticQuota {
	quotas := map[string]*v1alpha1.ElasticQuota{}
	free := slices.Clone(mappingNames)
	for _, name := range mappingNames {
		if rapid.Bool().Draw(t, name+" exists") {
			q := elasticQuota(name, "0", "10")
			q.Namespace = rapid.SampledFrom(append([]string{name, name}, mappingNames...)).Draw(t, "namespace of "+name)
			var taken []string
			for len(free) > 0 && rapid.Bool().Draw(t, "takes another") {
				taken, free = append(taken, free[0]), free[1:]
			}
			raw, err := json.Marshal(taken)
			require.NoError(t, err)
			q.Annotations = map[string]string{extension.AnnotationQuotaNamespaces: string(raw)}
			if len(taken) == 0 && rapid.Bool().Draw(t, "unreadable") {
				q.Annotations[extension.AnnotationQuotaNamespaces] = "one,two"
			}
			quotas[name] = q
		}
	}
	return quotas
}

func drawObject(t *rapid.T) (namespace string, labels map[string]string) {
	names := append([]string{extension.DefaultQuotaName, "nobody", ""}, mappingNames...)
	labels = map[string]string{"app": "x"}
	for _, key := range []string{
		queuev1alpha1.LabelQuotaName, queuev1alpha1.LabelQuotaNameFallback1, queuev1alpha1.LabelQuotaNameFallback2,
	} {
		if rapid.SampledFrom([]int{0, 0, 1}).Draw(t, key) == 1 {
			labels[key] = rapid.SampledFrom(names).Draw(t, "quota name")
		}
	}
	return rapid.SampledFrom(append([]string{"elsewhere"}, mappingNames...)).Draw(t, "namespace"), labels
}

// chargedTo gives ElasticQuota a pod as the controller makes it of a job with these labels, and looks where it counts.
func chargedTo(live *realPlugin, i int, namespace string, labels map[string]string) string {
	labels = maps.Clone(labels)
	for _, key := range []string{queuev1alpha1.LabelQuotaNameFallback1, queuev1alpha1.LabelQuotaNameFallback2} {
		if labels[queuev1alpha1.LabelQuotaName] == "" && labels[key] != "" {
			labels[queuev1alpha1.LabelQuotaName] = labels[key]
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("pod-%d", i), Labels: labels}}
	live.OnPodAdd(pod)
	mgr := live.GetGroupQuotaManagerForTree("")
	for name := range mgr.GetAllQuotaNames() {
		if mgr.GetQuotaInfoByName(name).IsPodExist(pod) {
			return name
		}
	}
	return ""
}

func TestANamespaceThatIsMappedElsewhereIsTold(t *testing.T) {
	mapped := func(namespaces string) quotaOption {
		return func(q *v1alpha1.ElasticQuota) {
			q.Annotations = map[string]string{extension.AnnotationQuotaNamespaces: namespaces, extension.AnnotationRequest: "{}"}
		}
	}
	live := newRealPlugin(t)
	one := elasticQuota("one", "0", "10", mapped(`["a"]`))
	adapter := live.hooked(t, one)
	require.Equal(t, "one", adapter.Resolve("a", nil))
	sink := &recordingSink{}
	adapter.Subscribe(sink)

	both := elasticQuota("one", "0", "10", mapped(`["a","b"]`))
	live.setQuota(t, both)
	adapter.onQuota(one, both)
	require.Equal(t, 1, sink.mappings)
	require.Equal(t, "one", adapter.Resolve("b", nil))

	status := both.DeepCopy()
	status.Annotations[extension.AnnotationRequest] = `{"cpu":"1"}`
	adapter.onQuota(both, status)
	require.Equal(t, 1, sink.mappings, "a status is not a mapping")
	live.deleteQuota(t, both)
	adapter.onQuota(both, nil)
	require.Equal(t, 2, sink.mappings)
}
