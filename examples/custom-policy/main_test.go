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

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/scheduler"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func unitOf(name string, age time.Duration, pods int64) unit.Unit {
	return unit.Unit{
		Key: "team/" + name, UID: name, Queue: "q", Quota: "q", Created: now.Add(-age), Pods: pods, Active: true,
		Request: resources.FromMap(map[string]int64{"cpu": 1000}),
	}
}

// A core with only these extensions decides by them.
func TestTheExtensionsDecide(t *testing.T) {
	var cfg admission.Config
	require.NoError(t, jobqueue.Extend(&cfg, extensions...))
	core := admission.New(cfg)
	core.UpsertQueue(now, queue.Spec{Name: "q", Policy: "NewestFirst", MaxPending: -1, MaxAdmitted: -1})
	room := resources.FromMap(map[string]int64{"cpu": 2000})
	core.SetQuota(now, admission.Quota{Name: "q", Limit: room, Max: room})
	core.UpsertUnit(now, unitOf("old", time.Hour, 1))
	core.UpsertUnit(now, unitOf("new", time.Minute, 1))
	core.UpsertUnit(now, unitOf("newer", time.Second, 1000))
	core.UpsertUnit(now, unitOf("huge", 0, 1001))

	plan := core.Decide(now)
	var admitted []string
	for _, write := range plan.Writes {
		admitted = append(admitted, write.Of().UID)
	}
	require.Equal(t, []string{"newer", "new"}, admitted)
	reason, message, _ := core.Why("team/huge")
	require.Equal(t, reasonTooManyPods, reason)
	require.Contains(t, message, "1000 pods")
}

// The program knows the policy, and says which it knows when it does not know one.
func TestTheProgramKnowsThePolicy(t *testing.T) {
	start := func(policy string) error {
		shipped, err := os.ReadFile("../../scheduler-config.yaml")
		require.NoError(t, err)
		text := strings.Replace(string(shipped), "defaultQueuePolicy: Priority", "defaultQueuePolicy: "+policy, 1)
		require.Contains(t, text, policy)
		file := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		command, err := scheduler.NewCommand(extensions...)
		require.NoError(t, err)
		// The configuration is checked as at every start; the scheduler would write it and end.
		require.NoError(t, command.ParseFlags([]string{"--config=" + file, "--write-config-to=somewhere"}))
		return command.PreRunE(command, nil)
	}
	require.NoError(t, start("NewestFirst"))
	require.ErrorContains(t, start("OldestFirst"),
		`supported values: "Block", "FIFO", "Intelligent", "NewestFirst", "Priority"`)
}
