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

// Package koordinatorchart has the configuration of koord-scheduler from Koordinator's chart.
package koordinatorchart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Config is the KubeSchedulerConfiguration that Koordinator's chart 1.8.0 installs with its default values: that of
// Koordinator's module with what the chart has otherwise. The chart is not a part of the module.
func Config(t *testing.T) map[string]any {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/koordinator-sh/koordinator").Output()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/manager/scheduler-config.yaml"))
	require.NoError(t, err)
	var in struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal(raw, &in))
	var out map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(in.Data["koord-scheduler-config"]), &out))

	profile := out["profiles"].([]any)[0].(map[string]any)
	for _, plugin := range profile["pluginConfig"].([]any) {
		if plugin := plugin.(map[string]any); plugin["name"] == "LoadAwareScheduling" {
			plugin["args"].(map[string]any)["usageThresholds"] = map[string]any{"cpu": 65.0, "memory": 95.0}
		}
	}
	profile["pluginConfig"] = append(profile["pluginConfig"].([]any), map[string]any{
		"name": "Coscheduling", "args": map[string]any{
			"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "CoschedulingArgs",
			"enablePreemption": true, "awareNetworkTopology": true,
		},
	})
	plugins := profile["plugins"].(map[string]any)
	for point, names := range map[string]string{
		"preFilter":  "SchedulingHint Coscheduling Reservation NodeNUMAResource DeviceShare ElasticQuota",
		"filter":     "Reservation LoadAwareScheduling NodeNUMAResource DeviceShare",
		"postFilter": "Reservation Coscheduling ElasticQuota",
		"reserve":    "Reservation LoadAwareScheduling NodeNUMAResource DeviceShare Coscheduling ElasticQuota",
	} {
		var enabled []any
		for _, name := range strings.Fields(names) {
			enabled = append(enabled, map[string]any{"name": name})
		}
		plugins[point].(map[string]any)["enabled"] = enabled
	}
	return out
}
