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

package screen

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

func transition(since time.Duration, event visibility.RecordEvent, held string) visibility.Record {
	r := visibility.Record{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research"}, Time: metav1.NewMicroTime(now.Add(-since)), Event: event,
		Unit: "train", Kind: "Job.v1.batch", Job: "train", Queue: "shared", Quota: "research", Attempt: 1,
	}
	if held != "" {
		r.Held = cpu(held)
	}
	return r
}

// life is that of a job that was evicted once.
func life() *answers.Records {
	span := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	records := []visibility.Record{
		transition(3*time.Hour, visibility.RecordEnqueued, ""),
		transition(2*time.Hour, visibility.RecordAdmitted, "4"),
		transition(119*time.Minute, visibility.RecordRunning, "4"),
		transition(time.Hour, visibility.RecordEvicted, "4"),
		transition(30*time.Minute, visibility.RecordAdmitted, "4"),
		transition(time.Minute, visibility.RecordSucceeded, "4"),
	}
	records[0].Attempt = 0
	records[1].Waited = span(time.Hour)
	records[3].Ran, records[3].Reason = span(time.Hour), "QueueDrained"
	records[4].Waited, records[4].Attempt = span(30*time.Minute), 2
	records[5].Ran, records[5].Attempt = span(29*time.Minute), 2
	return &answers.Records{Items: records, CompleteSince: before(24 * time.Hour)}
}

func TestHistory(t *testing.T) {
	golden(t, "history", func(b *bytes.Buffer) error { return History(b, life(), time.Time{}, false) })
	cut := life()
	cut.Items, cut.Older = cut.Items[3:], true
	cut.Items[0].Reason = "\x1b[2JEvil"
	cut.Items[1].Kind, cut.Items[1].Job = "", ""
	golden(t, "history-all", func(b *bytes.Buffer) error { return History(b, cut, now.Add(-time.Hour), true) })
	none := &answers.Records{CompleteSince: before(time.Minute)}
	golden(t, "history-none", func(b *bytes.Buffer) error { return History(b, none, now.Add(-time.Hour), false) })
	golden(t, "history-object", func(b *bytes.Buffer) error {
		u := waiting("train", "QuotaExceeded", "")
		u.Status.Conditions[0].LastTransitionTime = before(2 * time.Minute)
		return Traces(b, u, "the server could not find the requested resource")
	})
}

func TestUsage(t *testing.T) {
	all := []answers.Usage{
		{Quota: "research", Namespace: "red", Jobs: 12, Hours: map[corev1.ResourceName]float64{
			"cpu": 96.25, "memory": 64 << 30, "nvidia.com/gpu": 8,
		}},
		{Quota: "research", Namespace: "blue", Jobs: 1, Hours: map[corev1.ResourceName]float64{"cpu": 0.5}},
	}
	from := now.Add(-30 * 24 * time.Hour)
	golden(t, "usage", func(b *bytes.Buffer) error { return Usage(b, all, life(), from, now) })
	golden(t, "usage-one", func(b *bytes.Buffer) error {
		return Usage(b, all[1:], life(), now.Add(-time.Hour), now)
	})
	golden(t, "usage-none", func(b *bytes.Buffer) error { return Usage(b, nil, life(), from, now) })
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		20 * time.Millisecond: "20ms", 1500 * time.Millisecond: "1s", 90 * time.Second: "90s", 50 * time.Hour: "2d2h",
	} {
		require.Equal(t, want, span(&metav1.Duration{Duration: d}))
	}
	require.Empty(t, span(nil))
}
