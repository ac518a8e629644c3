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

package charts

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func amounts(numbers ...float64) (all []Amount) {
	for _, n := range numbers {
		all = append(all, Amount{Number: n, Text: fmt.Sprint(n)})
	}
	return all
}

func TestBar(t *testing.T) {
	for name, c := range map[string]struct {
		pieces, marks []float64
		spans, at     string
	}{
		"within the limit":       {[]float64{20, 0, 30}, []float64{100}, "0+20 20+30", "100"},
		"pending is far greater": {[]float64{50, 1e9}, []float64{100}, "0+45.5 45.5+54.5", "90.9"},
		"beyond the limit":       {[]float64{105}, []float64{50, 100}, "0+100", "47.6 95.2"},
		"without a limit":        {[]float64{1, 3}, nil, "0+25 25+75", ""},
		"nothing":                {[]float64{0, 0}, []float64{0}, "", "0"},
	} {
		b := NewBar("", amounts(c.pieces...), amounts(c.marks...))
		spans, at := "", ""
		for _, s := range b.Spans {
			spans += fmt.Sprintf(" %s+%s", s.From, s.Width)
		}
		for _, m := range b.Marks {
			at += " " + m.At.String()
		}
		require.Equal(t, []string{c.spans, c.at}, []string{trim(spans), trim(at)}, name)
	}
}

func trim(s string) string {
	if s == "" {
		return ""
	}
	return s[1:]
}

func TestSteps(t *testing.T) {
	s := NewSteps("", []float64{0, 10}, 20)
	require.Equal(t, "0,100 0,100 50,100 50,50 100,50 100,100", s.Area)
	require.Equal(t, "0", s.Limit.String())
	require.Equal(t, "50", NewSteps("", []float64{40}, 20).Limit.String())
	require.Nil(t, NewSteps("", []float64{0}, 0).Limit)
}

func TestTimeline(t *testing.T) {
	at := func(minutes int) time.Time { return time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute) }
	line := NewTimeline("", []Stretch{{"waiting", "Waits", at(0), at(30)}, {"used", "Runs", at(30), at(40)}})
	require.Equal(t, []Span{
		{Class: "waiting", Name: "Waits", Width: 75}, {Class: "used", Name: "Runs", From: 75, Width: 25},
	}, line.Spans)
	require.Empty(t, NewTimeline("", nil).Spans)
}

func TestColumns(t *testing.T) {
	c := NewColumns("", amounts(0, 5, 10))
	require.Equal(t, "10", c.Most)
	require.Equal(t, []Percent{0, 50, 100}, []Percent{c.Items[0].Height, c.Items[1].Height, c.Items[2].Height})
	require.Empty(t, NewColumns("", amounts(0)).Most)
}
