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

// Package writes_test counts the writes of the queue to a real API server. The numbers are exact, and do not depend on
// the load of the machine.
package writes_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// thirty units: more than fit at once, so that some wait, of high and of low priority.
const thirty = `
name: thirty
groups: 1
queuesPerGroup: 2
quota: {min: 4, max: 8, groupMax: 8}
classes:
- {name: small, count: 10, intervalMs: 10, runtimeMs: 20, priority: 50, cpu: 1}
- {name: large, count: 5, intervalMs: 50, runtimeMs: 50, priority: 200, cpu: 4}
`

// never is longer than a run takes on any machine.
const never = time.Hour

// rarely switches off writes for people that follow from time. These are reasons of pending units, and statuses of
// queues after the first one, which is over before units are created.
func rarely(config map[string]any) {
	for _, profile := range config["profiles"].([]any) {
		for _, plugin := range profile.(map[string]any)["pluginConfig"].([]any) {
			if plugin := plugin.(map[string]any); plugin["name"] == "JobQueue" {
				args := plugin["args"].(map[string]any)
				args["explainAfter"], args["statusRefreshInterval"] = never.String(), never.String()
			}
		}
	}
}

// TestWritesPerUnit: a unit costs one write by the scheduler for its admission, and one by the job's runner for its
// end. Nothing else is written, and nothing twice.
func TestWritesPerUnit(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	w, err := workload.Parse([]byte(thirty))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	report, err := runner.Run(ctx, runner.Options{
		Setting:  runner.Setting{Dir: filepath.Join(t.TempDir(), "cluster"), Progress: t.Output()},
		Workload: w, Mutate: rarely,
	})
	require.NoError(t, err)

	const units = 30
	require.Equal(t, units, report.Admitted)
	require.Zero(t, report.Conflicts)
	require.Zero(t, report.Evictions)
	require.Equal(t, 1.0, report.Decisions.DecisionsPerAdmission)
	counted := map[string]int{}
	for _, write := range report.Writes {
		if write.Resource != "leases" { // of the API server itself
			counted[write.Verb+" "+write.Resource+" "+write.Code] = write.Count
		}
	}
	require.Equal(t, map[string]int{
		"POST queueunits 201":         units,
		"PATCH queueunits/status 200": 2 * units,
	}, counted)
	require.Equal(t, 2.0, report.WritesPerUnit)
}
