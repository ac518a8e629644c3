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

package results

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay/measure"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// figuresOf are made up; the sizes and users of all policies are the same, as those of a workload are.
var update = flag.Bool("golden", false, "write the golden files")

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func golden(t *testing.T, name string, write func(*bytes.Buffer) error) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func figuresOf(scale float64, users ...string) *measure.Figures {
	f := &measure.Figures{
		Waits: measure.Waits{Jobs: 1200, Mean: 1234.5 * scale, Longest: 1_234_567 * scale}, Slowdown: 12.345 * scale,
		Use: 0.75, Loss: 0.05 * scale, Fairness: math.NaN(),
		BySize: []measure.Waits{{Name: "1", Jobs: 700, Mean: 10 * scale}, {Name: "2-4", Jobs: 500, Mean: 2948.8 * scale}},
	}
	for i, user := range users {
		f.ByUser = append(f.ByUser, measure.Waits{Name: user, Jobs: i + 1, Mean: float64(i) * scale})
	}
	return f
}

func TestReplays(t *testing.T) {
	w := &trace.Workload{Processors: 1024, Jobs: []trace.Job{
		{Run: 36 * time.Hour, Size: 512}, {Submit: 36 * time.Hour, Run: 3 * time.Hour, Size: 1024},
	}}
	golden(t, "replays", func(b *bytes.Buffer) error {
		return Replays(b, w, []Replayed{{Policy: "easy", Figures: figuresOf(1)}, {Policy: "fcfs", Figures: figuresOf(2)}})
	})
	var users []string
	for i := range 12 {
		users = append(users, fmt.Sprintf("user-%d", i))
	}
	users[1] = "\x1b[2Jevil"
	evicts := figuresOf(1, users...)
	evicts.Evictions, evicts.Lost, evicts.Unstarted, evicts.Fairness = 3, 7200, 1500, 0.987
	golden(t, "replays-users", func(b *bytes.Buffer) error {
		easy := Replayed{Policy: "easy", Figures: figuresOf(2, users...)}
		return Replays(b, w, []Replayed{{Policy: "queue", Figures: evicts}, easy})
	})
	golden(t, "replays-shaken", func(b *bytes.Buffer) error {
		return Replays(b, w, []Replayed{{
			Policy: "easy", Figures: figuresOf(1), Shaken: []*measure.Figures{figuresOf(1), figuresOf(2), figuresOf(1.5)},
		}})
	})
	golden(t, "replays-at-once", func(b *bytes.Buffer) error {
		one := &trace.Workload{Processors: 1, Jobs: []trace.Job{{Run: time.Second, Size: 1}}}
		return Replays(b, one, []Replayed{{Policy: "easy", Figures: &measure.Figures{
			Waits: measure.Waits{Jobs: 1}, Slowdown: 1, Use: math.NaN(), Loss: math.NaN(), Fairness: math.NaN(),
			BySize: []measure.Waits{{Name: "1", Jobs: 1}},
		}}})
	})
	var b bytes.Buffer
	ReplayProgress(&b, "easy", 1200, 28_000, 1500*time.Millisecond)
	require.Equal(t, "easy: 1,200 of 28,000 jobs after 2 s\n", b.String())
}

func TestGroupedNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 12: "12", 999: "999", 1000: "1,000", 1234567.8: "1,234,568"} {
		require.Equal(t, want, integer(x))
	}
	require.Equal(t, "12,345.68", decimals(12345.678))
	require.Equal(t, "-", decimals(math.Inf(1)))
}
