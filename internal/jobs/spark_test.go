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

package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// Spark makes a pod of the template, and the webhook of spark-operator adds the section. The nodes of the pod, and its
// requests outside of the main container, follow from both.
func TestPodsOfSparkAreWhatItsOperatorMakesOfThem(t *testing.T) {
	kind, ok := jobkind.Find("SparkApplication.v1beta2.sparkoperator.k8s.io")
	require.True(t, ok)
	app := object(t, `
spec:
  mode: cluster
  batchScheduler: koord-scheduler
  nodeSelector: {pool: spark, disk: ssd}
  driver:
    cores: 1
    schedulerName: others
    runtimeClassName: heavy
    terminationGracePeriodSeconds: 7
    nodeSelector: {disk: nvme}
    tolerations: [{key: spot, operator: Exists}]
    initContainers: [{name: fetch, image: a}, {name: warm, image: a}]
    sidecars: [{name: logs, image: a}]
    template:
      spec:
        nodeSelector: {pool: any, zone: z}
        tolerations: [{key: gpu, operator: Exists}]
        initContainers: [{name: fetch, image: a}]
        containers: [{name: main}, {name: logs, image: a}, {name: proxy, image: b}]
  executor: {}
`)
	app.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "sparkoperator.k8s.io", Version: "v1beta2", Kind: "SparkApplication",
	})
	sets, err := Open(kind, app).PodSets()
	require.NoError(t, err)
	driver, executor := &sets[0].Template.Spec, &sets[1].Template.Spec
	names := func(containers []corev1.Container) (names []string) {
		for i := range containers {
			names = append(names, containers[i].Name)
		}
		return names
	}
	require.Equal(t, []corev1.Toleration{{Key: "gpu", Operator: "Exists"}, {Key: "spot", Operator: "Exists"}},
		driver.Tolerations)
	require.Equal(t, map[string]string{"pool": "spark", "disk": "nvme", "zone": "z"}, driver.NodeSelector)
	require.Equal(t, []string{"fetch", "warm"}, names(driver.InitContainers))
	require.Equal(t, []string{"main", "logs", "proxy"}, names(driver.Containers))
	require.Equal(t, "koord-scheduler", driver.SchedulerName)
	require.Equal(t, ptr.To("heavy"), driver.RuntimeClassName)
	require.Equal(t, ptr.To[int64](7), driver.TerminationGracePeriodSeconds)
	require.Equal(t, map[string]string{"pool": "spark", "disk": "ssd"}, executor.NodeSelector)
	require.Empty(t, executor.Tolerations)
}
