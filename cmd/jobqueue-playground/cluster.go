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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane/binaries"
)

// clusterFlags are the flags that demo and playground share.
type clusterFlags struct {
	dir     string
	nodes   int
	noColor bool
}

// build builds the outdated programs among those that every command starts, and others.
func build(ctx context.Context, s screen.Screen, root string, others ...binaries.Binary) error {
	wanted := append(binaries.Default(), others...)
	begin := time.Now()
	s.Printf("%s (the first time takes minutes, later nothing is built again)\n", s.Bold("Building what is not current"))
	err := binaries.Build(ctx, binaries.Options{Root: root, Out: s.Out, InPlace: s.Terminal}, wanted...)
	if err != nil {
		return err
	}
	s.Printf("All programs are in bin/ after %s\n", time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// kubectlOnPath says whether this machine has a kubectl.
func kubectlOnPath() bool {
	_, err := exec.LookPath("kubectl")
	return err == nil
}

// newDir returns an empty work directory below _artifacts, or the one of the flag.
func (f clusterFlags) newDir(root, command string) (string, error) {
	if f.dir != "" {
		return filepath.Abs(f.dir)
	}
	parent := filepath.Join(root, "_artifacts")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, command+"-")
}

// startCluster starts everything and applies the shipped manifests and what the scenario needs; that of kinds has
// operators, too.
func startCluster(
	ctx context.Context, s screen.Screen, f clusterFlags, dir string, of *demonstration,
) (_ *controlplane.ControlPlane, err error) {
	begin, kinds := time.Now(), len(of.kinds) > 0
	step := func(message string) { s.Printf("  %5.1fs  %s\n", time.Since(begin).Seconds(), message) }
	s.Printf("%s in %s\n", s.Bold("Starting a control plane"), dir)
	opts := controlplane.Options{Dir: dir, Components: controlplane.Full(), Nodes: f.nodes, Progress: step}
	if kinds {
		opts.NodeEphemeralStorage = ephemeralStorage
	}
	cp, err := controlplane.Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = cp.Stop()
		}
	}()
	if err := cp.Install(ctx); err != nil {
		return nil, fmt.Errorf("apply the manifests: %w", err)
	}
	step("applied the definitions of Koordinator and manifests/overlays/fresh")
	if err := of.applyGPUs(ctx, cp, "nodes.yaml"); err != nil {
		return nil, err
	}
	if kinds {
		if err := startOperators(ctx, cp, step); err != nil {
			return nil, err
		}
	}
	if err := cp.StartInstalled(ctx); err != nil {
		return nil, err
	}
	step("the aggregated API answers")
	if err := cp.Apply(ctx, of.objects); err != nil {
		return nil, fmt.Errorf("apply the scenario: %w", err)
	}
	if err := of.applyGPUs(ctx, cp, "quota.yaml"); err != nil {
		return nil, err
	}
	step("applied quotas, queues and what else the scenario needs")
	if kinds {
		objects, err := needs()
		if err != nil {
			return nil, err
		}
		if err := cp.ApplyObjects(ctx, objects...); err != nil {
			return nil, fmt.Errorf("apply what jobs need: %w", err)
		}
	}
	return cp, nil
}

// applyGPUs applies a file of examples/gpus. Scenarios of cases have no GPUs.
func (d *demonstration) applyGPUs(ctx context.Context, cp *controlplane.ControlPlane, name string) error {
	if d.cases != nil {
		return nil
	}
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	objects, err := os.ReadFile(filepath.Join(root, "examples", "gpus", name))
	if err != nil {
		return err
	}
	if err := cp.Apply(ctx, objects); err != nil {
		return fmt.Errorf("apply examples/gpus/%s: %w", name, err)
	}
	return nil
}
