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

package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Minute))) }

var none = math.NaN()

// pictures with what those of the documentation lack: long names, gaps, all causes.
var pictures = map[string]*Picture{
	"tree": (&Tree{Title: "Quotas of cpu", Unit: "cpu", Levels: []Level{
		{Name: "firm", Min: 8, Share: 8, Max: 8, Used: 6, Reserved: 1, Leaving: 2, Claimed: 1, Pending: 3},
		{Name: "red", Depth: 1, Min: 4, Share: 5, Max: 8, Used: 6, Reserved: 1, Leaving: 2},
		{Name: "blue", Depth: 1, Min: 4, Share: 3, Max: 6, Claimed: 1, Pending: 3},
		{Name: "a-<quota>-with-a-name-that-is-far-too-long", Depth: 2, Min: none, Share: none, Max: none, Used: 2},
	}}).Draw(),
	"trees": Trees("Quotas of cpu at two moments",
		&Tree{Title: "before", Levels: []Level{{Name: "red", Min: 4, Share: 4, Max: 8, Used: 6}}},
		&Tree{Title: "after", Levels: []Level{{Name: "red", Min: 4, Share: 4, Max: 8, Used: 4}}}),
	"charts": (&Charts{Title: "Two charts", Length: time.Hour, Rows: [][]*Chart{{
		{Title: "jobs", Lines: []Line{
			{Name: "red", Points: []float64{0, 30, 37, 12}}, {Name: "blue", Points: []float64{3, none, 9, 9}},
		}},
		{Title: "waits", Unit: "s", Lines: []Line{{Name: "p95", Points: []float64{0.1, 0.4, 0.02, 0.3}}}},
	}}}).Draw(),
	"timeline": (&Timeline{Title: "job/train", Spans: []Span{
		{From: minute(0), To: minute(4), Cause: Ahead, Text: "behind job/fill"},
		{From: minute(4), To: minute(9), Cause: Quota, Text: "8 of cpu in firm"},
		{From: minute(9), To: minute(9.5), Cause: Check, Text: "budget"},
		{From: minute(9.5), To: minute(9.6), Cause: Placement},
		{From: minute(9.6), To: minute(15), Cause: Runs},
		{From: minute(15), To: minute(20), Cause: Quota, Text: "4 of cpu in firm"},
		{From: minute(20), To: minute(31.5), Cause: Runs},
	}, Events: []Event{
		{At: minute(15), Text: "evicted: blue takes back its min"}, {At: minute(31.5), Text: "succeeded"},
	}}).Draw(),
}

// A picture is well formed, and no value leaves it.
func TestPictures(t *testing.T) {
	for name, p := range pictures {
		require.NotRegexp(t, `="[^"]*(NaN|Inf)`, string(p.File()), name)
		for decoder := xml.NewDecoder(bytes.NewReader(p.File())); ; {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
		}
	}
}

// The table says what the picture shows, also to those who see no picture.
func TestTable(t *testing.T) {
	require.Equal(t, `firm: min 8 cpu, share 8 cpu, max 8 cpu, used 6 cpu, reserved 1 cpu, evicted, still held 2 cpu, `+
		`claimed 1 cpu, pending jobs 3.`, strings.Split(pictures["tree"].text(), "\n")[0])
	require.Equal(t, []string{"2026-01-01 12:15:00", "", "", "", "evicted: blue takes back its min"},
		pictures["timeline"].Rows[5])
	for name, p := range pictures {
		for _, row := range p.Rows {
			require.Len(t, row, len(p.Header), name)
		}
	}
}
