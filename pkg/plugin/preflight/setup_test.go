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

package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	_ "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config/scheme"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	_ "github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue" // the arguments in the scheduler's scheme
)

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"

func inspect(t *testing.T, profiles string) (Setup, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(header+profiles), 0o600))
	cfg, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		return Setup{}, err
	}
	return Inspect(cfg, false)
}

const complete1 = `
- schedulerName: one
  plugins:
    preEnqueue: {enabled: [{name: JobQueue}]}
    queueSort: {disabled: [{name: "*"}], enabled: [{name: JobQueue}]}
    preFilter: {enabled: [{name: JobQueue}, {name: ElasticQuota}]}
    reserve: {enabled: [{name: JobQueue}]}
    preBind: {enabled: [{name: JobQueue}]}
`

func TestInspect(t *testing.T) {
	s, err := inspect(t, complete1)
	require.NoError(t, err)
	require.Equal(t, "one", s.Profile)
	require.Equal(t, "koordinator-system", s.QuotaNamespace)
	require.True(t, s.Plugins["ElasticQuota"])
	require.False(t, s.Plugins["Coscheduling"])
	require.Equal(t, config.UnknownJobsGate, s.Args.UnknownJobs, "defaults are there without pluginConfig")
}

func TestInspectReadsArguments(t *testing.T) {
	s, err := inspect(t, complete1+`
  pluginConfig:
  - name: JobQueue
    args: {unknownJobs: Pass}
  - name: ElasticQuota
    args: {quotaGroupNamespace: quotas}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 7}
`)
	require.NoError(t, err)
	require.Equal(t, "quotas", s.QuotaNamespace)
	require.Equal(t, config.UnknownJobsPass, s.Args.UnknownJobs)
	require.EqualValues(t, 1000, s.Args.ClientQPS, "defaulted")
	at := slices.IndexFunc(s.PluginConfig, func(c kubeschedulerconfig.PluginConfig) bool {
		return c.Name == "InterPodAffinity"
	})
	require.EqualValues(t, 7, s.PluginConfig[at].Args.(*kubeschedulerconfig.InterPodAffinityArgs).HardPodAffinityWeight)
}

func TestAMisspeltArgumentIsNamed(t *testing.T) {
	_, err := inspect(t, complete1+"  pluginConfig: [{name: JobQueue, args: {unknownJob: Pass}}]\n")
	require.ErrorContains(t, err, "unknownJob")
	require.ErrorContains(t, err, "JobQueue")
}

func TestWithoutJobQueueNothingIsEnabled(t *testing.T) {
	s, err := inspect(t, "- schedulerName: one\n  plugins: {preFilter: {enabled: [{name: ElasticQuota}]}}\n")
	require.NoError(t, err)
	require.Empty(t, s.Profile)
	for _, n := range s.needs() {
		require.NotEqual(t, "scheduling.x-k8s.io", n.resource.Group)
	}
}

func TestAHalfEnabledPluginIsRefused(t *testing.T) {
	_, err := inspect(t, "- schedulerName: one\n  plugins: {preEnqueue: {enabled: [{name: JobQueue}]}, "+
		"reserve: {enabled: [{name: JobQueue}]}, preFilter: {enabled: [{name: ElasticQuota}]}}\n")
	require.ErrorContains(t, err, `profile "one": plugin JobQueue is not enabled at preFilter`)
	_, err = inspect(t, strings.ReplaceAll(complete1, "preBind", "postBind"))
	require.ErrorContains(t, err, `profile "one": plugin JobQueue is not enabled at preBind`)
	const points = `- schedulerName: one
  plugins: {multiPoint: {enabled: [{name: JobQueue}, {name: ElasticQuota}]}, preBind: {disabled: [{name: %q}]%s}}
`
	for _, disabled := range []string{"DefaultPreBind", "*"} {
		_, err = inspect(t, fmt.Sprintf(points, disabled, ""))
		require.ErrorContains(t, err, `profile "one": plugin DefaultPreBind is disabled`)
		_, err = inspect(t, fmt.Sprintf(points, disabled, ", enabled: [{name: DefaultPreBind}]"))
		require.NoError(t, err)
	}
	_, err = inspect(t, "- schedulerName: one\n  plugins: {multiPoint: {enabled: [{name: JobQueue}]}}\n")
	require.ErrorContains(t, err, "needs plugin ElasticQuota")
}
