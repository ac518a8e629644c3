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
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// interval between two samples of a series, and between two evaluations of a rule.
const interval = 30 * time.Second

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// series in memory, from the beginning of time.
type series struct {
	storage.MockQuerier
	all map[string]*storedSeries
}

type storedSeries struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newSeries() *series { return &series{all: map[string]*storedSeries{}} }

func (s *series) add(of labels.Labels, at time.Duration, v float64) {
	key := of.String()
	if s.all[key] == nil {
		s.all[key] = &storedSeries{labels: of}
	}
	s.all[key].samples = append(s.all[key].samples, sample{at.Milliseconds(), v})
}

// addText adds a series in the notation of Prometheus' own tests, with a sample in each interval.
func (s *series) addText(t *testing.T, text string) {
	t.Helper()
	of, values, err := parser.ParseSeriesDesc(text)
	require.NoError(t, err, text)
	for i, v := range values {
		if !v.Omitted {
			s.add(of, time.Duration(i)*interval, v.Value)
		}
	}
}

// Querier is that of a storage.Queryable.
func (s *series) Querier(_, _ int64) (storage.Querier, error) { return s, nil }

// Select finds the series that match.
func (s *series) Select(
	_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	var found []*storedSeries
	for _, one := range s.all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *storedSeries) int { return labels.Compare(a.labels, b.labels) })
	return &selected{found: found, index: -1}
}

// selected is a storage.SeriesSet.
type selected struct {
	found []*storedSeries
	index int
}

func (s *selected) Next() bool                        { s.index++; return s.index < len(s.found) }
func (s *selected) Err() error                        { return nil }
func (s *selected) Warnings() annotations.Annotations { return nil }
func (s *selected) At() storage.Series {
	one := s.found[s.index]
	return storage.NewListSeries(one.labels, one.samples)
}
