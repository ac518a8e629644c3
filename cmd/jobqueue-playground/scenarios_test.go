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

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

func TestScenarioFlags(t *testing.T) {
	changed := func(flags ...string) func(string) bool {
		return func(name string) bool { return strings.Contains(strings.Join(flags, " "), name) }
	}
	for _, tc := range []struct {
		flags   demoFlags
		changed []string
		jobs    int
		nodes   int
		want    string
	}{
		{demoFlags{scenario: "queues", jobs: 300}, nil, 300, 0, ""},
		{demoFlags{scenario: "queues", kinds: true, jobs: 300}, []string{"kinds"}, mixedJobs, 0, ""},
		{demoFlags{scenario: "kinds", jobs: 20}, []string{"scenario", "jobs"}, 20, 0, ""},
		{demoFlags{scenario: "checks", jobs: 300}, []string{"scenario"}, 300, 0, ""},
		{demoFlags{scenario: "checks", jobs: 5}, []string{"scenario", "jobs"}, 0, 0, "always the same"},
		{demoFlags{scenario: "checks", kinds: true, jobs: 5}, []string{"scenario", "kinds"}, 0, 0, "--kinds is"},
		{demoFlags{scenario: "reclaim", jobs: 300}, []string{"scenario"}, 300, 6, ""},
		{demoFlags{scenario: "reclaim", jobs: 1, clusterFlags: clusterFlags{nodes: 9}}, []string{"nodes"}, 1, 9, ""},
		{demoFlags{scenario: "chekcs", jobs: 5}, []string{"scenario"}, 0, 0, "there are:\n  queues: "},
		{demoFlags{scenario: "queues"}, []string{"jobs"}, 0, 0, "at least 1"},
	} {
		err := tc.flags.complete(changed(tc.changed...))
		if tc.want != "" {
			require.ErrorContains(t, err, tc.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.jobs, tc.flags.jobs)
		require.Equal(t, tc.nodes, tc.flags.nodes)
	}
}

// The flag, the help and the error about an unknown scenario name all of them.
func TestScenariosAreNamed(t *testing.T) {
	_, err := demonstrationOf("none")
	usage := newDemoCommand().Flag("scenario").Usage
	for _, name := range []string{"queues", "kinds", "checks", "reclaim"} {
		require.Contains(t, usage, "\n"+name+": ")
		require.ErrorContains(t, err, "\n  "+name+": ")
	}
}

func TestVerdictOfCases(t *testing.T) {
	d, err := demonstrationOf("reclaim")
	require.NoError(t, err)
	v := verdict{submitted: 3, refused: 2, done: 1, cases: d.newView().caseVerdict(true)}
	require.ErrorContains(t, v.err(), "2 of 2 cases without what they promise")
	text := strings.Join(summary(screen.Screen{}, v), "\n")
	require.Contains(t, text, "1 of 1, lost 0; 2 more were to be rejected")
	require.NotContains(t, text, "team-research")
	b := d.newView().board(time.Now(), nil)
	text = strings.Join(b.lines(screen.Screen{}), "\n")
	require.Contains(t, text, "research")
	require.NotContains(t, text, "team-research")
	v.cases = cases.Verdict{}
	require.NoError(t, v.err())
	v.violations = []checker.Violation{{Rule: checker.RanTwice}}
	require.False(t, v.once())
	require.EqualError(t, v.err(), "1 of 1 jobs done, 1 violations")
}

func TestForecastsAreJudged(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	f := forecasts{
		"ns/right": {at: at(0), about: at(110), latest: at(130)},
		"ns/late":  {at: at(0), about: at(10), latest: at(90)},
		"ns/none":  {at: at(0)},
		"ns/waits": {at: at(0), about: at(1)},
	}
	require.Equal(t, "1 of 3 were right within 5 s or a quarter of the wait, 1 of 2 bounds held",
		f.judge(map[string]time.Time{"ns/right": at(100), "ns/late": at(100), "ns/none": at(7)}))
	require.Empty(t, f.judge(nil))
}
