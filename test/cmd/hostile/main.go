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

// Command hostile attacks the whole system as a tenant could, on a real local control plane. A user with the rights to
// submit work creates objects with the worst values of every field, while another tenant works. A first run without
// koord-jobqueue gives the work that the other tenant gets done otherwise. No process may end or exceed the memory of
// its Deployment. No promise to the other tenant may be broken, and its work may be only slightly slower.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/program"
)

type options struct {
	duration time.Duration
	rate     float64
	minRatio float64
	seed     uint64
	nodes    int
	dir      string
	keep     bool
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 5*time.Minute,
		"how long hostile objects are made, in each of the two rounds")
	flag.Float64Var(&o.rate, "rate", 12, "mean number of hostile requests in a second")
	flag.Float64Var(&o.minRatio, "min-ratio", 0.9, "fail when the victim gets less than this of what it gets otherwise")
	flag.Uint64Var(&o.seed, "seed", 1, "of the hostile objects: the same seed gives the same")
	flag.IntVar(&o.nodes, "nodes", 20, "number of nodes, of 8 cores each")
	flag.StringVar(&o.dir, "dir", "", "work directory; must be empty or absent (default: a new one in _artifacts/)")
	flag.BoolVar(&o.keep, "keep", false, "keep the work directory after success, too")
	flag.Parse()
	program.Main(func(ctx context.Context) (failed bool, err error) {
		s, err := run(ctx, o)
		if err != nil {
			return false, err
		}
		s.print(os.Stdout, o.minRatio)
		return len(s.failures(o.minRatio)) > 0, json.NewEncoder(os.Stdout).Encode(s)
	})
}

// run returns a summary, unless the run itself did not work.
func run(ctx context.Context, o options) (s *summary, err error) {
	if o.duration <= 0 || o.rate <= 0 {
		return nil, errors.New("duration and rate must be above zero")
	}
	dir, err := controlplane.WorkDir(o.dir, "hostile")
	if err != nil {
		return nil, err
	}
	defer func() {
		fine := err == nil && len(s.failures(o.minRatio)) == 0
		if (fine || ctx.Err() != nil) && !o.keep && o.dir == "" {
			_ = os.RemoveAll(dir)
			return
		}
		fmt.Fprintf(os.Stderr, "logs and stores are in %s\n", dir)
	}()
	actions := plan(o.seed, o.duration, o.rate)
	fmt.Fprintf(os.Stderr, "%d hostile requests with seed %d in %s, twice\n", len(actions), o.seed, o.duration)
	unmanaged, err := play(ctx, o, dir, false, actions)
	if err != nil {
		return nil, err
	}
	managed, err := play(ctx, o, dir, true, actions)
	if err != nil {
		return nil, err
	}
	return summarize(o, unmanaged, managed), nil
}
