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

	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

const reclaimedByResearch = `quota "research" takes back its min, which quota "platform" had borrowed; ` +
	"the job waits for room"

func subject(namespace, name, quota string) answers.Subject {
	return answers.Subject{Namespace: namespace, Unit: name, Job: "job/" + name, Queue: "shared", Quota: quota}
}

func taking() answers.Taking {
	return answers.Taking{
		Subject: subject("lab", "own", "research"), Asks: "cpu: 8", Others: 2,
		Victims: []answers.Victim{
			{Subject: subject("lab", "lent-1", "platform"), State: answers.VictimSuspended},
			{Subject: subject("web", "lent-2", "platform"), State: answers.VictimHolds},
		},
	}
}

func taken() answers.Taken {
	return answers.Taken{
		Victim: answers.Victim{Subject: subject("lab", "lent-1", "platform"), State: answers.VictimSuspended},
		Time:   before(5 * time.Minute), Reason: "Reclaimed", ByQuota: "research", Evictions: 2, Message: reclaimedByResearch,
		Taker: ptr.To(subject("lab", "own", "research")),
	}
}

func TestPreemptions(t *testing.T) {
	deleted := answers.Taken{
		Victim: answers.Victim{Subject: subject("lab", "old", "platform"), State: answers.VictimDeleted},
		Time:   before(time.Hour), Reason: "PreemptedInQueue",
	}
	foreign := taking()
	foreign.Victims = nil
	since := before(24 * time.Hour).Time
	for name, test := range map[string]struct {
		found answers.Preemptions
		wide  bool
	}{
		"preemptions": {found: answers.Preemptions{
			Taking: []answers.Taking{taking(), foreign}, Taken: []answers.Taken{taken(), deleted},
			CompleteSince: ptr.To(before(2 * time.Hour)), NamesHidden: true,
		}},
		"preemptions-wide": {wide: true, found: answers.Preemptions{
			Taking: []answers.Taking{taking()}, Taken: []answers.Taken{taken(), deleted},
			NoRecord: "the server could not find the requested resource",
		}},
		"preemptions-dry": {found: answers.Preemptions{
			DryRun: true, Taking: []answers.Taking{taking()}, NamesHidden: true,
		}},
		"preemptions-dry-none": {found: answers.Preemptions{DryRun: true}},
		"preemptions-none":     {found: answers.Preemptions{CompleteSince: ptr.To(before(48 * time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, func(b *bytes.Buffer) error { return Preemptions(b, &test.found, since, test.wide) })
		})
	}
}
