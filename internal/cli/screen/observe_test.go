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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

func TestObserved(t *testing.T) {
	since := before(7 * 24 * time.Hour).Time
	waited := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	for name, found := range map[string]answers.Observed{
		"observe": {
			Jobs: 12, Taking: []answers.Taking{taking()}, CompleteSince: ptr.To(before(time.Hour)),
			Waiting: []answers.ObservedJob{
				{Subject: subject("lab", "train", "research"), Asks: "cpu: 4", Pods: 3, Waited: waited(90 * time.Minute),
					Reason: "QuotaExceeded", Outcome: answers.OutcomeWaits},
				{Subject: subject("lab", "gone", "research"), Requested: cpu("2"), Waited: waited(20 * time.Second),
					Reason: "QueueFull", Outcome: answers.OutcomeEnded},
			},
		},
		"observe-none": {NoRecord: "the server could not find the requested resource", NoDryRun: "ask again"},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, func(b *bytes.Buffer) error { return Observed(b, &found, since) })
		})
	}
}

func TestAnObservedUnit(t *testing.T) {
	u := waiting("watched", "QuotaExceeded", `would wait: quota "research" has too little cpu left`)
	u.Spec.Mode = v1alpha1.ModeObserve
	over := waiting("over", "QuotaExceeded", "")
	over.Spec.Mode, over.Status.Phase = v1alpha1.ModeObserve, v1alpha1.PhaseSucceed
	golden(t, "why-observed", func(b *bytes.Buffer) error { return Why(b, now, &Story{Unit: u, Live: short()}) })
	golden(t, "list-observed", func(b *bytes.Buffer) error {
		return NewTable(b, false, false).Write(now, []Row{RowOfObject(u), RowOfObject(over)})
	})
}
