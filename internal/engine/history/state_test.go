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

package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func cores(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": 1000 * n}) }

// in is a unit that was created an hour ago and, if it holds something, was admitted half an hour ago.
func in(phase unit.Phase, attempts int64, change ...func(*State)) State {
	s := State{
		Key: "a/u", UID: "1", Queue: "q", Quota: "x", Phase: phase, Attempts: attempts, Created: begin.Add(-time.Hour),
		Requested: cores(4),
	}
	if phase.Holds() {
		s.Held, s.Allocated = cores(4), begin.Add(-30*time.Minute)
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func TestBetween(t *testing.T) {
	evicted := func(s *State) { s.EvictedAt, s.EvictedFor = begin.Add(-10*time.Minute), "QueueDrained" }
	inactive := func(s *State) { s.Inactive, s.ParkedFor = true, "HeldByOwner" }
	observed := func(s *State) { s.Observed, s.WaitsFor = true, "QueueFull" }
	holding := func(n int64) func(*State) { return func(s *State) { s.Held = cores(n) } }
	for name, test := range map[string]struct {
		before, after State
		want          string
	}{
		"created":             {State{}, in("Enqueued", 0), "Enqueued"},
		"created on hold":     {State{}, in("Enqueued", 0, inactive), "Enqueued, Deactivated HeldByOwner"},
		"adopted at once":     {State{}, in("Running", 0), "Enqueued, Admitted waited 3600, Running"},
		"adopted":             {in("Enqueued", 0), in("Running", 0), "Admitted waited 3600, Running"},
		"nothing":             {in("Enqueued", 0), in("Enqueued", 0), ""},
		"a reason is written": {in("", 0), in("Enqueued", 0), ""},
		"back-off is over":    {in("TimeoutBackoff", 1, evicted), in("Enqueued", 1, evicted), ""},
		"hold":                {in("Enqueued", 0), in("Enqueued", 0, inactive), "Deactivated HeldByOwner"},
		"release":             {in("Enqueued", 0, inactive), in("Enqueued", 0), "Activated"},
		"moved":               {in("Enqueued", 0), in("Enqueued", 0, func(s *State) { s.Queue = "r" }), "Changed"},
		"priority":            {in("Running", 1), in("Running", 1, func(s *State) { s.Priority = 9 }), "Changed"},
		"admitted":            {in("Enqueued", 0), in("Dequeued", 1), "Admitted waited 3600"},
		"reserved":            {in("Enqueued", 0), in("Reserved", 1), "Reserved waited 3600"},
		"checks passed":       {in("Reserved", 1), in("Dequeued", 1), "Admitted waited 3600"},
		"all at once":         {in("Enqueued", 0), in("Running", 1), "Admitted waited 3600, Running"},
		"runs":                {in("Dequeued", 1), in("Running", 1), "Running"},
		"grown":               {in("Running", 1), in("Running", 1, holding(6)), "Resized from cpu: 4"},
		"evicted":             {in("Running", 1), in("Enqueued", 1, evicted), "Evicted QueueDrained ran 1800"},
		"backs off":           {in("Dequeued", 1), in("TimeoutBackoff", 1, evicted), "Evicted QueueDrained ran 1800"},
		"reservation lost":    {in("Reserved", 1), in("TimeoutBackoff", 1, evicted), "Evicted QueueDrained ran 1800"},
		"admitted again":      {in("Enqueued", 1, evicted), in("Dequeued", 2), "Admitted waited 600"},
		"evicted and admitted, missed": {
			in("Running", 1), in("Running", 2), "Evicted ran 1800, Admitted waited 0, Running"},
		"succeeded":         {in("Running", 1), in("Succeed", 1), "Succeeded ran 1800"},
		"failed":            {in("Running", 1), in("Failed", 1), "Failed ran 1800"},
		"a life was missed": {in("Enqueued", 0), in("Succeed", 1), "Admitted waited 3600, Succeeded"},
		"ended unadmitted":  {in("Enqueued", 0), in("Failed", 0), "Failed"},
		"deleted":           {in("Running", 1), State{}, "Deleted ran 1800"},
		"deleted pending":   {in("Enqueued", 0), State{}, "Deleted"},
		"deleted at last":   {in("Succeed", 1), State{}, ""},
		"after the end":     {in("Succeed", 1), in("Enqueued", 1), ""},
		"a later version's": {in("Enqueued", 0), in("Paused", 0), ""},
		"observed, admitted": {
			in("Enqueued", 0, observed), in("Dequeued", 1, observed), "Admitted QueueFull waited 3600"},
		"observed, ended before": {
			in("Enqueued", 0, observed), in("Succeed", 0, observed), "Succeeded QueueFull waited 3600"},
		"observed, ended after":    {in("Running", 1, observed), in("Succeed", 1, observed), "Succeeded ran 1800"},
		"observed, deleted after":  {in("Enqueued", 1, evicted, observed), State{}, "Deleted"},
		"observed, deleted before": {in("Enqueued", 0, observed), State{}, "Deleted QueueFull waited 3600"},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, r := range between(begin, &test.before, &test.after) {
				require.Equal(t, []string{"a", "u", "1", "x"}, []string{r.Namespace, r.Unit, r.UID, r.Quota})
				text := string(r.Event)
				if r.Reason != "" {
					text += " " + r.Reason
				}
				if !r.HeldBefore.IsZero() {
					text += " from " + r.HeldBefore.String()
				}
				if strings.HasPrefix(text, "Admitted") || r.Waited != 0 {
					text += fmt.Sprint(" waited ", r.Waited)
				}
				if r.Ran != 0 {
					text += fmt.Sprint(" ran ", r.Ran)
				}
				said = append(said, text)
			}
			require.Equal(t, test.want, strings.Join(said, ", "))
		})
	}
	over := between(begin, ptr(in("Running", 1, holding(3))), ptr(in("Succeed", 1)))
	require.Equal(t, "cpu: 3", over[0].Held.String(), "what it held until then")
}

func ptr[T any](v T) *T { return &v }
