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

package simulation

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
	"github.com/koord-jobqueue/koord-jobqueue/internal/whatif"
)

// factsText is of a cluster of 10 cpu. A job holds 8 for an hour more, and one of 6 and one of 4 wait for it in turn.
const factsText = `{"version":1,"at":"2026-01-01T12:00:00Z",
"quotas":[{"name":"root","limit":{"cpu":10000},"max":{"cpu":10000},"part":"top"},
  {"name":"q","parent":"root","limit":{"cpu":20000},"max":{"cpu":20000}}],
"queues":[{"name":"q","policy":"FIFO","maxPending":-1,"maxAdmitted":-1}],
"units":[
  {"key":"red/job-a","uid":"a","queue":"q","quota":"q","phase":"Running","attempts":1,"pods":1,
   "consumer":{"kind":"Job.v1.batch","namespace":"red","name":"a"},"request":{"cpu":8000},"held":{"cpu":8000},
   "recorded":true,"created":"2026-01-01T11:00:00Z","admitted":"2026-01-01T11:00:00Z","maximumExecution":"2h"},
  {"key":"red/job-b","uid":"b","queue":"q","quota":"q","phase":"Enqueued","pods":1,
   "consumer":{"kind":"Job.v1.batch","namespace":"red","name":"b"},"request":{"cpu":6000},
   "created":"2026-01-01T11:30:00Z","maximumExecution":"5h"},
  {"key":"blue/job-c","uid":"c","queue":"q","quota":"q","phase":"Enqueued","pods":1,"request":{"cpu":4000},
   "created":"2026-01-01T11:40:00Z"}],
"runs":[{"user":"blue","queue":"q","size":"\"cpu\"=4000;","ran":"20m"}]}`

func factsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.facts.json")
	require.NoError(t, os.WriteFile(path, []byte(factsText), 0o600))
	return path
}

const moreCapacity = `From 2026-01-01T12:00:00Z on, for 24h. No other jobs arrive in this time.
Run times: the median of past runs like them for 1 job, the time limit for 3.

  JOB           QUEUE   QUOTA   BEFORE   AFTER
  what-if/new   q       q       new      in 5h
  red/b         q       q       in 60m   now

Unchanged: 2 jobs.

First in line after the change:
  QUEUE   JOB          WHY IT WAITS
  q       blue/job-c   quota "q" level "root": cpu: request 4, free 0 (total 14, used 0, reserved 14); 4 must be freed

Waits from now on, of jobs that start:
  QUEUE   JOBS   MEAN BEFORE   MEAN AFTER   LONGEST BEFORE   LONGEST AFTER
  q       2      60m           30m          60m              60m
`

func TestWhatIfOfAFile(t *testing.T) {
	changes := []string{"--capacity=cpu=4", "--job=new,queue=q,cpu=10,limit=30m"}
	out, said, err := run("", append(changes, "--snapshot", factsFile(t))...)
	require.NoError(t, err)
	require.Empty(t, said)
	require.Equal(t, moreCapacity, out)
	out, _, err = run(factsText, append(changes, "--snapshot=-")...)
	require.NoError(t, err)
	require.Equal(t, moreCapacity, out)
	out, _, err = run("", "--snapshot", factsFile(t), "--policy=q=Priority", "--capacity=cpu=-2", "-o", "json")
	require.NoError(t, err)
	var r whatif.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.EqualValues(t, 86400, r.HorizonSeconds)
	require.Equal(t, whatif.RunTimes{Past: 1, Limits: 2}, r.RunTimes)
	require.Equal(t, []string{"c"}, func() (names []string) {
		for _, j := range r.Jobs {
			names = append(names, strings.TrimPrefix(j.Name, "job-"))
		}
		return names
	}())
}

// The scheduler says its facts compressed.
func TestWhatIfOfACluster(t *testing.T) {
	var document bytes.Buffer
	z := gzip.NewWriter(&document)
	_, err := z.Write([]byte(factsText))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/apis/visibility.koord-queue.x-k8s.io/v1alpha1/snapshots/now", r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		var answer any = &visibility.Snapshot{
			TypeMeta: metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "Snapshot"},
			Document: document.Bytes(),
		}
		if status != http.StatusOK {
			answer = &metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "rose may not",
			}
		}
		require.NoError(t, json.NewEncoder(w).Encode(answer))
	}))
	defer server.Close()
	ask := []string{
		"--server", server.URL, "--kubeconfig", os.DevNull, "--live", "--capacity=cpu=4",
		"--job=new,queue=q,cpu=10,limit=30m",
	}
	out, _, err := run("", ask...)
	require.NoError(t, err)
	require.Equal(t, moreCapacity, out)
	status = http.StatusForbidden
	_, _, err = run("", ask...)
	require.ErrorContains(t, err, "rose may not")
}

func TestWhatIfSaysWhatToDo(t *testing.T) {
	file := factsFile(t)
	for _, c := range []struct{ args, says string }{
		{"--max=q=cpu=1", "add --live or --snapshot FILE"},
		{"--snapshot=" + file, "nothing changes: name a change, such as --max"},
		{"--snapshot=" + file + " --live --hold=q", "none of the others can be"},
		{"--snapshot=" + file + " --trace=- --hold=q", "none of the others can be"},
		{"--snapshot=" + file + " --hold=x", `--hold x: there is no queue "x"`},
		{"--snapshot=" + file + " --policy=x", `--policy x: there is no queue "x"`},
		{"--snapshot=" + file + " --hold=q --until=0s", "--until: has to be between 1s and"},
		{"--snapshot=" + file + " --hold=q -o=yaml", `unknown output format "yaml"`},
		{"--snapshot=/nowhere/x --hold=q", "no such file"},
		{"--snapshot=- --hold=q", "-: not a snapshot: EOF"},
	} {
		_, _, err := run("", strings.Fields(c.args)...)
		require.ErrorContains(t, err, c.says, c.args)
	}
}

// slow is a question of a command whose clock moves on at each step of a world.
func slow(t *testing.T, step func(n int)) (o *question, q *whatif.Question, said *bytes.Buffer) {
	t.Helper()
	s, err := snapshot.Read(strings.NewReader(factsText))
	require.NoError(t, err)
	said = &bytes.Buffer{}
	o = &question{
		clock:   steppedClock{clocktesting.NewFakeClock(s.At), new(int), step},
		streams: genericiooptions.IOStreams{ErrOut: said},
	}
	return o, &whatif.Question{Change: &forecast.Change{
		Before: s.Facts, After: s.Facts, Now: s.At, Until: s.At.Add(24 * time.Hour), Runs: forecast.NewRuns(nil),
	}}, said
}

// steppedClock moves on whenever it is asked.
type steppedClock struct {
	*clocktesting.FakeClock
	asked *int
	step  func(int)
}

func (c steppedClock) Now() time.Time {
	*c.asked++
	c.step(*c.asked)
	c.Step(1500 * time.Millisecond)
	return c.FakeClock.Now()
}

// A long comparison says how far it is, and ends when the command is interrupted.
func TestWhatIfProgress(t *testing.T) {
	o, q, said := slow(t, func(int) {})
	_, err := o.compare(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, "before the change: 60m of 24h after 3 s\nafter the change: 0s of 24h after 6 s\n"+
		"after the change: 60m of 24h after 9 s\n", said.String())
	ctx, interrupt := context.WithCancel(t.Context())
	o, q, _ = slow(t, func(n int) {
		if n == 3 {
			interrupt()
		}
	})
	_, err = o.compare(ctx, q)
	require.ErrorIs(t, err, context.Canceled)
}

// Facts that no scheduler says cannot break the command.
func TestWhatIfOfNonsense(t *testing.T) {
	o, q, _ := slow(t, func(int) {})
	q.Before = nil
	_, err := o.compare(t.Context(), q)
	require.ErrorContains(t, err, "these facts contradict each other: ")
}
