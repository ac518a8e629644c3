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

package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Profile says which CPU profiles are taken.
type Profile struct {
	// Dir is where they go; "" takes none.
	Dir string
	// After is from the beginning of what is measured to that of the profiles; For is their length, in whole seconds.
	After, For time.Duration
}

func (p *Profile) wanted() bool { return p.Dir != "" }

// open enables profiling of a scheduler if it is wanted; as shipped it is off.
func (p *Profile) open(config map[string]any) {
	if p.wanted() {
		config["enableProfiling"] = true
	}
}

// profile takes CPU profiles of the processes at the same time, into files of their name and suffix. Errors are printed
// and end nothing else.
func (r *run) profile(ctx context.Context, suffix string, processes ...controlplane.Component) {
	if !controlplane.Sleep(ctx, r.Profile.After) {
		return
	}
	if err := os.MkdirAll(r.Profile.Dir, 0o755); err != nil {
		r.screen.line("profile: " + err.Error())
		return
	}
	var all sync.WaitGroup
	for _, name := range slices.Sorted(slices.Values(processes)) {
		all.Go(func() {
			path := filepath.Join(r.Profile.Dir, string(name)+suffix+".pprof")
			if err := r.profileTo(ctx, path, name); err != nil {
				r.screen.line(fmt.Sprintf("profile of %s: %v", name, err))
			}
		})
	}
	all.Wait()
}

func (r *run) profileTo(ctx context.Context, path string, process controlplane.Component) error {
	from, err := r.openProfile(ctx, process)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // read only
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}

func (r *run) openProfile(ctx context.Context, process controlplane.Component) (io.ReadCloser, error) {
	const path = "/debug/pprof/profile"
	seconds := fmt.Sprint(max(1, int(r.Profile.For.Seconds())))
	if process == controlplane.APIServer {
		return r.client.streams.Get().AbsPath(path).Param("seconds", seconds).Stream(ctx)
	}
	response, err := fromProcess(ctx, r.cp.URL(process)+path+"?seconds="+seconds)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
