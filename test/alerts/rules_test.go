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
	"encoding/json"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// rules of the PrometheusRule. Prometheus parses them as it parses a rule file.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile("../../manifests/components/monitoring/prometheusrule.yaml")
	require.NoError(t, err)
	var object struct {
		APIVersion string    `yaml:"apiVersion"`
		Kind       string    `yaml:"kind"`
		Spec       yaml.Node `yaml:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(text, &object))
	require.Equal(t, "monitoring.coreos.com/v1 PrometheusRule", object.APIVersion+" "+object.Kind)
	spec, err := yaml.Marshal(&object.Spec)
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(spec, false, model.LegacyValidation)
	require.Empty(t, errs)
	require.Len(t, groups.Groups, 1)
	require.NotEmpty(t, groups.Groups[0].Rules)
	return groups.Groups[0].Rules
}

// query of a panel of the dashboard.
type query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

type panel struct {
	Type    string  `json:"type"`
	Targets []query `json:"targets"`
}

func dashboardPanels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("../../manifests/components/monitoring/dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []panel `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	return dashboard.Panels
}

func dashboardQueries(t *testing.T) (out []query) {
	t.Helper()
	for _, p := range dashboardPanels(t) {
		out = append(out, p.Targets...)
	}
	return out
}

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
}

// firing is an alert with its labels and the summary that a person gets.
type firing struct{ alert, labels, summary string }

// evaluate gives the alerts of the rules that fire at some time until the end, each with the first time.
func evaluate(t *testing.T, all []rulefmt.Rule, s *series, end time.Duration) map[firing]time.Duration {
	t.Helper()
	engine := newEngine()
	fired := map[firing]time.Duration{}
	for i := range all {
		since := map[string]time.Duration{}
		for at := time.Duration(0); at <= end; at += interval {
			q, err := engine.NewInstantQuery(t.Context(), s, nil, all[i].Expr, time.UnixMilli(at.Milliseconds()))
			require.NoError(t, err)
			result := q.Exec(t.Context())
			require.NoError(t, result.Err, all[i].Alert)
			require.Empty(t, result.Warnings, all[i].Alert)
			vector, err := result.Vector()
			require.NoError(t, err)
			active := map[string]time.Duration{}
			for _, one := range vector {
				key := one.Metric.String()
				active[key] = at
				if before, ok := since[key]; ok {
					active[key] = before
				}
				if at-active[key] < time.Duration(all[i].For) {
					continue
				}
				f := firing{all[i].Alert, key, expand(t, all[i].Annotations["summary"], one)}
				if _, ok := fired[f]; !ok {
					fired[f] = at
				}
			}
			since = active
			q.Close()
		}
	}
	return fired
}

// expand a template as Prometheus does.
func expand(t *testing.T, text string, of promql.Sample) string {
	t.Helper()
	data := template.AlertTemplateData(of.Metric.Map(), nil, "", of)
	text = "{{$labels := .Labels}}{{$value := .Value}}" + text
	out, err := template.NewTemplateExpander(t.Context(), text, "summary", data, 0, nil, &url.URL{}, nil).Expand()
	require.NoError(t, err)
	return out
}

// parse an expression and give its selectors with the nodes above each.
func parse(t *testing.T, expr string, visit func(node parser.Node, above []parser.Node)) {
	t.Helper()
	e, err := parser.ParseExpr(expr)
	require.NoError(t, err)
	parser.Inspect(e, func(node parser.Node, above []parser.Node) error {
		if node != nil {
			visit(node, above)
		}
		return nil
	})
}
