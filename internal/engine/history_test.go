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
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
)

// said is the history of a unit in words, the oldest first.
func said(r *rig, key string) (lines []string) {
	_, name := split(key)
	for _, record := range slices.Backward(r.engine.opts.History.Page(&history.Query{Unit: name, Limit: 100}).Records) {
		line := fmt.Sprintf("%d %s #%d", int(record.Time.Sub(testStart).Seconds()), record.Event, record.Attempt)
		if record.Held.Len() > 0 {
			line += " " + record.Held.String()
		}
		for name, seconds := range map[string]float64{" waited ": record.Waited, " ran ": record.Ran} {
			if seconds > 0 {
				line += name + fmt.Sprint(seconds)
			}
		}
		if record.Reason != "" {
			line += " " + record.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

func TestHistoryOfALife(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.engine.opts.History = history.New(history.Options{Records: 100})
	r.queue(testQuota)
	old := r.unit("old", 1) // older than the leader
	r.lead()
	r.send()

	r.job("train", "job-1")
	key := r.unit("train", 3, withConsumer("job-1"))
	r.step()
	r.advance(90 * time.Second)
	r.send()
	running := func(phase string) {
		r.api.setStatus(key, map[string]any{"phase": phase})
		r.feed(key).step()
	}
	r.advance(10 * time.Second)
	running("Running")
	r.queueWith(testQuota, map[string]any{"queuePolicy": "Priority", "stopPolicy": "HoldAndDrain"})
	r.advance(50 * time.Second)
	for len(r.decisions()) > 0 {
		r.send()
	}
	r.queue(testQuota)
	r.advance(30 * time.Second)
	for len(r.decisions()) > 0 {
		r.send()
	}
	r.advance(20 * time.Second)
	running("Succeed")
	r.drive.FeedUnit(r.api.get(key), true)
	r.step()

	require.Equal(t, []string{
		"0 Enqueued #0",
		"90 Admitted #1 cpu: 3 waited 90",
		"100 Running #1 cpu: 3",
		"150 Evicted #1 cpu: 3 ran 150 QueueDrained",
		"180 Admitted #2 cpu: 3 waited 30",
		"200 Succeeded #2 cpu: 3 ran 20",
	}, said(r, key))
	require.Equal(t, "0 Admitted #1 cpu: 1", said(r, old)[0], "its creation is no transition that was seen")
	record := r.engine.opts.History.Page(&history.Query{Job: "train", Limit: 1}).Records[0]
	require.Equal(t, "Job.v1.batch", record.Kind)
	require.Equal(t, testQuota, record.Queue)
	require.Equal(t, "cpu: 3", record.Requested.String())
	require.Zero(t, record.Limit)
}

// A record has the time limit of the unit, or that of its queue.
func TestHistoryOfALimit(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.engine.opts.History = history.New(history.Options{Records: 100})
	r.queue(testQuota)
	r.queueWith("bounded", map[string]any{
		"queuePolicy": "Priority", "executionTime": map[string]any{"defaultSeconds": int64(60), "maximumSeconds": int64(90)},
	})
	r.lead()
	in := func(queue string, seconds int64) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			spec := u.Object["spec"].(map[string]any)
			spec["queue"] = queue
			if seconds > 0 {
				spec["maximumExecutionTimeSeconds"] = seconds
			}
		}
	}
	for name, c := range map[string]struct {
		queue       string
		named, want int64
	}{
		"none": {testQuota, 0, 0}, "own": {testQuota, 600, 600}, "default": {"bounded", 0, 60}, "most": {"bounded", 600, 90},
	} {
		r.unit(name, 1, in(c.queue, c.named))
		r.step()
		record := r.engine.opts.History.Page(&history.Query{Unit: name, Limit: 1}).Records[0]
		require.EqualValues(t, c.want, record.Limit, name)
	}
}

// Other units that wait cost a transition nothing, and what changes no phase is no transition.
func TestHistoryOfAReason(t *testing.T) {
	r := newRig(t, quotasOf(1, testQuota))
	r.engine.opts.History = history.New(history.Options{Records: 100})
	r.queue(testQuota).lead()
	key := r.unit("big", 2)
	r.step()
	r.advance(time.Minute)
	for _, w := range r.of(statuswrite.Report) {
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
		r.step()
	}
	r.drive.FeedUnit(r.api.get(key), true)
	r.step()
	require.Equal(t, []string{"0 Enqueued #0", "60 Deleted #0"}, said(r, key))
}
