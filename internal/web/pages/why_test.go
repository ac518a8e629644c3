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

package pages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/factstest"
)

// A text links what the answers name, and keeps all of its characters.
func TestLinksOfAText(t *testing.T) {
	u := &v1alpha1.QueueUnit{}
	u.Status.Effective = &v1alpha1.Effective{Queue: "work", Quota: "red"}
	known := namesOf(&screen.Story{
		Unit: u,
		Live: &visibility.Unit{Status: visibility.UnitStatus{
			Shortages: []visibility.Shortage{{Level: "firm", ClaimedBy: "red/first", ClaimedIn: "gpu"}},
			Holders:   &visibility.Holders{Units: []visibility.Holder{{Namespace: "red", Name: "eval-x1", Job: "eval"}}},
		}},
		Ahead: []visibility.WaitingUnit{{Position: 1}, {Namespace: "red", Name: "job.2", Job: "job"}},
		Taken: &answers.Taken{Taker: &answers.Subject{Namespace: "blue", Unit: "own-x", Job: "job/own"}},
	})
	for text, want := range map[string]string{
		"Needs 1: quota red has 0.":             "Needs 1: quota [red /quotas/red] has 0.",
		"Quota red has a red share.":            "Quota [red /quotas/red] has a red share.",
		`QuotaExceeded: quota "firm": cpu.`:     `QuotaExceeded: quota "[firm /quotas/firm]": cpu.`,
		"2 cpu at firm; the first is red/first": "2 cpu at [firm /quotas/firm]; the first is [red/first /jobs/red/first]",
		"Nobody in queue work.":                 "Nobody in queue [work /queues/work].",
		"Jobs of queue gpu claim 4 cpu.":        "Jobs of queue [gpu /queues/gpu] claim 4 cpu.",
		"held by red/eval (4) and red/job.2.":   "held by [red/eval /jobs/red/eval-x1] (4) and [red/job.2 /jobs/red/job.2].",
		"1 job: red/job (cpu: 4).":              "1 job: [red/job /jobs/red/job.2] (cpu: 4).",
		"went to blue/job/own of quota blue.":   "went to [blue/job/own /jobs/blue/own-x] of quota blue.",
		"red/evaluation, xred/eval, red/eval/":  "red/evaluation, xred/eval, red/eval/",
		"quota , queue  ()":                     "quota , queue  ()",
		"red/first":                             "[red/first /jobs/red/first]",
		"":                                      "",
	} {
		var got strings.Builder
		for _, p := range known.linked(text) {
			if p.Link == "" {
				got.WriteString(p.Text)
				continue
			}
			got.WriteString("[" + p.Text + " " + p.Link + "]")
		}
		require.Equal(t, want, got.String())
	}
}

// The page and the command say the same words.
func TestWhyHasTheWordsOfTheCommand(t *testing.T) {
	world := factstest.Firm(3)
	story, err := (&factstest.Person{World: world}).Story(t.Context(), "red", "job-script")
	require.NoError(t, err)
	b := whyOf(factstest.Now, story)
	join := func(pieces []piece) (text string) {
		for _, p := range pieces {
			text += p.Text
		}
		return text
	}
	lines := screen.Short(factstest.Now, story)
	require.Equal(t, lines[0].Text, join(b.About))
	var topics []string
	for i, line := range b.Lines {
		require.Equal(t, lines[i+1], screen.Line{Topic: line.Topic, Text: join(line.Text)})
		topics = append(topics, line.Topic)
	}
	require.Equal(t, []string{screen.TopicShort, screen.TopicEnd, screen.TopicShare, screen.TopicAhead, screen.TopicWhen,
		screen.TopicHelps}, topics)
	require.Len(t, b.Parts, len(screen.Wide(factstest.Now, story, mostRows)))
}
