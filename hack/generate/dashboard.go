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
	"bytes"
	"encoding/json"

	"github.com/koord-jobqueue/koord-jobqueue/hack/generate/pictures"
)

// panel of the dashboard: each query has a legend.
type panel struct {
	title, unit string
	queries     []query
}

type query struct{ expr, legend string }

// section of the dashboard: a row of panels under a title.
type section struct {
	title  string
	panels []panel
}

func quantile(q, by, metric string) string {
	return "histogram_quantile(" + q + ", sum by (" + by + ") (rate(" + metric + "_bucket[5m])))"
}

// sections is the table of all panels.
var sections = []section{
	{"Queues and quotas", []panel{
		{"Units that wait", "short", []query{
			{"sum by (queue, quota) (scheduler_jobqueue_pending_units)", "{{queue}}, {{quota}}"},
		}},
		{"Units that hold quota", "short", []query{
			{"sum by (queue, quota) (scheduler_jobqueue_admitted_units)", "{{queue}}, {{quota}}"},
		}},
		{"Parked units", "short", []query{
			{"sum by (queue, quota) (scheduler_jobqueue_parked_units)", "{{queue}}, {{quota}}"},
		}},
		{"Used of max, by quota", "percentunit", []query{{
			`max by (name, resource) (scheduler_elastic_quota_status{field="used"})
/ max by (name, resource) (scheduler_elastic_quota_status{field="max"} > 0)`,
			"{{name}}, {{resource}}",
		}}},
	}},
	{"Waits", []panel{
		{"From creation to admission", "s", []query{
			{quantile("0.5", "queue, le", "scheduler_jobqueue_admission_wait_seconds"), "{{queue}}, p50"},
			{quantile("0.95", "queue, le", "scheduler_jobqueue_admission_wait_seconds"), "{{queue}}, p95"},
		}},
		{"From admission until pods run", "s", []query{
			{quantile("0.95", "queue, le", "scheduler_jobqueue_admitted_to_running_seconds"), "{{queue}}, p95"},
		}},
	}},
	{"Decisions", []panel{
		{"Refusals, by reason", "short", []query{
			{`sum by (reason) (increase(scheduler_jobqueue_attempts_total{result="report-confirmed"}[5m]))`, "{{reason}}"},
		}},
		{"Evictions, by reason", "short", []query{
			{"sum by (queue, reason) (increase(scheduler_jobqueue_evicted_units_total[5m]))", "{{queue}}, {{reason}}"},
		}},
		{"Time of a cycle", "s", []query{
			{quantile("0.5", "le", "scheduler_jobqueue_cycle_duration_seconds"), "p50"},
			{quantile("0.99", "le", "scheduler_jobqueue_cycle_duration_seconds"), "p99"},
		}},
	}},
	{"Status writes", []panel{
		{"Writes per second, by outcome", "short", []query{
			{"sum by (kind, outcome) (rate(scheduler_jobqueue_status_writes_total[5m]))", "{{kind}}, {{outcome}}"},
		}},
		{"Time of a write, p99", "s", []query{
			{quantile("0.99", "kind, le", "scheduler_jobqueue_status_write_duration_seconds"), "{{kind}}"},
		}},
	}},
	{"Controller", []panel{
		{"Wait for a reconciler, p90", "s", []query{{
			`histogram_quantile(0.9, sum by (controller, le) (
  rate(workqueue_queue_duration_seconds_bucket[5m])
  and on (instance) leader_election_master_status{name="jobqueue-controller"} == 1
))`,
			"{{controller}}",
		}}},
		{"Failed reconciliations", "short", []query{{
			`sum by (controller) (
  increase(controller_runtime_reconcile_errors_total[5m])
  and on (instance) leader_election_master_status{name="jobqueue-controller"} == 1
)`,
			"{{controller}}",
		}}},
	}},
}

// picturedSections are the panels of the dashboard for its picture.
func picturedSections() []pictures.Section {
	all := make([]pictures.Section, len(sections))
	for i, s := range sections {
		for _, p := range s.panels {
			all[i] = append(all[i], pictures.Panel{Title: p.title, Unit: p.unit})
		}
	}
	return all
}

const (
	dashboardWidth = 24
	panelHeight    = 8
)

type object = map[string]any

// dashboardText is the dashboard as Grafana imports it. The data source is a variable.
func dashboardText() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	y := 0
	for _, s := range sections {
		panels = append(panels, object{
			"id": len(panels) + 1, "type": "row", "title": s.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"h": 1, "w": dashboardWidth, "x": 0, "y": y},
		})
		y++
		width := dashboardWidth / len(s.panels)
		for i, p := range s.panels {
			var targets []object
			for j, q := range p.queries {
				targets = append(targets, object{
					"refId": string(rune('A' + j)), "datasource": source, "expr": q.expr, "legendFormat": q.legend,
				})
			}
			panels = append(panels, object{
				"id": len(panels) + 1, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
				"gridPos":     object{"h": panelHeight, "w": width, "x": i * width, "y": y},
				"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
			})
		}
		y += panelHeight
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(object{
		"title": "koord-jobqueue", "uid": "koord-jobqueue", "tags": []string{"koord-jobqueue"},
		"description":   "Generated from hack/generate/dashboard.go by hack/generate.sh.",
		"schemaVersion": 39, "editable": true, "refresh": "30s", "timezone": "",
		"time":        object{"from": "now-6h", "to": "now"},
		"templating":  object{"list": []object{{"name": "datasource", "type": "datasource", "query": "prometheus"}}},
		"annotations": object{"list": []object{}},
		"panels":      panels,
	})
	return out.Bytes(), err
}
