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

package whatif

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func amounts(cpu, gpu int64) resources.List {
	return resources.FromMap(map[string]int64{"cpu": 1000 * cpu, "nvidia.com/gpu": gpu})
}

// cluster has 10 cpu and 8 gpus, of which the quotas a and b share out the cpus.
func cluster(units ...*unit.Unit) *virtual.Facts {
	f := &virtual.Facts{
		Quotas: []admission.Quota{
			{Name: "a", Parent: "root", Max: amounts(20, 8), Limit: amounts(20, 8), Min: amounts(4, 0)},
			{Name: "b", Parent: "root", Max: amounts(20, 8), Limit: amounts(20, 8)},
			{Name: "root", Max: amounts(10, 8), Limit: amounts(10, 8), Terms: capacity.Terms{Part: shares.Top}},
		},
		Units: units,
	}
	for _, name := range []string{"a", "b"} {
		f.Queues = append(f.Queues, queue.Spec{Name: name, Policy: "FIFO", MaxPending: -1, MaxAdmitted: -1})
	}
	return f
}

// job of a queue, which holds what it asks for if it ran for some time.
func job(key, of string, cpu int64, limit, ran time.Duration) *unit.Unit {
	u := &unit.Unit{
		Key: key, UID: key, Queue: of, Quota: of, Active: true, Phase: unit.PhaseEnqueued, Pods: 1, Request: amounts(cpu, 0),
		Created: epoch, Stated: unit.Stated{MaximumExecution: limit},
	}
	if ran > 0 {
		u.Phase, u.Attempts, u.Admitted = unit.PhaseRunning, 1, epoch.Add(-ran)
		u.SetHeld(u.Request, 1)
	}
	return u
}

func ask(t *testing.T, f *virtual.Facts, c *Changes, all bool) *Report {
	t.Helper()
	changed, err := c.Apply(f, epoch)
	require.NoError(t, err)
	r, err := Ask(&Question{All: all, Change: &forecast.Change{
		Before: f, After: changed, Now: epoch, Until: epoch.Add(24 * time.Hour), Runs: forecast.NewRuns(nil),
		Step: func(bool, time.Time) error { return nil },
	}})
	require.NoError(t, err)
	return r
}

// fates in short: +1h0m0s starts then, - never.
func fates(r *Report) map[string]string {
	say := func(f *Fate) string {
		if f == nil {
			return "new"
		}
		text := ""
		if f.Holds {
			text = "holds "
		}
		if f.EvictedSeconds != nil {
			text += fmt.Sprint("evicted ", time.Duration(*f.EvictedSeconds)*time.Second, " ")
		}
		if f.StartSeconds != nil {
			return text + fmt.Sprint("+", time.Duration(*f.StartSeconds)*time.Second)
		}
		return text + "-"
	}
	out := map[string]string{}
	for _, j := range r.Jobs {
		out[j.Namespace+"/"+j.Name] = say(j.Before) + " > " + say(&j.After)
	}
	return out
}

// The running job leaves 2 cpu for an hour. Then two jobs of 6 cpu run one after the other.
func line() *virtual.Facts {
	return cluster(job("n/runs", "a", 8, 2*time.Hour, time.Hour), job("n/first", "a", 6, time.Hour, 0),
		job("n/second", "b", 6, time.Hour, 0))
}

// More capacity helps nobody whom the max of a quota keeps out. The report says so.
func TestFirstInLine(t *testing.T) {
	r := ask(t, line(), &Changes{Capacity: []string{"cpu=+100"}, Max: []string{"a=cpu=8"}}, false)
	require.Equal(t, []Waits{{
		Namespace: "n", Name: "first", Queue: "a", Reason: string(unit.ReasonQuotaExceeded),
		Message: "quota \"a\": cpu: request 6, free 0 (max 8, used 0, reserved 8); 6 must be freed",
	}}, r.First)
}

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change Changes
		want   map[string]string
	}{
		"none": {want: map[string]string{}},
		"more capacity": {
			Changes{Capacity: []string{"cpu=4"}},
			map[string]string{"n/second": "+2h0m0s > +0s"},
		},
		"much more capacity": {
			Changes{Capacity: []string{"cpu=+10"}},
			map[string]string{"n/first": "+1h0m0s > +0s", "n/second": "+2h0m0s > +0s"},
		},
		"less capacity": {
			Changes{Capacity: []string{"root=cpu=-5"}},
			map[string]string{"n/first": "+1h0m0s > -", "n/second": "+2h0m0s > -"},
		},
		"a smaller max": {Changes{Max: []string{"b=cpu=5"}}, map[string]string{"n/second": "+2h0m0s > -"}},
		"a policy":      {Changes{Policy: []string{"b=Block"}}, map[string]string{}},
		"a queue is held": {
			Changes{Hold: []string{"a"}},
			map[string]string{"n/first": "+1h0m0s > -", "n/second": "+2h0m0s > +1h0m0s"},
		},
		"a queue is drained": {
			Changes{Drain: []string{"a"}},
			map[string]string{
				"n/runs": "holds - > holds evicted 0s -", "n/first": "+1h0m0s > -", "n/second": "+2h0m0s > +0s",
			},
		},
		"priority": {
			Changes{Priority: []string{"b=9"}},
			map[string]string{"n/first": "+1h0m0s > +2h0m0s", "n/second": "+2h0m0s > +1h0m0s"},
		},
		"a job that fits": {
			Changes{Jobs: []string{"small,queue=b,cpu=1,gpu=2,limit=30m"}},
			map[string]string{"what-if/small": "new > +2h0m0s"},
		},
		"a job in front": {
			Changes{
				Jobs: []string{"m/big,queue=b,quota=b,cpu=10,limit=1h30m,pods=2,priority=5"}, Policy: []string{"b=Priority"},
			},
			map[string]string{"m/big": "new > +2h0m0s", "n/second": "+2h0m0s > +3h30m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := line()
			before := fmt.Sprintf("%+v", *f)
			require.Equal(t, c.want, fates(ask(t, f, &c.change, false)))
			require.Equal(t, before, fmt.Sprintf("%+v", *f), "the facts that are true stay")
		})
	}
}

func TestSums(t *testing.T) {
	r := ask(t, line(), &Changes{Hold: []string{"a"}}, false)
	require.Equal(t, []Queue{
		{
			Name: "a", Jobs: 1, NotStarted: Counts{0, 1}, MeanSeconds: Seconds{3600, 86400},
			LongestSeconds: Seconds{3600, 86400},
		},
		{Name: "b", Jobs: 1, MeanSeconds: Seconds{7200, 3600}, LongestSeconds: Seconds{7200, 3600}},
	}, r.Queues)
	require.Equal(t, RunTimes{Limits: 3}, r.RunTimes)
	require.Equal(t, 1, r.Unchanged)
	r = ask(t, line(), &Changes{Drain: []string{"a"}}, false)
	require.Equal(t, Counts{0, 1}, r.Evictions)
	endless := cluster(job("n/runs", "a", 8, 0, time.Hour), job("n/first", "a", 6, time.Hour, 0))
	require.Equal(t, RunTimes{Endless: 1}, ask(t, endless, &Changes{}, false).RunTimes)
}

// A start that moves by less than a minute is a change if all are asked for.
func TestSmallChanges(t *testing.T) {
	f := cluster(job("n/runs", "a", 8, time.Hour+30*time.Second, time.Hour), job("n/first", "a", 6, time.Hour, 0))
	c := &Changes{Capacity: []string{"cpu=4"}}
	require.Empty(t, fates(ask(t, f, c, false)))
	require.Equal(t, map[string]string{"n/first": "+30s > +0s"}, fates(ask(t, f, c, true)))
}

// The order of facts is none, and without a change nothing changes.
func TestNothingChangesByItself(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var units []*unit.Unit
	for i := range 200 {
		ran := time.Duration(0)
		if i < 4 {
			ran = time.Minute
		}
		of := []string{"a", "b"}[r.IntN(2)]
		units = append(units, job(fmt.Sprintf("n/u%d", i), of, 1+r.Int64N(4), time.Duration(1+r.IntN(90))*time.Minute, ran))
	}
	f := cluster(units...)
	require.Empty(t, ask(t, f, &Changes{}, true).Jobs)
	c := &Changes{Max: []string{"a=cpu=5"}, Min: []string{"b=cpu=2"}, Priority: []string{"b=3"}}
	want := ask(t, f, c, true)
	require.NotEmpty(t, want.Jobs)
	r.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	require.Equal(t, want, ask(t, cluster(units...), c, true))
}

func TestBadChanges(t *testing.T) {
	jobs := func(words string) *Changes { return &Changes{Jobs: []string{words}} }
	for says, c := range map[string]*Changes{
		`--max x=cpu=1: there is no quota "x"`:                       {Max: []string{"x=cpu=1"}},
		`--max a=cpu: write amounts as RESOURCE=AMOUNT, with commas`: {Max: []string{"a=cpu"}},
		`--max a=cpu=x: "x" is no amount`:                            {Max: []string{"a=cpu=x"}},
		`--max a=cpu=2: min of cpu would be 4, and max 2`:            {Max: []string{"a=cpu=2"}},
		`use --capacity`: {Max: []string{"root=cpu=2"}},
		`the resource "disk"; choose from cpu, nvidia.com/gpu`:   {Max: []string{"a=disk=2"}},
		`resource "cpu": negative amount -2`:                     {Min: []string{"a=cpu=-2"}},
		`min of nvidia.com/gpu would be 9, and max 8`:            {Min: []string{"a=gpu=9"}},
		`"a" is no root; choose from root`:                       {Capacity: []string{"a=cpu=2"}},
		`--policy x=FIFO: there is no queue "x"`:                 {Policy: []string{"x=FIFO"}},
		`"x" is no policy; choose from Block, FIFO, Intelligent`: {Policy: []string{"a=x"}},
		`--priority a=x: "x" is no priority`:                     {Priority: []string{"a=x"}},
		`--hold x: there is no queue "x"`:                        {Hold: []string{"x"}},
		`--drain : there is no queue ""`:                         {Drain: []string{""}},
		`begin with the NAME or NAMESPACE/NAME`:                  jobs("queue=a,cpu=1"),
		`--job j,cpu=1: there is no queue ""`:                    jobs("j,cpu=1"),
		`there is no quota "x"`:                                  jobs("j,queue=a,quota=x,cpu=1"),
		`"n/first" exists`:                                       jobs("n/first,queue=a"),
		`unknown unit "y" in duration "1y"`:                      jobs("j,queue=a,limit=1y"),
		`pods have to be one or more`:                            jobs("j,queue=a,pods=0"),
		`--job j,queue=a,cpu: write amounts as RESOURCE=AMOUNT`:  jobs("j,queue=a,cpu"),
		`parsing "z"`: jobs("j,queue=a,pods=z"),
	} {
		_, err := c.Apply(line(), epoch)
		require.ErrorContains(t, err, says)
	}
}

// A job that exceeds max is a fact as well.
func TestAGreaterMax(t *testing.T) {
	f, s := cluster(), admission.New(admission.Config{})
	f.Quotas[1].Max, f.Quotas[1].Limit = amounts(5, 8), amounts(5, 8)
	for i := range f.Quotas {
		s.SetQuota(epoch, f.Quotas[i])
	}
	for i := range f.Queues {
		s.UpsertQueue(epoch, f.Queues[i])
	}
	s.UpsertUnit(epoch, *job("n/large", "b", 6, time.Hour, 0))
	s.Decide(epoch)
	r := ask(t, virtual.FactsOf(s, admission.Config{}, epoch), &Changes{Max: []string{"b=cpu=8"}}, false)
	require.Equal(t, map[string]string{"n/large": "- > +0s"}, fates(r))
}

// One more job that borrows is evicted for the owner of the quota, as any job is, and the owner waits no longer.
func TestOneMoreJobCanBePreempted(t *testing.T) {
	owner := job("ns/owner", "a", 4, time.Hour, 0)
	owner.Phase, owner.RequeueAt = unit.PhaseTimeoutBackoff, epoch.Add(5*time.Minute)
	f := cluster(owner)
	f.Queues[0].Preemption.Reclaim, f.Quotas[1].Min = queue.VictimsAny, amounts(0, 0)
	r := ask(t, f, &Changes{Jobs: []string{"new,queue=b,cpu=10,limit=2h"}}, true)
	require.Equal(t, Counts{After: 1}, r.Evictions)
	require.Equal(t, map[string]string{"what-if/new": "new > +0s"}, fates(r))
}
