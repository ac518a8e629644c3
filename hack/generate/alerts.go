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

	"sigs.k8s.io/yaml"
)

// monitoringDir has what operators give to Prometheus and Grafana.
const monitoringDir = "manifests/components/monitoring"

// alertsDocument has a paragraph for each alert, below a headline that is its name.
const alertsDocument = "docs/operators/metrics.md"

const monitoringHeader = "# Generated from hack/generate/alerts.go by hack/generate.sh. DO NOT EDIT.\n"

// severity of an alert: whether somebody has to act at once, within a day, or has to know.
type severity string

const (
	critical severity = "critical"
	warning  severity = "warning"
	info     severity = "info"
)

// alert fires if the expression has had a value for so long, as Prometheus writes durations.
type alert struct {
	name     string
	expr     string
	lasts    string
	severity severity
	summary  string
}

// alerts is the table of all alerts. test/alerts evaluates each.
var alerts = []alert{
	{
		name:     "JobqueueNoLeader",
		expr:     `absent(scheduler_jobqueue_startup_seconds{stage="Deciding"})`,
		lasts:    "5m",
		severity: critical,
		summary:  "No scheduler decides about units.",
	},
	{
		name:     "JobqueueDecisionsStopped",
		expr:     `max(scheduler_jobqueue_decision_backoff_seconds) > 0`,
		lasts:    "2m",
		severity: critical,
		summary:  "The core panics again and again; nothing is admitted.",
	},
	{
		name:     "JobqueueStateWrong",
		expr:     `max by (kind) (scheduler_jobqueue_ledger_differences) > 0`,
		lasts:    "0s",
		severity: critical,
		summary:  "An audit found {{ $value }} differences of kind {{ $labels.kind }}.",
	},
	{
		name: "JobqueueNotMoving",
		expr: `sum by (queue, quota) (scheduler_jobqueue_pending_units) > 0
unless sum by (queue, quota) (scheduler_jobqueue_admitted_units) > 0
unless sum by (queue, quota) (increase(scheduler_jobqueue_admissions_total[30m])) > 0`,
		lasts:    "30m",
		severity: warning,
		summary: "{{ $value }} units of quota {{ $labels.quota }} wait in queue {{ $labels.queue }}, and none is " +
			"admitted.",
	},
	{
		name: "JobqueueWaitTooLong",
		// The alert uses the pending unit and not a quantile of admissions. A unit that is never admitted is in no quantile,
		// and a bucket of the histogram is four times as wide as the one before.
		expr: `time() - max by (queue) (scheduler_jobqueue_longest_wait_start_seconds)
> max by (queue) (scheduler_jobqueue_wait_objective_seconds)`,
		lasts:    "1m",
		severity: warning,
		summary: "A unit of queue {{ $labels.queue }} has waited for {{ $value | humanizeDuration }}, longer than the " +
			"objective of the queue.",
	},
	{
		name:     "JobqueueParkedUnits",
		expr:     `sum by (queue, quota) (scheduler_jobqueue_parked_units) > 0`,
		lasts:    "1h",
		severity: info,
		summary:  "{{ $value }} units of quota {{ $labels.quota }} are parked in queue {{ $labels.queue }}.",
	},
	{
		name:     "JobqueueRepeatedEvictions",
		expr:     `sum by (queue) (increase(scheduler_jobqueue_repeated_evictions_total[1h])) > 0`,
		lasts:    "0s",
		severity: warning,
		summary:  "Units of queue {{ $labels.queue }} were evicted for the sixth time or more within an hour.",
	},
	{
		name:     "JobqueueSlowPass",
		expr:     `histogram_quantile(0.99, sum by (le) (rate(scheduler_jobqueue_cycle_duration_seconds_bucket[10m]))) > 1`,
		lasts:    "15m",
		severity: warning,
		summary:  "One in a hundred cycles of admission takes {{ $value | humanizeDuration }} or longer.",
	},
	{
		name:     "JobqueueWritesUnknown",
		expr:     `sum by (kind) (rate(scheduler_jobqueue_status_writes_total{outcome="unknown"}[5m])) > 0`,
		lasts:    "10m",
		severity: warning,
		summary:  "Status writes of kind {{ $labels.kind }} get no answer from the API server.",
	},
	{
		name:     "JobqueueConfigDiffers",
		expr:     `max(scheduler_jobqueue_managed_jobs_config_differs) == 1`,
		lasts:    "10m",
		severity: warning,
		summary:  "Scheduler and controller disagree about which jobs are managed.",
	},
	{
		name:     "JobqueueControllerAbsent",
		expr:     `absent(leader_election_master_status{name="jobqueue-controller"} == 1)`,
		lasts:    "5m",
		severity: critical,
		summary:  "No controller leads.",
	},
	{
		name: "JobqueueControllerBehind",
		// Other programs serve metrics of that name. The lease says which instance is ours.
		expr: `histogram_quantile(0.9, sum by (controller, le) (
  rate(workqueue_queue_duration_seconds_bucket[10m])
  and on (instance) leader_election_master_status{name="jobqueue-controller"} == 1
)) > 60`,
		lasts:    "15m",
		severity: warning,
		summary: "One in ten objects waits {{ $value | humanizeDuration }} or longer for reconciler " +
			"{{ $labels.controller }}.",
	},
	{
		name: "JobqueueVisibilityUnavailable",
		expr: `max by (name) (
  aggregator_unavailable_apiservice{name="v1alpha1.visibility.koord-queue.x-k8s.io"}
) == 1`,
		lasts:    "10m",
		severity: warning,
		summary:  "The API server does not reach {{ $labels.name }}.",
	},
}

// runbook is where the paragraph of the alert is.
func (a *alert) runbook() string { return alertsDocument + "#" + strings.ToLower(a.name) }

// The types of a PrometheusRule that are used.
type (
	prometheusRule struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Metadata   ruleMetadata  `json:"metadata"`
		Spec       ruleGroupList `json:"spec"`
	}
	ruleMetadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	ruleGroupList struct {
		Groups []ruleGroup `json:"groups"`
	}
	ruleGroup struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for,omitempty"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
)

func prometheusRuleOf(all []alert) prometheusRule {
	group := ruleGroup{Name: "koord-jobqueue"}
	for i := range all {
		a := &all[i]
		group.Rules = append(group.Rules, rule{
			Alert: a.name, Expr: a.expr, For: a.lasts,
			Labels:      map[string]string{"severity": string(a.severity)},
			Annotations: map[string]string{"summary": a.summary, "runbook": a.runbook()},
		})
	}
	return prometheusRule{
		APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule",
		Metadata: ruleMetadata{Name: "koord-jobqueue", Namespace: "koord-queue"},
		Spec:     ruleGroupList{Groups: []ruleGroup{group}},
	}
}

// writeMonitoring writes the alerts and the dashboard.
func writeMonitoring(dir string) error {
	rules, err := yaml.Marshal(prometheusRuleOf(alerts))
	if err != nil {
		return err
	}
	text := append([]byte(monitoringHeader), rules...)
	if err := os.WriteFile(filepath.Join(dir, "prometheusrule.yaml"), text, 0o644); err != nil {
		return err
	}
	dashboard, err := dashboardText()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "dashboard.json"), dashboard, 0o644)
}
