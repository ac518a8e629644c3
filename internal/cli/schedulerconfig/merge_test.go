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

package schedulerconfig

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/koordinatorchart"
)

const (
	shippedFile = "../../../scheduler-config.yaml"
	name        = "koord-scheduler"
)

// stock is the configuration of Koordinator's chart.
func stock(t *testing.T) []byte {
	t.Helper()
	text, err := yaml.Marshal(koordinatorchart.Config(t))
	require.NoError(t, err)
	return text
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, yaml.Unmarshal(text, &out))
	return out
}

// TestStockBecomesWhatIsShipped: Merge adds what scheduler-config.yaml has and Koordinator's own has not. The shipped
// arguments are the defaults, so Merge names none.
func TestStockBecomesWhatIsShipped(t *testing.T) {
	shipped, err := os.ReadFile(shippedFile)
	require.NoError(t, err)
	out, changes, err := Merge(stock(t), name)
	require.NoError(t, err)
	require.Len(t, changes, 11, strings.Join(changes, "\n"))

	merged, want := decode(t, out), decode(t, shipped)
	withoutArguments := func(config map[string]any) {
		profile := config["profiles"].([]any)[0].(map[string]any)
		configs := profile["pluginConfig"].([]any)
		isJobQueue := func(c any) bool { return c.(map[string]any)["name"] == plugin }
		require.True(t, slices.ContainsFunc(configs, isJobQueue))
		profile["pluginConfig"] = slices.DeleteFunc(configs, isJobQueue)
	}
	withoutArguments(merged)
	withoutArguments(want)
	require.Equal(t, want, merged)

	again, changes, err := Merge(out, name)
	require.NoError(t, err)
	require.Empty(t, changes)
	require.Equal(t, string(out), string(again))

	same, changes, err := Merge(shipped, name)
	require.NoError(t, err)
	require.Empty(t, changes)
	require.Equal(t, string(shipped), string(same))
}

// complete is a configuration that needs no addition. A case replaces a part of it.
const complete = `# ours
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 60, burst: 70} # measured
enableProfiling: true
enableContentionProfiling: true
profiles:
  - schedulerName: koord-scheduler
    pluginConfig:
      - name: JobQueue
        args: {clientQPS: 7}
    plugins:
      preEnqueue:
        enabled: [{name: JobQueue}]
      queueSort:
        disabled: [{name: "*"}]
        enabled:
          - name: JobQueue
      preFilter:
        enabled:
          - name: JobQueue
          - name: ElasticQuota # keep
      reserve:
        enabled:
          - name: ElasticQuota
          - name: JobQueue
      preBind:
        enabled: [{name: JobQueue}]
    other: kept
`

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string // in complete
		changes  []string
		want     string // in the output
	}{
		{name: "nothing is missing"},
		{
			name: "no gate", old: "[{name: JobQueue}]\n      queueSort", new: "[{name: Coscheduling}]\n      queueSort",
			changes: []string{"profiles[0].plugins.preEnqueue.enabled: JobQueue is enabled."},
			want:    "enabled: [{name: Coscheduling}, {name: JobQueue}]",
		},
		{
			name: "no extension point", old: "      preBind:\n        enabled: [{name: JobQueue}]\n",
			changes: []string{"profiles[0].plugins.preBind.enabled: JobQueue is enabled."},
			want:    "      preBind:\n        enabled:\n          - name: JobQueue\n",
		},
		{
			name: "an empty extension point", old: "preBind:\n        enabled: [{name: JobQueue}]", new: "preBind:",
			changes: []string{"profiles[0].plugins.preBind.enabled: JobQueue is enabled."},
			want:    "      preBind:\n        enabled:\n          - name: JobQueue\n",
		},
		{
			name: "the order of pods", old: "          - name: JobQueue\n      preFilter",
			new:     "          - name: PrioritySort # by priority\n      preFilter",
			changes: []string{"profiles[0].plugins.queueSort.enabled: JobQueue is enabled in place of PrioritySort"},
			want:    "          - name: JobQueue # by priority\n",
		},
		{
			name: "two orders", old: "        disabled: [{name: \"*\"}]\n",
			changes: []string{"profiles[0].plugins.queueSort.disabled: the default PrioritySort is disabled."},
			want:    "        disabled:\n          - name: '*'\n",
		},
		{
			name: "not last", old: "          - name: ElasticQuota\n          - name: JobQueue\n",
			new:     "          - name: JobQueue\n          - name: ElasticQuota\n",
			changes: []string{"profiles[0].plugins.reserve.enabled: JobQueue is enabled. It is the last"},
			want:    "          - name: ElasticQuota\n          - name: JobQueue\n",
		},
		{
			name: "not first", old: "preBind:\n        enabled: [{name: JobQueue}]",
			new:     "preBind:\n        enabled: [{name: Reservation}, {name: JobQueue}]",
			changes: []string{"profiles[0].plugins.preBind.enabled: JobQueue is enabled. It sets"},
			want:    "enabled: [{name: JobQueue}, {name: Reservation}]\n",
		},
		{
			name: "no arguments", old: "      - name: JobQueue\n        args: {clientQPS: 7}\n",
			new:     "      - name: Coscheduling\n",
			changes: []string{"profiles[0].pluginConfig: JobQueue has its default arguments."},
			want: "      - name: Coscheduling\n      - name: JobQueue\n        args:\n          apiVersion: " +
				"kubescheduler.config.k8s.io/v1\n          kind: JobQueueArgs\n",
		},
		{
			name: "the times of Kubernetes", old: "{leaderElect: false}", new: "{leaderElect: true}",
			changes: []string{"leaderElection: leaseDuration is 20s, renewDeadline is 6s, retryPeriod is 2s."},
			want:    "leaseDuration: 20s",
		},
		{
			name: "times that are long enough", old: "{leaderElect: false}", new: "{leaseDuration: 1m}",
			want: "leaderElection: {leaseDuration: 1m}",
		},
		{
			name: "all plugins are disabled", old: "      preBind:\n        enabled: [{name: JobQueue}]\n",
			new: "      preBind:\n        disabled: [{name: '*'}]\n        enabled: [{name: Reservation}]\n",
			changes: []string{"profiles[0].plugins.preBind.enabled: DefaultPreBind is enabled.",
				"profiles[0].plugins.preBind.enabled: JobQueue is enabled."},
			want: "        enabled: [{name: JobQueue}, {name: Reservation}, {name: DefaultPreBind}]\n",
		},
		{
			name: "plugins at all extension points",
			old:  "      reserve:\n        enabled:\n          - name: ElasticQuota\n          - name: JobQueue\n",
			new:  "      multiPoint: {enabled: [{name: ElasticQuota}], disabled: [{name: DefaultPreBind}]}\n",
			changes: []string{
				"profiles[0].plugins.reserve.enabled: ElasticQuota is enabled, as by multiPoint.",
				"profiles[0].plugins.reserve.enabled: JobQueue is enabled. It is the last",
				"profiles[0].plugins.preBind.enabled: DefaultPreBind is enabled.",
			},
			want: "      reserve:\n        enabled:\n          - name: ElasticQuota\n          - name: JobQueue\n",
		},
		{
			name: "the writer at all extension points",
			old:  "    plugins:\n",
			new:  "    plugins:\n      multiPoint: {enabled: [{name: DefaultPreBind}], disabled: [{name: '*'}]}\n",
		},
		{
			name: "another profile", old: "    other: kept\n",
			new: "    other: kept\n  - plugins:\n      reserve:\n        enabled: [{name: ElasticQuota}]\n",
			changes: []string{"profiles[1].pluginConfig: JobQueue has the arguments of profiles[0].",
				"profiles[1].plugins.queueSort.enabled: JobQueue", "profiles[1].plugins.queueSort.disabled:",
				"profiles[1].plugins.preEnqueue", "profiles[1].plugins.preFilter", "profiles[1].plugins.reserve",
				"profiles[1].plugins.preBind"},
			want: "    pluginConfig:\n      - name: JobQueue\n        args: {clientQPS: 7}\n",
		},
		{
			name: "no settings", old: "clientConnection: {qps: 60, burst: 70} # measured\nenableProfiling: true\n",
			changes: []string{"clientConnection.qps: is 500.", "clientConnection.burst: is 1000.", "enableProfiling: is false."},
			want:    "clientConnection:\n  qps: 500\n  burst: 1000\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, complete, c.old)
			out, changes, err := Merge([]byte(strings.Replace(complete, c.old, c.new, 1)), name)
			require.NoError(t, err)
			require.Len(t, changes, len(c.changes), strings.Join(changes, "\n"))
			for i, want := range c.changes {
				require.True(t, strings.HasPrefix(changes[i], want), changes[i])
			}
			for _, kept := range []string{c.want, "# ours\n", "# keep\n", "other: kept\n"} {
				require.Contains(t, string(out), kept)
			}
			again, changes, err := Merge(out, name)
			require.NoError(t, err)
			require.Empty(t, changes)
			require.Equal(t, string(out), string(again))
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	for field, edit := range map[string][2]string{
		"kind: is \"ConfigMap\"":              {"kind: KubeSchedulerConfiguration", "kind: ConfigMap"},
		"apiVersion: is \"v1beta3\"":          {"kubescheduler.config.k8s.io/v1", "v1beta3"},
		"the configuration has more than one": {"    other: kept\n", "---\na: b\n"},
		"did not find":                        {"# ours", "{"},
		"enableProfiling: is no name":         {"enableProfiling: true", "enableProfiling: true\nenableProfiling: false"},
		`profiles: none has the schedulerName "koord-scheduler"; found: other, default-scheduler`: {
			"- schedulerName: koord-scheduler", "- schedulerName: other\n  - kept: true"},
		`profiles: none has the schedulerName "koord-scheduler"; found: none`: {
			complete[strings.Index(complete, "  - schedulerName"):], "  []"},
		"profiles[0].plugins.reserve.enabled: lacks": {"profiles:\n", "profiles:\n  - schedulerName: other\n"},
		"profiles[0].plugins.queueSort.enabled: only PrioritySort": {
			"          - name: JobQueue\n      preFilter", "          - name: Coscheduling\n      preFilter"},
		"profiles[0].plugins.multiPoint.disabled: disables JobQueue": {
			"    plugins:\n", "    plugins:\n      multiPoint: {disabled: [{name: JobQueue}]}\n"},
		"profiles[0].plugins.reserve.enabled: lacks ElasticQuota": {
			"        enabled:\n          - name: ElasticQuota\n", "        enabled:\n"},
		"profiles[0].plugins.preBind.disabled: disables JobQueue": {
			"      preBind:\n", "      preBind:\n        disabled: [{name: JobQueue}]\n"},
		"profiles[0].plugins.preFilter.enabled[1].name: is empty":    {"name: ElasticQuota # keep", "weight: 1"},
		"profiles[0].plugins.preFilter.enabled[1]: is not a mapping": {"name: ElasticQuota # keep", "ElasticQuota"},
		"profiles[0].pluginConfig: is not a list": {
			"      - name: JobQueue\n        args", "        args"},
		"profiles[0].plugins.preEnqueue.enabled: is not a list, or has": {"enabled: [{", "enabled: &gate [{"},
		"leaderElection.leaseDuration: \"long\" is no duration":         {"leaderElect: false", "leaseDuration: long"},
		"clientConnection.qps: is not a single value":                   {"qps: 60", "qps: [60]"},
	} {
		t.Run(field, func(t *testing.T) {
			require.Contains(t, complete, edit[0])
			_, _, err := Merge([]byte(strings.Replace(complete, edit[0], edit[1], 1)), name)
			require.ErrorContains(t, err, field)
		})
	}
	_, _, err := Merge(nil, name)
	require.ErrorContains(t, err, "empty")
}

// FuzzMerge: Merge changes nothing of its own output, and returns none with an error.
func FuzzMerge(f *testing.F) {
	shipped, err := os.ReadFile(shippedFile)
	require.NoError(f, err)
	f.Add(shipped)
	f.Add([]byte(complete))
	f.Add([]byte(strings.NewReplacer("JobQueue", "PrioritySort", "leaderElect: false", "").Replace(complete)))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, changes, err := Merge(in, name)
		if err != nil {
			require.Nil(t, out)
			return
		}
		if len(changes) == 0 {
			require.Equal(t, in, out)
			return
		}
		again, more, err := Merge(out, name)
		require.NoError(t, err, "%s", out)
		require.Empty(t, more, "%s", out)
		require.Equal(t, out, again)
	})
}
