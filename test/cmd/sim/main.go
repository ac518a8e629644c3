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

// Command sim runs plans of the simulator and prints one line of JSON. If a plan violates an invariant, it fails and
// prints a minimal plan with its log. Each minute it says how far it is. An interrupt ends it with the plans that have
// been run by then.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/test/sim"
)

// summary is what is printed.
type summary struct {
	Commit     string         `json:"commit"`
	Seeds      int            `json:"seeds"`
	First      uint64         `json:"first"`
	Plans      int            `json:"plans"`
	Steps      int            `json:"steps"`
	Events     int            `json:"events"`
	Writes     int            `json:"writes"`
	Admissions int            `json:"admissions"`
	Failovers  int            `json:"failovers"`
	Faults     map[string]int `json:"faults"`
	Scenarios  int            `json:"scenarios,omitempty"`
	Crashes    int            `json:"crashes,omitempty"`
	Violations int            `json:"violations"`
	// Miscounts are plans in which Koordinator counts more than there is; see package sim.
	Miscounts int      `json:"miscounts"`
	Failed    []uint64 `json:"failed,omitempty"`
	// Interrupted: not all plans were run.
	Interrupted bool    `json:"interrupted,omitempty"`
	Seconds     float64 `json:"seconds"`
}

func main() {
	seeds := flag.Int("seeds", 500, "how many seeds to run")
	first := flag.Uint64("seed", 1, "the first of them")
	failovers := flag.Bool("failovers", false, "plans in which leaders go, again and again")
	untilFailovers := flag.Int("until-failovers", 0,
		"such plans until leaders have changed that often, however many seeds it takes")
	replay := flag.String("replay", "", "a file with one plan to run instead")
	verbose := flag.Bool("v", false, "print the log of the plan that is run, or of the first that fails")
	deadline := flag.Duration("deadline", engine.DefaultWriteTimeout, "of one status write of a scheduler")
	stock := flag.Bool("stock-lease", false, "the timing of leader election that kube-scheduler has by default")
	workers := flag.Int("workers", runtime.NumCPU(), "plans at once")
	shrink := flag.Bool("shrink", true, "cut the first plan that fails down")
	crashes := flag.Bool("crashes", false, "also run the scenarios of the corpus, with each write failing in each way")
	of := flag.Uint64("crashes-of", 1, "with -crashes: run one of this many failing writes, chosen by -seed")
	flag.Parse()
	if *replay != "" {
		os.Exit(replayPlan(*replay))
	}
	profile := sim.DefaultProfile()
	profile.Deadline = *deadline
	if *failovers || *untilFailovers > 0 {
		profile = sim.FailoverProfile()
		profile.Deadline = *deadline
	}
	if *stock {
		profile.Lease = sim.StockLease
	}
	debug.SetGCPercent(400) // a plan needs little memory, and makes much garbage
	s := summary{Commit: commit(), Seeds: *seeds, First: *first, Faults: map[string]int{}}
	start := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	told := &progress{last: start}
	failed := run(ctx, &s, profile, *workers, told)
	next := *first + uint64(*seeds)
	for ; s.Failovers < *untilFailovers && ctx.Err() == nil; next += uint64(*seeds) {
		more := summary{Seeds: *seeds, First: next, Faults: s.Faults}
		failed = append(failed, run(ctx, &more, profile, *workers, told)...)
		s.add(&more)
	}
	if *crashes {
		if err := runCrashes(ctx, &s, *workers, max(1, *of), told); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	s.Interrupted = ctx.Err() != nil
	stop() // another interrupt ends the search for a minimal plan
	s.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	if len(failed) > 0 {
		tell(failed[0], *shrink, *verbose)
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if s.Violations > 0 || s.Interrupted {
		os.Exit(1)
	}
}

// progress of a run, for the person who waits.
type progress struct {
	mu                sync.Mutex
	plans, violations int
	last              time.Time
}

// note a plan that was run. A violation is told at once.
func (p *progress) note(name string, r *sim.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans++
	p.violations += len(r.Violations)
	if len(r.Violations) > 0 {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, r.Violations[0])
	}
	if time.Since(p.last) >= time.Minute {
		p.last = time.Now()
		fmt.Fprintf(os.Stderr, "%d plans, %d violations\n", p.plans, p.violations)
	}
}

// add what another run found; its faults are counted already.
func (s *summary) add(more *summary) {
	s.Seeds += more.Seeds
	s.Plans += more.Plans
	s.Steps += more.Steps
	s.Events += more.Events
	s.Writes += more.Writes
	s.Admissions += more.Admissions
	s.Failovers += more.Failovers
	s.Violations += more.Violations
	s.Miscounts += more.Miscounts
	s.Failed = append(s.Failed, more.Failed...)
}

// commit that this was built from: of the build, of the environment (go run leaves it out), of the working tree, or
// unknown.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	if given := os.Getenv("COMMIT"); given != "" {
		return given
	}
	if out, err := exec.Command("git", "rev-parse", "HEAD").Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	return "unknown"
}

// run runs the plans and returns those that fail, by seed.
func run(ctx context.Context, s *summary, profile sim.Profile, workers int, told *progress) (failed []sim.Plan) {
	plans := make([]sim.Plan, s.Seeds)
	reports := make([]*sim.Report, s.Seeds)
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range s.Seeds {
		group.Go(func() error {
			if ctx.Err() == nil {
				plans[i] = sim.Generate(s.First+uint64(i), profile)
				reports[i] = sim.Run(plans[i], sim.Options{})
				told.note(fmt.Sprintf("seed %d", plans[i].Seed), reports[i])
			}
			return nil
		})
	}
	_ = group.Wait() // no run is an error
	for i, r := range reports {
		if r == nil {
			continue
		}
		s.Plans++
		s.Steps += len(plans[i].Steps)
		s.Admissions += r.Admissions
		s.Failovers += r.Failovers
		s.count(r)
		if len(r.Violations) > 0 {
			s.Failed = append(s.Failed, plans[i].Seed)
			failed = append(failed, plans[i])
		}
	}
	return failed
}

// count adds what was seen in a run.
func (s *summary) count(r *sim.Report) {
	s.Events += r.Events
	s.Writes += r.Writes
	s.Violations += len(r.Violations)
	s.Miscounts += min(len(r.Miscounts), 1)
	for f, n := range r.Faults {
		s.Faults[f] += n
	}
}

// runCrashes enumerates the writes of each scenario, and runs one of each so many.
func runCrashes(ctx context.Context, s *summary, workers int, of uint64, told *progress) error {
	scenarios, err := sim.Scenarios()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	note := func(name string, r *sim.Report) {
		told.note(name, r)
		mu.Lock()
		defer mu.Unlock()
		s.count(r)
	}
	number := s.First
	var group errgroup.Group
	group.SetLimit(workers)
	for _, scenario := range scenarios {
		if ctx.Err() != nil {
			break
		}
		without := sim.Run(scenario.Plan, sim.Options{})
		note(scenario.Name, without)
		s.Scenarios++
		for _, crash := range sim.Crashes(scenario.Plan) {
			number++
			if number%of != 0 || ctx.Err() != nil {
				continue
			}
			s.Crashes++
			group.Go(func() error {
				note(scenario.Name+", "+crash.String(), scenario.RunCrash(crash, without))
				return nil
			})
		}
	}
	return group.Wait()
}

func tell(plan sim.Plan, shrink, verbose bool) {
	if shrink {
		plan = sim.Shrink(plan, sim.Options{})
	}
	r := sim.Run(plan, sim.Options{Log: true})
	fmt.Fprintf(os.Stderr, "\n# seed %d at commit %s\n# replay with: go run ./test/cmd/sim -replay FILE\n",
		plan.Seed, commit())
	fmt.Fprintln(os.Stderr,
		"# keep as a test: put the following into test/sim/testdata/plans/NAME.plan; TestKeptPlans runs it")
	fmt.Fprint(os.Stderr, plan)
	for _, v := range r.Violations {
		fmt.Fprintln(os.Stderr, "#", v)
	}
	if verbose {
		fmt.Fprint(os.Stderr, r.Log)
		return
	}
	lines := strings.Split(strings.TrimSpace(r.Log), "\n")
	fmt.Fprintln(os.Stderr, "# the end of its log:")
	fmt.Fprintln(os.Stderr, strings.Join(lines[max(len(lines)-60, 0):], "\n"))
}

func replayPlan(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	plan, err := sim.Parse(string(text))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	r := sim.Run(plan, sim.Options{Log: true})
	fmt.Print(r.Log)
	for _, v := range r.Violations {
		fmt.Println(v)
	}
	if len(r.Violations) > 0 {
		return 1
	}
	return 0
}
