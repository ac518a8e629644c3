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
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

type metric struct {
	kind    string
	labels  []string
	library bool
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| (\\w+) \\| ([^|]*) \\|")
	legend   = regexp.MustCompile(`{{(\w+)}}`)
)

// table of all metrics, as the reference has it.
func table(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	out := map[string]metric{}
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		names := strings.FieldsFunc(row[4], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		out[row[1]] = metric{kind: row[3], labels: names, library: strings.Contains(row[2], ", by ")}
	}
	require.Greater(t, len(out), 30)
	return out
}

// find the metric of a series: a histogram has three kinds of series.
func find(all map[string]metric, series string) (metric, bool) {
	if m, ok := all[series]; ok && m.kind != "histogram" {
		return m, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name, cut := strings.CutSuffix(series, suffix)
		if m, ok := all[name]; cut && ok && m.kind == "histogram" {
			if suffix == "_bucket" {
				m.labels = append(slices.Clone(m.labels), labels.BucketLabel)
			}
			return m, true
		}
	}
	return metric{}, false
}

func TestQueriesNameMetricsOfTheTable(t *testing.T) {
	metrics, recorded := table(t), recording(t)
	queries := dashboardQueries(t)
	for _, r := range rules(t) {
		queries = append(queries, query{Expr: r.Expr})
	}
	for _, q := range queries {
		var groups []string
		parse(t, q.Expr, func(node parser.Node, above []parser.Node) {
			switch node := node.(type) {
			case *parser.AggregateExpr:
				groups = append(groups, node.Grouping...)
			case *parser.VectorSelector:
				checkSelector(t, metrics, recorded, node, above)
			}
		})
		for _, label := range legend.FindAllStringSubmatch(q.Legend, -1) {
			require.Contains(t, groups, label[1], "legend of %s", q.Expr)
		}
	}
}

// checkSelector requires a metric of that name with all matched and grouped labels. A rate must be of a counter, and
// the demo must have had the values.
func checkSelector(
	t *testing.T, metrics map[string]metric, recorded *series, selector *parser.VectorSelector, above []parser.Node,
) {
	t.Helper()
	m, ok := find(metrics, selector.Name)
	require.True(t, ok, "%s is in no table", selector.Name)
	var used []string
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != labels.MetricName {
			used = append(used, matcher.Name)
		}
	}
	counts := false
	for _, node := range above {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			used = append(used, node.Grouping...)
		case *parser.Call:
			counts = counts || node.Func.Name == "rate" || node.Func.Name == "increase"
		}
	}
	if strings.Contains(selector.String(), "leader_election_master_status") {
		used = nil // the right side of "and on (instance)": only its instance is used
	}
	require.Subset(t, m.labels, used, selector)
	require.Equal(t, m.kind != "gauge", counts, "%s is a %s", selector, m.kind)
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != labels.MetricName && matcher.String() != `outcome="unknown"` {
			require.NotZero(t, recorded.count(selector.Name, matcher), "%s of %s", matcher, selector.Name)
		}
	}
}

func TestTheRecordingAgreesWithTheTable(t *testing.T) {
	metrics := table(t)
	seen := map[string]bool{}
	for _, one := range recording(t).all {
		name := one.labels.Get(labels.MetricName)
		m, ok := find(metrics, name)
		require.True(t, ok, name)
		var names []string
		one.labels.Range(func(l labels.Label) {
			if l.Name != labels.MetricName && l.Name != model.InstanceLabel {
				names = append(names, l.Name)
			}
		})
		require.Subset(t, m.labels, names, name) // an empty label is none
		seen[name] = true
	}
	for name, m := range metrics {
		if m.library && m.kind != "histogram" && name != "kubernetes_feature_enabled" {
			require.True(t, seen[name], "%s is not served", name)
		}
	}
}
