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

package sim

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed testdata/crashes/*.plan
var corpus embed.FS

// Scenario is a short plan of which every write is made to fail, one at a time.
type Scenario struct {
	Name string
	Plan Plan
}

// Scenarios is the corpus, by name.
func Scenarios() ([]Scenario, error) {
	files, err := corpus.ReadDir("testdata/crashes")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, f := range files {
		text, err := corpus.ReadFile(path.Join("testdata/crashes", f.Name()))
		if err != nil {
			return nil, err
		}
		plan, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		all = append(all, Scenario{Name: strings.TrimSuffix(f.Name(), ".plan"), Plan: plan})
	}
	return all, nil
}

// Crashes lists what may happen to each write of each process in a plan: it dies before or after it, or is not told.
func Crashes(p Plan) []Crash {
	writes := Run(p, Options{}).WritesBy
	var all []Crash
	for _, role := range []string{roleScheduler, roleController} {
		for n := 1; n <= writes[role]; n++ {
			for _, f := range []fault{faultCrashBefore, faultCrashAfter, faultAmbiguous} {
				all = append(all, Crash{Role: role, Write: n, Fault: string(f)})
			}
		}
	}
	return all
}

// String is for people.
func (c Crash) String() string {
	return fmt.Sprintf("write %d of the %s: %s", c.Write, c.Role, c.Fault)
}

// RunCrash runs the scenario with the crash. It must end as without: the same jobs, ended in the same way, and the same
// units (I8).
func (s Scenario) RunCrash(c Crash, without *Report) *Report {
	return s.runCrash(c, without, Options{})
}

func (s Scenario) runCrash(c Crash, without *Report, o Options) *Report {
	o.Crash = &c
	r := Run(s.Plan, o)
	if len(r.Violations) == 0 && r.Final != without.Final {
		r.Violations = append(r.Violations, Violation{Invariant: "I8",
			Message: fmt.Sprintf("ends otherwise than without the crash:\n%swithout:\n%s", r.Final, without.Final)})
	}
	return r
}
