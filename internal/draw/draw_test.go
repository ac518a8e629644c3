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
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var golden = flag.Bool("golden", false, "write the pictures of testdata")

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Minute))) }

var none = math.NaN()

// pictures that a person has looked at.
var pictures = map[string]*Picture{
	"tree": (&Tree{Title: "Quotas of cpu", Unit: "cpu", Levels: []Level{
		{Name: "firm", Min: 8, Share: 8, Max: 8, Used: 6, Reserved: 1, Leaving: 2, Claimed: 1, Pending: 3},
		{Name: "red", Depth: 1, Min: 4, Share: 5, Max: 8, Used: 6, Reserved: 1, Leaving: 2},
		{Name: "blue", Depth: 1, Min: 4, Share: 3, Max: 6, Claimed: 1, Pending: 3},
		{Name: "a-quota-with-a-name-that-is-far-too-long", Depth: 2, Min: none, Share: none, Max: none, Used: 2},
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

// Equal values give equal bytes.
func TestPictures(t *testing.T) {
	for name, p := range pictures {
		path := filepath.Join("testdata", name+".svg")
		if *golden {
			require.NoError(t, os.WriteFile(path, p.File(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(p.File()), name)
	}
}

// hostile is text that a user may write.
const hostile = `"><script>alert(1)</script>&\x00` + "\x00\x1b\xff" + `<image href="http://example.com/x"/>`

// Text of users stays text, and no value leaves the picture.
func TestHostileValues(t *testing.T) {
	levels := []Level{{Name: hostile, Min: none, Share: math.Inf(1), Max: -1, Used: math.Inf(1), Leaving: math.Inf(1)}}
	for _, v := range []float64{0, -1, 1e300, none, math.Inf(1), math.Inf(-1)} {
		levels = append(levels, Level{Name: hostile, Depth: 1000, Min: v, Share: v, Max: v, Used: v, Reserved: v, Leaving: v,
			Claimed: v, Pending: -1})
	}
	for name, p := range map[string]*Picture{
		"no level": (&Tree{Title: hostile}).Draw(),
		"no tree":  Trees(hostile),
		"levels":   (&Tree{Title: hostile, Unit: hostile, Levels: levels}).Draw(),
		"no chart": (&Charts{Rows: [][]*Chart{{}, nil}}).Draw(),
		"charts": (&Charts{Length: -1, Rows: [][]*Chart{{{}, {Title: hostile, Unit: hostile, Lines: []Line{
			{Name: hostile, Points: []float64{none, math.Inf(1), math.Inf(-1), 1e300}}, {}, {}, {}, {}, {}, {}, {},
		}}}}}).Draw(),
		"no span": (&Timeline{Title: hostile}).Draw(),
		"spans": (&Timeline{Spans: []Span{
			{From: minute(1), To: minute(0), Cause: Runs, Text: hostile}, {From: time.Time{}, To: minute(1e6), Cause: hostile},
		}, Events: []Event{{At: minute(2), Text: hostile}}}).Draw(),
		"one moment": (&Timeline{Spans: []Span{{From: noon, To: noon, Cause: Check}}}).Draw(),
	} {
		for _, svg := range [][]byte{p.Inline(), p.File()} {
			checkMarkup(t, name, svg)
		}
	}
}

var elements = []string{"svg", "title", "desc", "style", "rect", "line", "polyline", "text"}

// checkMarkup: the XML is well formed, and has only elements and attributes that a strict page allows.
func checkMarkup(t *testing.T, name string, svg []byte) {
	t.Helper()
	require.NotContains(t, strings.ReplaceAll(string(svg), escape(hostile), ""), "NaN", name)
	require.NotContains(t, string(svg), "Inf\"", name)
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, name)
		if start, ok := token.(xml.StartElement); ok {
			require.Contains(t, elements, start.Name.Local, name)
			for _, a := range start.Attr {
				require.NotContains(t, []string{"style", "href"}, a.Name.Local, name)
				require.NotEqual(t, "on", a.Name.Local[:min(2, len(a.Name.Local))], name)
			}
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
