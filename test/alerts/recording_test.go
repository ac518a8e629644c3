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
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"
)

// held is for how long the last values of the demo are repeated after its end.
const held = 2 * time.Hour

var scrapeLine = regexp.MustCompile(`(?m)^# scrape (\S+) (\d+)\n`)

// recording of the demo, written by record.sh. A series that a scrape lacks has ended, as in Prometheus.
func recording(t *testing.T) *series {
	t.Helper()
	file, err := os.Open("testdata/demo.txt.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	raw, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	text := string(raw)
	heads := scrapeLine.FindAllStringSubmatchIndex(text, -1)
	require.NotEmpty(t, heads)
	s, last := newSeries(), map[string]map[string]scraped{}
	end := time.Duration(0)
	for i, head := range heads {
		until := len(text)
		if i+1 < len(heads) {
			until = heads[i+1][0]
		}
		process := text[head[2]:head[3]]
		seconds, err := strconv.Atoi(text[head[4]:head[5]])
		require.NoError(t, err)
		end = time.Duration(seconds) * time.Second
		now := parseScrape(t, text[head[1]:until], process)
		for key, one := range last[process] {
			if _, still := now[key]; !still {
				s.add(one.labels, end, math.Float64frombits(value.StaleNaN))
			}
		}
		for _, one := range now {
			s.add(one.labels, end, one.value)
		}
		last[process] = now
	}
	for at := end + interval; at <= end+held; at += interval {
		for _, now := range last {
			for _, one := range now {
				s.add(one.labels, at, one.value)
			}
		}
	}
	return s
}

type scraped struct {
	labels labels.Labels
	value  float64
}

func parseScrape(t *testing.T, text, process string) map[string]scraped {
	t.Helper()
	out := map[string]scraped{}
	p := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		p.Labels(&of)
		_, _, v := p.Series()
		of = labels.NewBuilder(of).Set(model.InstanceLabel, process).Labels()
		out[of.String()] = scraped{of, v}
	}
}

// count the series of a name that match.
func (s *series) count(name string, matcher *labels.Matcher) int {
	n := 0
	for _, one := range s.all {
		if one.labels.Get(labels.MetricName) == name && matcher.Matches(one.labels.Get(matcher.Name)) {
			n++
		}
	}
	return n
}

func TestNothingFiresOnTheDemo(t *testing.T) {
	s := recording(t)
	require.Empty(t, evaluate(t, rules(t), s, held))
	// The dashboard has something to show.
	engine := newEngine()
	for _, q := range dashboardQueries(t) {
		instant, err := engine.NewInstantQuery(t.Context(), s, nil, q.Expr, time.UnixMilli((2 * time.Minute).Milliseconds()))
		require.NoError(t, err)
		result := instant.Exec(t.Context())
		require.NoError(t, result.Err, q.Expr)
		if !strings.Contains(q.Expr, "evicted_units") { // no job is evicted in the demo
			require.NotEmpty(t, result.String(), q.Expr)
		}
	}
}
