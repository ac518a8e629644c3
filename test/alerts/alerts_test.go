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

package alerts

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// healthy are series of two processes that lead.
var healthy = []string{
	`scheduler_jobqueue_startup_seconds{stage="Deciding",instance="s"} 1x240`,
	`leader_election_master_status{name="jobqueue-controller",instance="c"} 1x240`,
}

// scenario of one alert: it fires on the series, for the first time after so long, and on those of calm nothing does.
type scenario struct {
	alert   string
	without string // prefix of the healthy series that is left out
	series  []string
	after   time.Duration
	labels  string
	summary string
	calm    [][]string
}

func behind(instance string) []string {
	name := `workqueue_queue_duration_seconds_bucket{controller="job-v1-batch",name="job-v1-batch",instance="` + instance
	return []string{name + `",le="10"} 0+1x240`, name + `",le="100"} 0+10x240`, name + `",le="+Inf"} 0+10x240`}
}

var scenarios = []scenario{
	{
		alert: "JobqueueNoLeader", without: "scheduler_jobqueue_startup",
		series:  []string{`scheduler_jobqueue_startup_seconds{stage="Synced",instance="s"} 1x240`},
		after:   5 * time.Minute,
		labels:  `{stage="Deciding"}`,
		summary: "No scheduler decides about units.",
	},
	{
		alert:   "JobqueueDecisionsStopped",
		series:  []string{`scheduler_jobqueue_decision_backoff_seconds 1 2 4 8x240`},
		after:   2 * time.Minute,
		labels:  `{}`,
		summary: "The core panics again and again; nothing is admitted.",
		calm:    [][]string{{`scheduler_jobqueue_decision_backoff_seconds 1 2 4 0x240`}},
	},
	{
		alert:   "JobqueueStateWrong",
		series:  []string{`scheduler_jobqueue_ledger_differences{kind="unit"} 0 0 3x240`},
		after:   time.Minute,
		labels:  `{kind="unit"}`,
		summary: "An audit found 3 differences of kind unit.",
		calm:    [][]string{{`scheduler_jobqueue_ledger_differences{kind="unit"} 0x240`}},
	},
	{
		alert: "JobqueueNotMoving",
		series: []string{
			`scheduler_jobqueue_pending_units{queue="q",quota="a"} 7x240`,
			`scheduler_jobqueue_admitted_units{queue="q",quota="a"} 0x240`,
			`scheduler_jobqueue_admissions_total{queue="q",quota="a"} 5x240`,
			`scheduler_jobqueue_pending_units{queue="q",quota="b"} 7x240`,
			`scheduler_jobqueue_admitted_units{queue="q",quota="b"} 1x240`,
		},
		after:   30 * time.Minute,
		labels:  `{queue="q", quota="a"}`,
		summary: "7 units of quota a wait in queue q, and none is admitted.",
		calm: [][]string{{
			`scheduler_jobqueue_pending_units{queue="q",quota="a"} 7x240`,
			`scheduler_jobqueue_admitted_units{queue="q",quota="a"} 1x240`,
		}, {
			// Jobs are so short that no scrape sees one.
			`scheduler_jobqueue_pending_units{queue="q",quota="a"} 7x240`,
			`scheduler_jobqueue_admitted_units{queue="q",quota="a"} 0x240`,
			`scheduler_jobqueue_admissions_total{queue="q",quota="a"} 0+1x240`,
		}},
	},
	{
		alert: "JobqueueWaitTooLong",
		series: []string{
			`scheduler_jobqueue_wait_objective_seconds{queue="q"} 3600x240`,
			`scheduler_jobqueue_longest_wait_start_seconds{queue="q"} 600x143 6000x96`,
		},
		after:   time.Hour + 11*time.Minute + interval,
		labels:  `{queue="q"}`,
		summary: "A unit of queue q has waited for 1h 1m 30s, longer than the objective of the queue.",
		calm: [][]string{{
			// Each unit waits for less than the objective.
			`scheduler_jobqueue_wait_objective_seconds{queue="q"} 3600x240`,
			`scheduler_jobqueue_longest_wait_start_seconds{queue="q"} 600x100 3600x140`,
			`scheduler_jobqueue_wait_objective_seconds{queue="r"} 60x240`,
			`scheduler_jobqueue_longest_wait_start_seconds{queue="r"} 0+30x240`,
		}, {
			`scheduler_jobqueue_longest_wait_start_seconds{queue="q"} 0x240`,
		}},
	},
	{
		alert:   "JobqueueParkedUnits",
		series:  []string{`scheduler_jobqueue_parked_units{queue="q",quota="a"} 2x240`},
		after:   time.Hour,
		labels:  `{queue="q", quota="a"}`,
		summary: "2 units of quota a are parked in queue q.",
		calm:    [][]string{{`scheduler_jobqueue_parked_units{queue="q",quota="a"} 2x100 0x100`}},
	},
	{
		alert:   "JobqueueRepeatedEvictions",
		series:  []string{`scheduler_jobqueue_repeated_evictions_total{queue="q"} 0x9 1x230`},
		after:   10 * interval,
		labels:  `{queue="q"}`,
		summary: "Units of queue q were evicted for the sixth time or more within an hour.",
		calm: [][]string{{
			`scheduler_jobqueue_evicted_units_total{queue="q",reason="Reclaimed"} 0+3x240`,
			`scheduler_jobqueue_repeated_evictions_total{queue="q"} 0x240`,
		}},
	},
	{
		alert: "JobqueueSlowPass",
		series: []string{
			`scheduler_jobqueue_cycle_duration_seconds_bucket{le="0.8"} 0+98x240`,
			`scheduler_jobqueue_cycle_duration_seconds_bucket{le="1.6"} 0+100x240`,
			`scheduler_jobqueue_cycle_duration_seconds_bucket{le="+Inf"} 0+100x240`,
		},
		after:   15*time.Minute + interval,
		labels:  `{}`,
		summary: "One in a hundred cycles of admission takes 1.2s or longer.",
		calm: [][]string{{
			`scheduler_jobqueue_cycle_duration_seconds_bucket{le="0.8"} 0+99x240`,
			`scheduler_jobqueue_cycle_duration_seconds_bucket{le="1.6"} 0+100x240`,
			`scheduler_jobqueue_cycle_duration_seconds_bucket{le="+Inf"} 0+100x240`,
		}},
	},
	{
		alert: "JobqueueWritesUnknown",
		series: []string{
			`scheduler_jobqueue_status_writes_total{kind="admit",outcome="unknown"} 0+1x240`,
			`scheduler_jobqueue_status_writes_total{kind="admit",outcome="confirmed"} 0+5x240`,
		},
		after:   10*time.Minute + interval,
		labels:  `{kind="admit"}`,
		summary: "Status writes of kind admit get no answer from the API server.",
		calm: [][]string{{
			`scheduler_jobqueue_status_writes_total{kind="admit",outcome="unknown"} 0x9 20x230`,
			`scheduler_jobqueue_status_writes_total{kind="admit",outcome="confirmed"} 0+5x240`,
		}},
	},
	{
		alert:   "JobqueueConfigDiffers",
		series:  []string{`scheduler_jobqueue_managed_jobs_config_differs 1x240`},
		after:   10 * time.Minute,
		labels:  `{}`,
		summary: "Scheduler and controller disagree about which jobs are managed.",
		calm:    [][]string{{`scheduler_jobqueue_managed_jobs_config_differs 1x10 0x230`}},
	},
	{
		alert: "JobqueueControllerAbsent", without: "leader_election",
		series:  []string{`leader_election_master_status{name="jobqueue-controller",instance="c"} 0x240`},
		after:   5 * time.Minute,
		labels:  `{}`,
		summary: "No controller leads.",
		calm:    [][]string{{`leader_election_master_status{name="jobqueue-controller",instance="d"} 0x240`}},
	},
	{
		alert:   "JobqueueControllerBehind",
		series:  behind("c"),
		after:   15*time.Minute + interval,
		labels:  `{controller="job-v1-batch"}`,
		summary: "One in ten objects waits 1m 30s or longer for reconciler job-v1-batch.",
		calm:    [][]string{behind("another program")},
	},
	{
		alert:   "JobqueueVisibilityUnavailable",
		series:  []string{`aggregator_unavailable_apiservice{name="v1alpha1.visibility.koord-queue.x-k8s.io"} 1x240`},
		after:   10 * time.Minute,
		labels:  `{name="v1alpha1.visibility.koord-queue.x-k8s.io"}`,
		summary: "The API server does not reach v1alpha1.visibility.koord-queue.x-k8s.io.",
		calm:    [][]string{{`aggregator_unavailable_apiservice{name="v1beta1.metrics.k8s.io"} 1x240`}},
	},
}

func TestEachAlertFires(t *testing.T) {
	all := rules(t)
	var named, tested []string
	for _, r := range all {
		named = append(named, r.Alert)
	}
	for _, s := range scenarios {
		tested = append(tested, s.alert)
	}
	require.Equal(t, named, tested, "each alert has a scenario")
	for _, s := range scenarios {
		t.Run(s.alert, func(t *testing.T) {
			require.Equal(t, map[firing]time.Duration{{s.alert, s.labels, s.summary}: s.after},
				evaluate(t, all, seriesOf(t, s.without, s.series), held))
			for _, calm := range s.calm {
				require.Empty(t, evaluate(t, all, seriesOf(t, "", calm), held), "%q", calm)
			}
		})
	}
}

// seriesOf are healthy ones, but for those with a prefix, and these.
func seriesOf(t *testing.T, without string, texts []string) *series {
	t.Helper()
	s := newSeries()
	for _, text := range healthy {
		if without == "" || !strings.HasPrefix(text, without) {
			s.addText(t, text)
		}
	}
	for _, text := range texts {
		s.addText(t, text)
	}
	return s
}
