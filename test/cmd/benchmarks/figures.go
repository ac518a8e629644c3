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
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
)

type measurement struct {
	name string
	args []string
	// command is what a reader types to repeat it.
	command string
	figures []figure
}

// figure is a row of a table. value is a template of the report; readme says that it is in README.md as well.
type figure struct {
	what, value string
	readme      bool
}

var measurements = []measurement{
	{
		"baseline", []string{"--workload=baseline"}, "make perf WORKLOAD=baseline", []figure{
			{"Kueue's `baseline`, 15,000 units, 30 queues, `Block`: makespan",
				"{{printf `%.1f s, %.0f admissions/s` .makespanSeconds .admissionsPerSecond}}", true},
			{"the same: writes, as part of the lowest write ceiling of the run", "{{percent .writeCeilingShare}}", true},
			{"write ceilings of the run: creations and statuses per second",
				"{{range $i, $c := .writeCeilings}}{{if $i}}; {{end}}" +
					"{{printf `%.0f and %.0f %s` $c.createsPerSecond $c.statusPatchesPerSecond $c.when}}{{end}}", false},
			{"the same: part of the quota that was used", "{{percent .quotaUse}}", false},
		},
	},
	{
		"jobs", []string{"jobs"}, "make perf SCENARIO=jobs", []figure{
			{"800 Jobs for 150 cores: makespan", "{{printf `%.1f s, ideal %.1f s` .makespanSeconds .idealSeconds}}", false},
			{"the same: pods made of those asked for", "{{.podsMade}} of {{.podsAsked}}", false},
			{"the same: creation of a Job, p50, with and without the queue",
				"{{printf `%.0f ms, %.0f ms` .createP50Ms .createP50MsWithoutQueue}}", false},
			{"the same: watches of Jobs that the API server closed, with and without the queue",
				"{{.watchesClosed}}, {{.watchesClosedWithoutQueue}}", false},
			{"800 Jobs for 150 cores: resumed to all pods bound, p50 / p95",
				"{{printf `%.0f / %.0f ms` .resumedToBoundMs.p50 .resumedToBoundMs.p95}}", true},
			{"the same: processor time of everything per Job", "{{printf `%.3f s` .cpuSecondsPerJob}}", false},
		},
	},
	{
		"wake", []string{"standing", "--measure=wake"},
		"make perf SCENARIO=standing ARGS=--measure=wake", []figure{
			{"end of a unit to the next admission, 100,000 pending, p50 / p99",
				"{{range $i, $v := most .wake.variants}}{{if $i}}; {{end}}`{{$v.policy}}`: " +
					"{{printf `%.1f / %.1f ms` $v.fromReturnMs.p50 $v.fromReturnMs.p99}}{{end}}", true},
		},
	},
	{
		"startup", []string{"standing", "--measure=startup"},
		"make perf SCENARIO=standing ARGS=--measure=startup", []figure{
			{"to the first admission, 50,000 pending", "{{spans .startup.steps}}", false},
		},
	},
	{
		"reclaim", []string{"reclaim"}, "make perf SCENARIO=reclaim", []figure{
			{"job of an owner submitted to all pods bound, while jobs of 4 borrowers hold the cluster, p50 / p99",
				"{{printf `%.0f / %.0f ms` .submittedToBoundMs.p50 .submittedToBoundMs.p99}}", true},
			{"the same: pods and core-hours killed, and the least possible",
				"{{.killed.pods}} of {{.least.pods}}, {{printf `%.2f of %.2f` .killed.coreHours .least.coreHours}}", false},
		},
	},
	{
		"latency", []string{"latency"}, "make perf SCENARIO=latency", []figure{
			{"Job created to bound, idle cluster, p50 / p99", "{{range $i, $v := .variants}}{{if $i}}; {{end}}{{$v.name}}: " +
				"{{printf `%.1f / %.1f ms` $v.createdToBoundMs.p50 $v.createdToBoundMs.p99}}{{end}}", false},
		},
	},
	{
		"memory", []string{"memory"}, "make perf SCENARIO=memory", []figure{
			{"heap of the API server per pending unit", "{{range $i, $v := .variants}}{{if $i}}; {{end}}{{$v.name}}: " +
				"{{printf `%.1f KiB` $v.liveKiB}}{{end}}", false},
		},
	},
	{
		"savings", []string{"savings"}, "make perf SCENARIO=savings", []figure{
			{"10,000 Jobs for a quota of 100: Jobs with pods, pods refused by quota",
				"{{range $i, $v := .variants}}{{if $i}}; {{end}}{{$v.name}}: {{$v.peak.jobsWithPods}}, " +
					"{{$v.schedulingAttempts.refusedByQuota}}{{end}}", false},
		},
	},
}

func names() (all []string) {
	for _, m := range measurements {
		all = append(all, m.name)
	}
	return all
}

var functions = template.FuncMap{
	"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	// spans are of the seconds to the first admission, for each kind of step in the order of the first.
	"spans": func(steps []any) string {
		var kinds []string
		least, greatest := map[string]float64{}, map[string]float64{}
		for _, step := range steps {
			kind, seconds := step.(map[string]any)["kind"].(string), step.(map[string]any)["firstAdmissionSeconds"].(float64)
			if _, known := least[kind]; !known {
				kinds, least[kind] = append(kinds, kind), seconds
			}
			least[kind], greatest[kind] = min(least[kind], seconds), max(greatest[kind], seconds)
		}
		for i, kind := range kinds {
			from, to := fmt.Sprintf("%.1f", least[kind]), fmt.Sprintf("%.1f", greatest[kind])
			if kinds[i] = kind + ": " + from + " s"; from != to {
				kinds[i] = kind + ": " + from + " to " + to + " s"
			}
		}
		return strings.Join(kinds, "; ")
	},
	// most are the variants with the most units that wait.
	"most": func(variants []any) (list []any) {
		waiting := func(v any) float64 { return v.(map[string]any)["waiting"].(float64) }
		most := 0.0
		for _, v := range variants {
			most = max(most, waiting(v))
		}
		for _, v := range variants {
			if waiting(v) == most {
				list = append(list, v)
			}
		}
		return list
	},
}

func (f figure) of(r report) (string, error) {
	t, err := template.New("").Funcs(functions).Option("missingkey=error").Parse(f.value)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r.Result); err != nil {
		return "", fmt.Errorf("%s: %w", f.what, err)
	}
	return out.String(), nil
}

// table of the figures of all reports that there are. The same machine and commit are said once.
func table(all map[string]report, readme bool) (string, error) {
	var out strings.Builder
	out.WriteString("| figure | value | date, commit | command |\n|---|---|---|---|\n")
	machines := map[string]bool{}
	for _, m := range measurements {
		r, measured := all[m.name]
		for _, f := range m.figures {
			if !measured || readme && !f.readme {
				continue
			}
			value, err := f.of(r)
			if err != nil {
				return "", fmt.Errorf("%s: %w", m.name, err)
			}
			machines[r.Machine] = true
			fmt.Fprintf(&out, "| %s | %s | %s, %s | `%s` |\n", f.what, value, r.Date, r.Commit, m.command)
		}
	}
	if len(machines) > 1 {
		return "", errors.New("the reports are from several machines: measure all on one")
	}
	for machine := range machines {
		fmt.Fprintf(&out, "\nThe machine has %s. etcd, API server, scheduler, controller and load share it.\n", machine)
	}
	return out.String(), nil
}

const begin, end = "<!-- benchmarks -->\n", "<!-- end benchmarks -->\n"

// rewrite the table of a document, between its marks.
func rewrite(path string, all map[string]report) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return errors.New("has no marks of the table")
	}
	made, err := table(all, strings.HasSuffix(path, "README.md"))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(before+begin+made+end+after), 0o644)
}
