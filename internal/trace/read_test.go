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

package trace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// swf is a line with these fields, and unknown ones elsewhere.
func swf(values map[int]string) string {
	line := make([]string, fields)
	for i := range line {
		line[i] = "-1"
		if value, ok := values[i+1]; ok {
			line[i] = value
		}
	}
	return strings.Join(line, " ") + "\n"
}

func TestReadSWF(t *testing.T) {
	text := "; Version: 2.2\n;MaxNodes: 4\n; MaxProcs: 8 (of 9)\n; Note: MaxProcs: many\n\n" +
		swf(map[int]string{1: "1", 2: "60", 4: "30", 5: "2", 8: "4", 9: "40", 12: "7", 13: "3", 15: "1"}) +
		"  " + swf(map[int]string{1: "2", 2: "0", 4: "10.5", 5: "2", 12: "8"}) +
		swf(map[int]string{1: "3", 2: "60", 4: "100", 8: "1", 9: "90"}) +
		swf(map[int]string{1: "4", 2: "5", 4: "0", 8: "1"}) +
		swf(map[int]string{1: "5", 2: "5", 4: "1", 8: "9"}) +
		swf(map[int]string{1: "6", 2: "5", 4: "1", 8: "1e300"}) +
		swf(map[int]string{1: "7", 2: "5", 4: "1", 8: "-7"}) +
		swf(map[int]string{1: "8", 4: "1", 8: "1"})
	w, changes, err := Read(strings.NewReader(text), 0, "cpu")
	require.NoError(t, err)
	require.Equal(t, &Workload{Processors: 8, Jobs: []Job{
		{ID: "2", Submit: 0, Run: 10500 * time.Millisecond, Size: 2, User: "8"},
		{
			ID: "1", Submit: time.Minute, Run: 30 * time.Second, Limit: 40 * time.Second, Size: 4, User: "7", Group: "3",
			Queue: "1",
		},
		{ID: "3", Submit: time.Minute, Run: 90 * time.Second, Limit: 90 * time.Second, Size: 1},
	}}, w)
	require.Equal(t, "Jobs left out: 5 (1 without a time of submission, 1 without a run time, 1 without a size, "+
		"2 larger than the machine). Run times cut to the limit of the job: 1.", changes.String())

	w, changes, err = Read(strings.NewReader(text), 3, "cpu")
	require.NoError(t, err)
	require.EqualValues(t, 3, w.Processors, "the caller's number counts")
	require.Equal(t, 3, changes.TooLarge)
	require.Empty(t, (&Changes{}).String())
	w, _, err = Read(strings.NewReader(strings.Replace(text, "MaxProcs", "Procs", 1)), 0, "cpu")
	require.NoError(t, err)
	require.EqualValues(t, 4, w.Processors)
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	job := swf(map[int]string{1: "1", 2: "0", 4: "1", 5: "1"})
	for _, c := range []struct{ text, says string }{
		{"", "does not say how many processors"},
		{job, "does not say how many processors"},
		{"; MaxProcs: -1\n" + job, "does not say how many processors"},
		{"; MaxProcs: 9999999999\n" + job, "does not say how many processors"},
		{"; MaxProcs: 1\n", "the trace has no job"},
		{"; MaxProcs: 1\n" + swf(nil), "no job to replay. Jobs left out: 1 (1 without a time of submission)."},
		{job + "1 2 3\n", "line 2: 3 fields"},
		{job + strings.TrimSpace(job) + " 1\n", "line 2: 19 fields"},
		{swf(map[int]string{2: "soon"}), `line 1: field 2: "soon" is not a number`},
		{swf(map[int]string{4: "NaN"}), `line 1: field 4: "NaN" is not a number`},
		{swf(map[int]string{9: "Inf"}), `line 1: field 9: "Inf" is not a number`},
		{swf(map[int]string{5: "x"}), `line 1: field 5: "x" is not a number`},
		{swf(map[int]string{4: "1e12"}), "line 1: field 4: 1e+12 s is more than a hundred years"},
		{job + ";" + strings.Repeat("x", maxLine) + "\n", "line 2: longer than 65536 bytes"},
		{"{", "line 1: unexpected end"},
		{"\n {\n\"nb_res\": \"x\"}", "line 2: 1 fields"},
		{"{\n\"nb_res\": \"x\"}", "line 2: json"},
		{`{"nb_res": 9999999999}`, "nb_res: 9999999999: must be between"},
		{`{"nb_res": 4, "jobs": [{"id": "a", "profile": "p"}]}`, `job a: no profile is called "p"`},
		{
			`{"nb_res": 4, "jobs": [{"id": 1, "subtime": 1e99, "profile": "p"}], "profiles": {"p": {"type": "delay"}}}`,
			"job 1: subtime: 1e+99 s is more",
		},
		{
			`{"nb_res": 4, "jobs": [{"id": 1, "res": 1, "profile": "p"}], "profiles": {"p": {"type": "parallel"}}}`,
			"1 without a run time",
		},
	} {
		_, _, err := Read(strings.NewReader(c.text), 0, "cpu")
		require.ErrorContains(t, err, c.says, "%q", c.text)
	}
	for _, processors := range []int64{-1, MaxProcessors + 1} {
		_, _, err := Read(strings.NewReader(job), processors, "cpu")
		require.ErrorContains(t, err, "must be between 1 and")
	}
}

func TestReadBoundsTheNumberOfJobs(t *testing.T) {
	r := swfReader{jobs: make([]Job, MaxJobs)}
	require.ErrorContains(t, r.line(swf(nil)), "more than 1000000 jobs")
}

func TestReadBatsim(t *testing.T) {
	w, changes, err := Read(strings.NewReader(` {
	"nb_res": 4, "command": "",
	"jobs": [
		{"id": "w!1", "subtime": 2.5, "walltime": 20, "res": 4, "profile": "long"},
		{"id": 2, "subtime": 1, "walltime": -1, "res": 1, "profile": "short", "user": "x"},
		{"id": 3, "subtime": 3, "walltime": 2, "res": 5, "profile": "short"},
		{"id": 4, "subtime": 3, "walltime": 2, "res": 1, "profile": "short"}
	],
	"profiles": {"long": {"type": "DelayProfile", "delay": 10.25}, "short": {"type": "delay", "delay": 3}}
}`), 0, "cpu")
	require.NoError(t, err)
	require.Equal(t, &Workload{Processors: 4, Jobs: []Job{
		{ID: "2", Submit: time.Second, Run: 3 * time.Second, Size: 1},
		{ID: "w!1", Submit: 2500 * time.Millisecond, Run: 10250 * time.Millisecond, Limit: 20 * time.Second, Size: 4},
		{ID: "4", Submit: 3 * time.Second, Run: 2 * time.Second, Limit: 2 * time.Second, Size: 1},
	}}, w)
	require.Equal(t, Changes{TooLarge: 1, Cut: 1}, changes)
}

func TestBelieved(t *testing.T) {
	require.Equal(t, time.Second, (&Job{Run: time.Second}).Believed())
	require.Equal(t, time.Minute, (&Job{Run: time.Second, Limit: time.Minute}).Believed())
}

// A workload that is written and read again is the same.
func TestWriteSWF(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w := &Workload{Processors: rapid.Int64Range(1, MaxProcessors).Draw(t, "processors")}
		name := rapid.SampledFrom([]string{"", "0", "1", "77"})
		at := time.Duration(0)
		for i := range rapid.IntRange(1, effort.Steps(40)).Draw(t, "jobs") {
			at += time.Duration(rapid.IntRange(0, 1000).Draw(t, "gap")) * time.Second
			j := Job{
				ID: fmt.Sprint(i + 1), Submit: at, Size: rapid.Int64Range(1, w.Processors).Draw(t, "size"),
				Run:  time.Duration(rapid.IntRange(1, 1e6).Draw(t, "run")) * time.Second,
				User: name.Draw(t, "user"), Group: name.Draw(t, "group"), Queue: name.Draw(t, "queue"),
			}
			if rapid.Bool().Draw(t, "limited") {
				j.Limit = j.Run + time.Duration(rapid.IntRange(0, 1e6).Draw(t, "spare"))*time.Second
			}
			w.Jobs = append(w.Jobs, j)
		}
		var b bytes.Buffer
		require.NoError(t, WriteSWF(&b, w))
		read, changes, err := Read(&b, 0, "cpu")
		require.NoError(t, err)
		require.Zero(t, changes)
		require.Equal(t, w, read)
	})
}

func TestWriteSWFWritesNumbersOnly(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteSWF(&b, &Workload{Processors: 1, Jobs: []Job{{
		ID: "research/train", Submit: 1500 * time.Millisecond, Run: time.Millisecond, Limit: time.Second, Size: 1,
		User: "research team", Group: "007", Queue: "-3",
	}}}))
	require.Contains(t, b.String(), "\n1 1 -1 1 1 -1 -1 1 1 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
}

// Any input gives an error, or a workload that keeps its promises and can be written and read.
// The history of our scheduler is a trace of the jobs that have ended.
func TestReadHistory(t *testing.T) {
	at := func(event, unit string, minute int, more string) string {
		return fmt.Sprintf(`{"v":1,"event":%q,"namespace":"ns","unit":%q,"queue":"q","created":"2026-01-01T00:%02d:00Z"%s}`,
			event, unit, minute, more) + "\n"
	}
	w, changes, err := Read(strings.NewReader(at("Enqueued", "a", 1, "")+
		at("Succeeded", "a", 1, `,"ranSeconds":60,"limitSeconds":90,"held":{"cpu":1.5,"gpu":8}`)+
		at("Failed", "b", 0, `,"ranSeconds":30,"held":{"cpu":2}`)+
		at("Succeeded", "c", 2, `,"ranSeconds":30,"held":{"gpu":2}`)), 4, "cpu")
	require.NoError(t, err)
	require.Equal(t, Changes{NoSize: 1}, changes)
	require.Equal(t, []Job{
		{ID: "ns/b", Run: 30 * time.Second, Size: 2, User: "ns", Queue: "q"},
		{ID: "ns/a", Submit: time.Minute, Run: time.Minute, Limit: 90 * time.Second, Size: 2, User: "ns", Queue: "q"},
	}, w.Jobs)
	_, _, err = Read(strings.NewReader(at("Succeeded", "a", 1, "")+"{"), 4, "cpu")
	require.ErrorContains(t, err, "line 2")
}

func FuzzRead(f *testing.F) {
	f.Add("; MaxProcs: 8\n"+swf(map[int]string{1: "1", 2: "0", 4: "30", 5: "2", 9: "40"}), int64(0))
	f.Add(swf(map[int]string{1: "1", 2: "0.5", 4: "1e9", 8: "4"}), int64(4))
	f.Add(`{"nb_res": 4, "jobs": [{"id": 1, "subtime": 1, "res": 1, "walltime": 5, "profile": "p"}],
"profiles": {"p": {"type": "delay", "delay": 2.5}}}`, int64(0))
	f.Fuzz(func(t *testing.T, text string, processors int64) {
		w, _, err := Read(strings.NewReader(text), processors, "cpu")
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, j := range w.Jobs {
			require.True(t, j.Size >= 1 && j.Size <= w.Processors && j.Run > 0 && (j.Limit == 0 || j.Limit >= j.Run), "%+v", j)
			require.GreaterOrEqual(t, j.Submit, last)
			last = j.Submit
		}
		var b bytes.Buffer
		require.NoError(t, WriteSWF(&b, w))
		again, changes, err := Read(&b, 0, "cpu")
		require.NoError(t, err, "%s", b.String())
		require.Zero(t, changes)
		require.Len(t, again.Jobs, len(w.Jobs))
	})
}
