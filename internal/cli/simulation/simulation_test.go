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
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// small has four processors and four jobs of two users. The second job waits for the first, and two more could start.
const small = `; MaxProcs: 4
1 0 -1 600 3 -1 -1 3 1200 -1 1 1 -1 -1 -1 -1 -1 -1
2 60 -1 300 3 -1 -1 3 300 -1 1 2 -1 -1 -1 -1 -1 -1
3 120 -1 900 1 -1 -1 1 1000 -1 1 1 -1 -1 -1 -1 -1 -1
4 120 -1 1800 1 -1 -1 1 1700 -1 1 2 -1 -1 -1 -1 -1 -1
5 120 -1 0 1 -1 -1 1 1700 -1 5 2 -1 -1 -1 -1 -1 -1
`

// run runs the command on a trace at standard input.
func run(in string, args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true)
	command := Command(flags, genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stderr},
		clocktesting.NewFakeClock(time.Unix(0, 0)))
	command.SilenceUsage, command.SilenceErrors = true, true
	flags.AddFlags(command.Flags())
	command.SetArgs(args)
	err = command.Execute()
	return stdout.String(), stderr.String(), err
}

func TestSimulate(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("small.swf"), []byte(small), 0o600))
	out, said, err := run("", "--trace", in("small.swf"), "--policy=fcfs,easy", "--out", in("jobs.csv"),
		"--svg", in("plot.svg"), "--swf", in("kept.swf"))
	require.NoError(t, err)
	require.Equal(t, "Jobs left out: 1 (1 without a run time). Run times cut to the limit of the job: 1.\n", said)
	require.Equal(t, `Jobs: 4, submitted within 0.0 days. Processors: 4. The jobs ask for 1,104.2 % of them in this time.

  POLICY   MEAN WAIT (s)   LONGEST (s)   SLOWDOWN   USE      LOSS    FAIRNESS
  fcfs     450             780           1.70       75.0 %   0.0 %   0.50
  easy     330             780           1.56       75.0 %   0.0 %   0.50

Mean wait by size:
  SIZE   JOBS   FCFS (s)   EASY (s)
  1      2      630        390
  2-4    2      270        270

Mean wait by user:
  USER   JOBS   FCFS (s)   EASY (s)
  1      2      240        0
  2      2      660        660
`, out)
	for file, begins := range map[string]string{
		"jobs-fcfs.csv": "job_id,workload_name,profile,submission_time", "jobs-easy.csv": "job_id,", "plot.svg": "<svg ",
		"kept.swf": "; Version: 2.2\n",
	} {
		content, err := os.ReadFile(in(file))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(content), begins), "%s", content)
	}
	content, err := os.ReadFile(in("jobs-easy.csv"))
	require.NoError(t, err)
	require.Contains(t, string(content), "\n3,small,delay,120,1,1000,1,COMPLETED_SUCCESSFULLY,120,900,1020,")

	again, said, err := run("", "--trace", in("kept.swf"), "--policy=fcfs,easy")
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Empty(t, said)
}

func TestSimulateOnePolicyFromStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs")
	_, _, err := run(small, "--trace=-", "--policy=greedy", "--out", file)
	require.NoError(t, err)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(content), "\n1,-,delay,0,3,1200,1,")
}

func TestSimulateGeneratesAndShakes(t *testing.T) {
	out, said, err := run("", "--generate=lublin", "--jobs=300", "--procs=16", "--shake")
	require.NoError(t, err)
	require.Empty(t, said)
	require.Contains(t, out, "Jobs: 300, submitted within ")
	require.Regexp(t, `easy-exact +[0-9,]+ \([0-9,]+ to [0-9,]+\) `, out)
	again, _, err := run("", "--generate=lublin", "--jobs=300", "--procs=16", "--shake", "--seed=1")
	require.NoError(t, err)
	require.Equal(t, out, again)
}

func TestSimulateSaysWhatToDo(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"", "name a file with --trace, or make jobs with --generate lublin"},
		{"--generate=x", `--generate: "x" is not known; choose lublin`},
		{"--generate=lublin --policy=best", `"best" is not known; choose from fcfs, easy, easy-exact, greedy`},
		{"--generate=lublin --policy=", "--policy: choose from fcfs"},
		{"--generate=lublin --jobs=0", "0 jobs: must be between 1 and 1000000"},
		{"--trace=- --generate=lublin", "none of the others can be"},
		{"--trace=- --jobs=3", "none of the others can be"},
		{"--trace=-", "-: the trace does not say how many processors the machine has: give their number with --procs"},
		{"--trace=/nowhere/to/be/found", "no such file"},
		{"--generate=lublin --svg=/nowhere/x.svg", "no such file"},
		{"--generate=lublin --out=/nowhere/x.csv", "no such file"},
		{"--generate=lublin --swf=/nowhere/x.swf", "no such file"},
	} {
		_, _, err := run("", strings.Fields(c.args)...)
		require.ErrorContains(t, err, c.says, c.args)
	}
}

// A long replay says how far it is, and ends when the command is interrupted.
func TestSimulateProgress(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	var said bytes.Buffer
	o := &replays{clock: clock, streams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: &said}}
	w, err := trace.Lublin(3, 4, 1)
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	slow := replay.Policy{Name: "slow", Replay: func(_ *trace.Workload, started func(int) error) ([]replay.Hold, error) {
		for jobs := 1; ; jobs++ {
			clock.Step(3 * time.Second)
			if jobs == 3 {
				interrupt()
			}
			if err := started(jobs); err != nil {
				return nil, err
			}
		}
	}}
	_, err = o.replay(ctx, slow, w, " (shaken, 1 of 20)")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "slow (shaken, 1 of 20): 2 of 3 jobs after 6 s\n", said.String())
}

// Of the four jobs the second waits for the first, whose limit is 1,200 s.
func TestForecastsAreJudged(t *testing.T) {
	out, _, err := run(small, "--trace", "-", "--policy=block", "--forecasts=4")
	require.NoError(t, err)
	require.Contains(t, out, `
Forecasts with policy block, right within a minute or a quarter of the wait:
`)
	require.Regexp(t, `all +4 +25.0 % +25.0 % +100.0 %`, out)
}
