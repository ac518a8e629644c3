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
	"flag"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

var golden = flag.Bool("golden", false, "write the values that the picture of the dashboard shows")

// values of the dashboard, from which hack/generate draws its picture.
const values = "../../hack/generate/pictures/dashboard.json"

const step = 3 * time.Second // about one scrape

type line struct {
	Name string `json:"name"`
	// Points have three digits; null is none.
	Points []*float64 `json:"points"`
}

// TestDashboardPicture: the picture shows what the queries of the dashboard answer about the demo.
func TestDashboardPicture(t *testing.T) {
	s := recording(t)
	begin, end := s.bounds()
	engine := newEngine()
	var lines [][]line
	for _, p := range dashboardPanels(t) {
		found := []line{}
		for _, q := range p.Targets {
			ranged, err := engine.NewRangeQuery(t.Context(), s, nil, q.Expr, time.UnixMilli(begin),
				time.UnixMilli(end), step)
			require.NoError(t, err)
			result := ranged.Exec(t.Context())
			require.NoError(t, result.Err, q.Expr)
			matrix, err := result.Matrix()
			require.NoError(t, err)
			for _, one := range matrix {
				found = append(found, line{nameOf(q.Legend, &one), points(&one, begin, end)})
			}
		}
		if p.Type != "row" {
			lines = append(lines, found)
		}
	}
	text, err := json.Marshal(map[string]any{"seconds": (end - begin) / 1000, "panels": lines})
	require.NoError(t, err)
	if *golden {
		require.NoError(t, os.WriteFile(values, append(text, '\n'), 0o644))
	}
	want, err := os.ReadFile(values)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(text), "write it with -golden, and run make generate")
}

// bounds of the recording in milliseconds, from the first scrape of the scheduler, and without what is repeated.
func (s *series) bounds() (begin, end int64) {
	begin = math.MaxInt64
	for _, one := range s.all {
		end = max(end, one.samples[len(one.samples)-1].T()-held.Milliseconds())
		if one.labels.Get(model.InstanceLabel) == "scheduler" {
			begin = min(begin, one.samples[0].T())
		}
	}
	return begin, end
}

func nameOf(pattern string, one *promql.Series) string {
	return legend.ReplaceAllStringFunc(pattern, func(text string) string {
		return one.Metric.Get(legend.FindStringSubmatch(text)[1])
	})
}

func points(one *promql.Series, begin, end int64) []*float64 {
	out := make([]*float64, (end-begin)/step.Milliseconds()+1)
	for _, p := range one.Floats {
		if i := (p.T - begin) / step.Milliseconds(); !math.IsNaN(p.F) {
			short, err := strconv.ParseFloat(strconv.FormatFloat(p.F, 'g', 3, 64), 64)
			if err == nil {
				out[i] = &short
			}
		}
	}
	return out
}
