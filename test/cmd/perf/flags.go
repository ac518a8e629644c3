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
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

type flags struct{ *flag.FlagSet }

func (f *flags) workers(s *runner.Setting) {
	f.IntVar(&s.Workers, "workers", 32, "requests of the runner at once, of each kind")
}

func (f *flags) audit(s *runner.Setting) {
	f.BoolVar(&s.Audit, "audit", false, "count who writes what, with the audit log of the API server, which -keep keeps")
}

// profiles has them taken of the processes, and counts from that moment.
func (f *flags) profiles(p *runner.Profile, after time.Duration, processes, moment string) {
	f.StringVar(&p.Dir, "profile", "", "directory for CPU profiles of "+processes)
	f.DurationVar(&p.After, "profile-after", after, "from "+moment+" to the beginning of the profiles")
	f.DurationVar(&p.For, "profile-for", 20*time.Second,
		"length of the profiles; one that the run does not last for is lost")
}

// list is a flag that takes names with commas between them.
type list[T ~string] struct {
	chosen *[]T
	of     []T
}

// String implements flag.Value.
func (l *list[T]) String() string {
	if l.chosen == nil { // of the zero value that flag compares with
		return ""
	}
	return joined(*l.chosen)
}

// Set implements flag.Value.
func (l *list[T]) Set(text string) error {
	*l.chosen = nil
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(l.of, T(name)) {
			return fmt.Errorf("%q is none of %s", name, joined(l.of))
		}
		*l.chosen = append(*l.chosen, T(name))
	}
	return nil
}

func joined[T ~string](names []T) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ",")
}
