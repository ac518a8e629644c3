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

package results

import (
	"bytes"
	"fmt"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/internal/whatif"
)

func TestWhatIf(t *testing.T) {
	at := func(seconds int64) *int64 { return ptr.To(seconds) }
	few := &whatif.Report{
		AsOf: now, HorizonSeconds: 86400, RunTimes: whatif.RunTimes{Past: 12, Limits: 3, Endless: 1}, Unchanged: 7,
		Evictions: whatif.Counts{Before: 0, After: 1}, Extended: true,
		Jobs: []whatif.Job{
			{Namespace: "what-if", Name: "new", Queue: "shared", Quota: "research", After: whatif.Fate{StartSeconds: at(0)}},
			{
				Namespace: "research", Name: "runs\x1b[2J", Queue: "shared", Quota: "research", Before: &whatif.Fate{Holds: true},
				After: whatif.Fate{Holds: true, EvictedSeconds: at(60), StartSeconds: at(7200)},
			},
			{
				Namespace: "research", Name: "waits", Queue: "shared", Quota: "research",
				Before: &whatif.Fate{StartSeconds: at(600)},
			},
		},
		Queues: []whatif.Queue{{
			Name: "shared", Jobs: 3, NotStarted: whatif.Counts{After: 1}, MeanSeconds: whatif.Seconds{Before: 600, After: 30000},
			LongestSeconds: whatif.Seconds{Before: 900, After: 86400},
		}},
		First: []whatif.Waits{
			{Namespace: "research", Name: "waits", Queue: "shared", Message: "needs 2 more cpu of research"},
		},
	}
	many := &whatif.Report{AsOf: now, HorizonSeconds: 3600}
	for i := range int64(mostMoved + 2) {
		many.Jobs = append(many.Jobs, whatif.Job{
			Namespace: "research", Name: fmt.Sprint("j", i), Queue: "shared", Quota: "research",
			Before: &whatif.Fate{StartSeconds: at(60 * i)}, After: whatif.Fate{StartSeconds: at(120 * i)},
		})
		many.First = append(many.First, whatif.Waits{
			Namespace: "research", Name: fmt.Sprint("j", i), Queue: fmt.Sprint("q", i),
		})
	}
	for name, r := range map[string]*whatif.Report{
		"whatif-few": few, "whatif-many": many, "whatif-none": {AsOf: now, HorizonSeconds: 86400, Unchanged: 1},
	} {
		golden(t, name, func(b *bytes.Buffer) error { return WhatIf(b, r, false) })
	}
}
