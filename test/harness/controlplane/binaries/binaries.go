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

// Package binaries builds the programs of a control plane, shows its progress, and never builds a current program
// again.
package binaries

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Binary is one program.
type Binary struct {
	// Name of the file in bin/.
	Name string
	// Package to build, from Module: a directory of the repository with a go.mod, "" for the top.
	Package, Module string
	// LinkFlags are added to the linker's.
	LinkFlags []string
	// Sources are the directories and files of the program, from the top of the repository, without other modules. If none
	// of them changed, the program is current.
	Sources []string
}

// kubernetesVersion is what the linked control plane calls itself; without it clients that read the version fail.
const kubernetesVersion = "v1.35.4"

func kubernetesLinkFlags() []string {
	const version = "-X=k8s.io/component-base/version."
	return []string{version + "gitVersion=" + kubernetesVersion, version + "gitMajor=1", version + "gitMinor=35"}
}

// Default are the programs that demo and tests start, the quick ones last.
func Default() []Binary {
	modules := []string{"go.mod", "go.sum"}
	ours := append(slices.Clone(modules), "apis", "internal", "pkg")
	return []Binary{
		{
			Name:    "koord-scheduler",
			Package: "./cmd/koord-scheduler",
			Sources: append(slices.Clone(ours), "cmd/koord-scheduler"),
		},
		{
			Name:      "jobqueue-controlplane",
			Package:   "./test/cmd/jobqueue-controlplane",
			LinkFlags: kubernetesLinkFlags(),
			Sources:   append(slices.Clone(modules), "test/cmd/jobqueue-controlplane"),
		},
		{
			Name:    "jobqueue-controller",
			Package: "./cmd/jobqueue-controller",
			Sources: append(slices.Clone(ours), "cmd/jobqueue-controller"),
		},
		{
			Name:    "kwok",
			Package: "sigs.k8s.io/kwok/cmd/kwok",
			Module:  "hack/tools/kwok",
			Sources: []string{"hack/tools/kwok"},
		},
	}
}

// Operators are the programs of controlplane.StartOperator. They compile for minutes, and only tests of job
// kinds and the demo of them need them.
func Operators() []Binary {
	return []Binary{
		{
			Name:    "training-operator",
			Package: "github.com/kubeflow/training-operator/cmd/training-operator.v1",
			Module:  "hack/tools/training-operator",
			Sources: []string{"hack/tools/training-operator"},
		},
		{
			Name:    "jobset",
			Package: "sigs.k8s.io/jobset",
			Module:  "hack/tools/trainer",
			Sources: []string{"hack/tools/trainer"},
		},
		{
			Name:    "trainer",
			Package: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
			Module:  "hack/tools/trainer",
			Sources: []string{"hack/tools/trainer"},
		},
		{
			Name:    "kuberay",
			Package: "github.com/ray-project/kuberay/ray-operator",
			Module:  "hack/tools/kuberay",
			Sources: []string{"hack/tools/kuberay"},
		},
	}
}

// StandIn plays operators that cannot be had here; controlplane.StartStandIn starts it.
func StandIn() Binary {
	return Binary{
		Name:    "standin",
		Package: "./test/cmd/standin",
		Sources: []string{"go.mod", "go.sum", "test/harness/standin", "test/cmd/standin"},
	}
}

// Kubectl is for the playground, on a machine without one.
func Kubectl() Binary {
	return Binary{
		Name:      "kubectl",
		Package:   "k8s.io/kubernetes/cmd/kubectl",
		LinkFlags: kubernetesLinkFlags(),
		Sources:   []string{"go.mod", "go.sum"},
	}
}

// Plugin is kubectl-jobqueue, for the playground and the tests of the documentation.
func Plugin() Binary {
	return Binary{
		Name: "kubectl-jobqueue", Package: "./cmd/kubectl-jobqueue",
		Sources: []string{"go.mod", "go.sum", "apis", "internal", "pkg", "cmd/kubectl-jobqueue"},
	}
}

// Migrate is jobqueue-migrate, for the tests of it and of the documentation.
func Migrate() Binary {
	return Binary{
		Name: "jobqueue-migrate", Package: "./cmd/jobqueue-migrate",
		Sources: []string{"go.mod", "go.sum", "apis", "internal", "pkg", "cmd/jobqueue-migrate"},
	}
}

// Options of a build.
type Options struct {
	// Root is the top of the repository, Bin where the programs go; "" means bin/ in Root.
	Root, Bin string
	// Out takes the progress: a line that is rewritten when InPlace is set, else a line every few seconds.
	Out     io.Writer
	InPlace bool
	// Clock for elapsed times; nil means the real one.
	Clock clock.WithTicker
}

// Build builds those programs that are not current. On failure it returns what the compiler said.
func Build(ctx context.Context, opts Options, wanted ...Binary) error {
	if opts.Bin == "" {
		opts.Bin = filepath.Join(opts.Root, "bin")
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if err := os.MkdirAll(filepath.Join(opts.Bin, stampDir), 0o755); err != nil {
		return err
	}
	for i, b := range wanted {
		stamp, err := b.fingerprint(opts.Root)
		if err != nil {
			return fmt.Errorf("read the sources of %s: %w", b.Name, err)
		}
		if b.current(opts.Bin, stamp) {
			continue
		}
		label := fmt.Sprintf("[%d/%d] %s", i+1, len(wanted), b.Name)
		if err := b.build(ctx, opts, label); err != nil {
			return fmt.Errorf("build %s: %w", b.Name, err)
		}
		if err := os.WriteFile(b.stampPath(opts.Bin), []byte(stamp), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const stampDir = ".stamps"

func (b Binary) stampPath(bin string) string { return filepath.Join(bin, stampDir, b.Name) }

// current says whether the program exists and was made of the same sources.
func (b Binary) current(bin, stamp string) bool {
	if _, err := os.Stat(filepath.Join(bin, b.Name)); err != nil {
		return false
	}
	made, err := os.ReadFile(b.stampPath(bin))
	return err == nil && string(made) == stamp
}

// fingerprint changes when a source file, the way of building or the toolchain does.
func (b Binary) fingerprint(root string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH, b.arguments("-"))
	for _, source := range b.Sources {
		err := filepath.WalkDir(filepath.Join(root, source), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(hash, "%s %x\n", name, sha256.Sum256(content))
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func (b Binary) arguments(out string) []string {
	flags := append([]string{"-s", "-w"}, b.LinkFlags...)
	// -v names each package when it has been compiled: the progress. No revision is stamped in, so that a
	// commit alone does not change the program.
	return []string{"build", "-v", "-buildvcs=false", "-ldflags=" + strings.Join(flags, " "), "-o", out, b.Package}
}

func (b Binary) build(ctx context.Context, opts Options, label string) error {
	cmd := exec.CommandContext(ctx, "go", b.arguments(filepath.Join(opts.Bin, b.Name))...)
	cmd.Dir = filepath.Join(opts.Root, b.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	// The compilers that go has started end with it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	progress := &progress{label: label, out: opts.Out, inPlace: opts.InPlace, begin: opts.Clock.Now(), clock: opts.Clock}
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer

	var group sync.WaitGroup
	group.Go(func() { progress.read(reader) })
	stop := make(chan struct{})
	group.Go(func() { progress.tick(stop) })
	err := cmd.Run()
	close(stop)
	err = errors.Join(err, writer.Close())
	group.Wait()
	progress.finish(err)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, progress.said())
	}
	return nil
}

// progress turns what `go build -v` says into one line.
type progress struct {
	label   string
	out     io.Writer
	inPlace bool
	begin   time.Time
	clock   clock.WithTicker

	mu         sync.Mutex
	compiled   int
	downloaded int
	last       string
	other      bytes.Buffer // compiler errors
}

func (p *progress) read(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.line(scanner.Text())
	}
}

func (p *progress) line(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
		p.last = strings.TrimPrefix(line, "go: ")
	case isPackage(line):
		p.compiled++
		p.last = line
	default:
		p.other.WriteString(line + "\n")
	}
}

// isPackage says whether a line is an import path, which is all that -v writes.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :#\t")
}

const (
	inPlaceInterval = 200 * time.Millisecond
	lineInterval    = 5 * time.Second
)

func (p *progress) tick(stop <-chan struct{}) {
	interval := lineInterval
	if p.inPlace {
		interval = inPlaceInterval
	}
	p.print(false)
	ticker := p.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			p.print(false)
		case <-stop:
			return
		}
	}
}

func (p *progress) finish(err error) {
	if err == nil {
		p.print(true)
	} else if p.inPlace {
		fmt.Fprintln(p.out)
	}
}

func (p *progress) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.other.String()
}

func (p *progress) print(done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%-32s %7s  %4d packages", p.label, p.clock.Since(p.begin).Round(time.Second), p.compiled)
	if p.downloaded > 0 {
		line += fmt.Sprintf("  %d modules", p.downloaded)
	}
	switch {
	case done:
		line += "  done"
	case p.last != "":
		line += "  " + p.last
	}
	if !p.inPlace {
		fmt.Fprintln(p.out, line)
		return
	}
	const width = 100
	if len(line) > width {
		line = line[:width]
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	if done {
		fmt.Fprintln(p.out)
	}
}
