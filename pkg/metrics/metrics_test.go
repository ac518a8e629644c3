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

package metrics

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md")

const document = "../../docs/reference/metrics.md"

func documentText() string {
	return "# Metrics\n\nThe scheduler serves these on /metrics. This file is generated from pkg/metrics:\n" +
		"`go test ./pkg/metrics -run TestDocument -update`.\n\n" + MarkdownTable()
}

func TestDocument(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(documentText()), 0o644))
	}
	have, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, documentText(), string(have), "regenerate with -update")
}

func TestTableIsSound(t *testing.T) {
	seen := map[Name]bool{}
	name := regexp.MustCompile(`^[a-z][a-z_]*[a-z]$`)
	for _, d := range definitions {
		require.Regexp(t, name, string(d.name))
		require.False(t, seen[d.name], "%s appears twice", d.name)
		seen[d.name] = true
		require.NotEmpty(t, d.help)
		require.Equal(t, d.kind == counter, strings.HasSuffix(string(d.name), "_total"), "%s", d.name)
		require.Equal(t, d.kind == histogram, d.buckets != nil, "%s", d.name)
	}
}

func TestEveryMetricIsServed(t *testing.T) {
	s := New()
	registry := metrics.NewKubeRegistry()
	s.MustRegister(registry.MustRegister)
	for _, d := range definitions {
		labels := make([]string, len(d.labels))
		switch d.kind {
		case counter:
			s.Inc(d.name, labels...)
		case gauge:
			s.Set(d.name, 1, labels...)
		case histogram:
			s.Observe(d.name, 1, labels...)
		}
	}
	served := map[string]bool{}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		served[f.GetName()] = true
	}
	for _, d := range definitions {
		require.True(t, served[Prefix+string(d.name)], "%s", d.name)
	}
}

func TestForgetTakesALabelSetAway(t *testing.T) {
	s := New()
	registry := metrics.NewKubeRegistry()
	s.MustRegister(registry.MustRegister)
	s.Set(PendingUnits, 1, "q", "a")
	s.Set(PendingUnits, 2, "q", "b")
	s.Forget(PendingUnits, "q", "a")
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Len(t, families[0].GetMetric(), 1)
}

func TestNilSetCountsNothing(t *testing.T) {
	var s *Set
	s.Inc(ResyncsTotal)
	s.Set(ConfigDiffers, 1)
	s.Observe(CycleDurationSeconds, 1)
	s.Forget(PendingUnits, "q", "a")
}
