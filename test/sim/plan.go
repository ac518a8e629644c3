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
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
)

// Plan is a world and what happens in it. Its text is what String writes and Parse reads.
type Plan struct {
	Seed                    uint64
	Schedulers, Controllers int
	// Runtime is ElasticQuota's enableRuntimeQuota at the start.
	Runtime bool
	// Lag is the most that a watch lags behind when nothing is wrong. Deadline is that of one write of a scheduler.
	Lag, Deadline time.Duration
	// Decision is the most that one decision of a scheduler takes: decisions pause after it, nothing else does.
	Decision time.Duration
	Lease    Lease
	// Length is when faults end and the world heals.
	Length time.Duration
	Steps  []Step
}

// Step is something that a person, an administrator or a fault does at a time.
type Step struct {
	At   time.Duration
	Verb string
	On   string
	Args map[string]string
}

// String is one line.
func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", s.At, s.Verb, s.On)
	for _, key := range slices.Sorted(maps.Keys(s.Args)) {
		fmt.Fprintf(&b, " %s=%s", key, s.Args[key])
	}
	return b.String()
}

func (s Step) number(key string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(s.Args[key], 10, 64); err == nil {
		return n
	}
	return otherwise
}

func (s Step) duration(key string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(s.Args[key]); err == nil {
		return d
	}
	return otherwise
}

// String is the whole plan.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"plan seed=%d schedulers=%d controllers=%d runtime=%t lag=%s deadline=%s decision=%s lease=%s length=%s\n",
		p.Seed, p.Schedulers, p.Controllers, p.Runtime, p.Lag, p.Deadline, p.Decision, p.Lease, p.Length)
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// Parse reads the text of a plan; lines that begin with # are left out.
func Parse(text string) (Plan, error) {
	p := Plan{Schedulers: 1, Controllers: 1, Lag: 20 * time.Millisecond, Deadline: engine.DefaultWriteTimeout,
		Lease: ShippedLease, Length: time.Minute}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if words[0] == "plan" {
			if err := p.header(words[1:]); err != nil {
				return p, err
			}
			continue
		}
		if len(words) < 2 {
			return p, fmt.Errorf("%q: want a time, a verb and a name", lines.Text())
		}
		at, err := time.ParseDuration(words[0])
		if err != nil {
			return p, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		s := Step{At: at, Verb: words[1]}
		if len(words) > 2 && !strings.Contains(words[2], "=") {
			s.On = words[2]
		}
		s.Args = args(words[2:])
		if actions[s.Verb] == nil {
			return p, fmt.Errorf("%q: no such verb", lines.Text())
		}
		p.Steps = append(p.Steps, s)
	}
	return p, lines.Err()
}

func args(words []string) map[string]string {
	var out map[string]string
	for _, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

func (p *Plan) header(words []string) error {
	s := Step{Args: args(words)}
	seed, err := strconv.ParseUint(s.Args["seed"], 10, 64)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	p.Seed = seed
	p.Schedulers = int(s.number("schedulers", int64(p.Schedulers)))
	p.Controllers = int(s.number("controllers", int64(p.Controllers)))
	p.Runtime = s.Args["runtime"] == "true"
	p.Lag = s.duration("lag", p.Lag)
	p.Deadline = s.duration("deadline", p.Deadline)
	p.Decision = s.duration("decision", p.Decision)
	p.Lease = parseLease(s.Args["lease"], p.Lease)
	p.Length = s.duration("length", p.Length)
	return nil
}
