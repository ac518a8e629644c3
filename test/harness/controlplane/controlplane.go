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

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Component names a process of the control plane. Further replicas of the scheduler or of the controller have
// names that their options give them.
type Component string

// The components.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	KWOK              Component = "kwok"
	Scheduler         Component = "koord-scheduler"
	Controller        Component = "jobqueue-controller"
)

// Minimal is what a test of the API alone needs.
func Minimal() []Component { return []Component{Etcd, APIServer} }

// Full is everything but the scheduler and the controller, which have start methods of their own.
func Full() []Component { return []Component{Etcd, APIServer, ControllerManager, KWOK} }

// Options of a control plane. Only Dir is required.
type Options struct {
	// Dir is the work directory: store, keys, kubeconfigs and logs. It must not exist or be empty.
	Dir string
	// Bin is the directory of the binaries; "" means bin/ at the top of the repository.
	Bin string
	// Components to start; nil means Minimal().
	Components []Component
	// Nodes to create once the API serves; with KWOK among the components Start waits until they are ready.
	Nodes int
	// NodeCPU, NodeMemory and NodePods are the allocatable resources of each node; "" means 8, 32Gi and 110.
	NodeCPU, NodeMemory, NodePods string
	// NodeEphemeralStorage is that of ephemeral storage; "" means that nodes have none.
	NodeEphemeralStorage string
	// APIServerArgs and ControllerManagerArgs come after the built-in flags and so override them.
	APIServerArgs, ControllerManagerArgs []string
	// AuditPolicy, if set, has the API server write AuditLog.
	AuditPolicy string
	// Progress, if set, is called with one line per step.
	Progress func(message string)
	// Clock for timeouts and elapsed times; nil means the real one.
	Clock clock.Clock
}

func (o *Options) complete() error {
	if o.Dir == "" {
		return errors.New("options: Dir is required")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if entries, err := os.ReadDir(o.Dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("options: Dir %s is not empty", o.Dir)
	}
	if o.Bin == "" {
		root, err := RepositoryRoot()
		if err != nil {
			return err
		}
		o.Bin = filepath.Join(root, "bin")
	}
	if o.Components == nil {
		o.Components = Minimal()
	}
	if o.NodeCPU == "" {
		o.NodeCPU = "8"
	}
	if o.NodeMemory == "" {
		o.NodeMemory = "32Gi"
	}
	if o.NodePods == "" {
		o.NodePods = "110"
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// Exit tells of a component that ended without being asked to.
type Exit struct {
	Component Component
	Err       error
	// Log is the path of its log.
	Log string
}

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	opts   Options
	pki    *pki
	server string // URL of the API server
	exits  chan Exit

	mu        sync.Mutex
	processes map[Component]*managed
	order     []Component // in which they were started
	stopped   bool
}

// managed is a process together with what tells that it works.
type managed struct {
	*process
	// ready returns nil when the process does its work; it is polled.
	ready func(ctx context.Context) error
	// readyTimeout is how long that may take.
	readyTimeout time.Duration
	// url of its HTTP service, "" if there is none of interest.
	url string
	// secureURL of what it serves over TLS to those that the API server lets.
	secureURL string
}

// Start starts the components of opts and waits until each of them works. On error everything is stopped again.
// The processes do not end with ctx, which bounds Start only: call Stop.
func Start(ctx context.Context, opts Options) (_ *ControlPlane, err error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	port, err := allPorts.next()
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{
		opts:      opts,
		server:    "https://" + hostPort(port),
		exits:     make(chan Exit, 64),
		processes: map[Component]*managed{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.Stop())
		}
	}()
	if cp.pki, err = newPKI(filepath.Join(opts.Dir, "pki"), opts.Clock.Now()); err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(opts.Dir, "kubeconfig"), 0o700); err != nil {
		return nil, err
	}
	for _, a := range accounts() {
		if err := cp.pki.writeKubeconfig(cp.Kubeconfig(a.identity), cp.server, a.identity); err != nil {
			return nil, fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	if err := cp.startBase(ctx, port, opts.Components); err != nil {
		return cp, err
	}
	if opts.Nodes > 0 {
		return cp, cp.CreateNodes(ctx, opts.Nodes)
	}
	return cp, nil
}

// StartBase starts further components of Full and waits until each of them works. Callers can then use the API before
// anybody else reads it.
func (c *ControlPlane) StartBase(ctx context.Context, components ...Component) error {
	port, err := allPorts.next()
	if err != nil {
		return err
	}
	return c.startBase(ctx, port, components)
}

// startBase starts the components in the order in which they need each other; an API server serves on port.
func (c *ControlPlane) startBase(ctx context.Context, port int, components []Component) error {
	steps := []struct {
		component Component
		build     func() (*managed, error)
	}{
		{Etcd, c.etcd},
		{APIServer, func() (*managed, error) { return c.apiServer(port) }},
		{ControllerManager, c.controllerManager},
		{KWOK, c.kwok},
	}
	for _, step := range steps {
		if !slices.Contains(components, step.component) {
			continue
		}
		m, err := step.build()
		if err != nil {
			return fmt.Errorf("prepare %s: %w", step.component, err)
		}
		if step.component == KWOK {
			if err := c.Apply(ctx, kwokRBAC); err != nil {
				return fmt.Errorf("grant KWOK its rights: %w", err)
			}
		}
		if err := c.launch(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// launch registers and starts a process and waits until it works.
func (c *ControlPlane) launch(ctx context.Context, m *managed) error {
	if err := c.register(m); err != nil {
		return err
	}
	return c.run(ctx, m)
}

// register adds a process to start. An ended one of the same name is replaced.
func (c *ControlPlane) register(m *managed) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.processes[m.component]
	switch {
	case c.stopped:
		return errors.New("the control plane is stopped")
	case before != nil && before.running() != nil:
		return fmt.Errorf("%s runs already", m.component)
	}
	c.processes[m.component] = m
	c.order = append(slices.DeleteFunc(c.order, func(other Component) bool { return other == m.component }), m.component)
	return nil
}

func (c *ControlPlane) run(ctx context.Context, m *managed) error {
	begin := c.opts.Clock.Now()
	if err := m.start(); err != nil {
		return err
	}
	if err := c.awaitReady(ctx, m); err != nil {
		return fmt.Errorf("%s is not ready: %w\n--- end of %s\n%s", m.component, err, m.log, m.tail(15))
	}
	c.opts.Progress(fmt.Sprintf("%s is ready after %.1fs", m.component, c.opts.Clock.Since(begin).Seconds()))
	return nil
}

func (c *ControlPlane) get(component Component) (*managed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.processes[component]
	if m == nil {
		return nil, fmt.Errorf("%s was never started", component)
	}
	return m, nil
}

// graceOf is how long a component has to end after SIGTERM before it is killed. The API server waits for its open
// watches and etcd for its clients, for longer than leader election tolerates; neither loses anything by kill -9.
func graceOf(component Component) time.Duration {
	switch component {
	case Etcd:
		return time.Second
	case APIServer:
		return 3 * time.Second
	default:
		return 15 * time.Second
	}
}

// StopComponent ends a component in good order. It is no error if it does not run.
func (c *ControlPlane) StopComponent(component Component) error {
	m, err := c.get(component)
	if err != nil {
		return err
	}
	_, err = m.stop(c.opts.Clock, graceOf(component))
	return err
}

// Kill ends a component with kill -9 and waits until it is gone.
func (c *ControlPlane) Kill(component Component) error {
	m, err := c.get(component)
	if err != nil {
		return err
	}
	return m.kill()
}

// Pause stops a component with SIGSTOP: it keeps its memory and its connections and does nothing until Resume.
func (c *ControlPlane) Pause(component Component) error { return c.Signal(component, syscall.SIGSTOP) }

// Resume lets a paused component go on.
func (c *ControlPlane) Resume(component Component) error { return c.Signal(component, syscall.SIGCONT) }

// Signal sends a signal that does not ask a component to end: an end that follows is reported by Exits.
func (c *ControlPlane) Signal(component Component, signal syscall.Signal) error {
	m, err := c.get(component)
	if err != nil {
		return err
	}
	return m.send(signal)
}

// Restart stops a component if it runs, starts it with the same ports and arguments and waits until it works.
func (c *ControlPlane) Restart(ctx context.Context, component Component) error {
	m, err := c.get(component)
	if err != nil {
		return err
	}
	if _, err := m.stop(c.opts.Clock, graceOf(component)); err != nil {
		return err
	}
	return c.run(ctx, m)
}

// Running says whether the process of the component is there, not whether it works.
func (c *ControlPlane) Running(component Component) bool {
	m, err := c.get(component)
	return err == nil && m.running() != nil
}

// PID returns the process of the component; 0 when none runs.
func (c *ControlPlane) PID(component Component) int {
	m, err := c.get(component)
	if err != nil {
		return 0
	}
	return m.pid()
}

// Exits delivers components that ended without being asked to.
func (c *ControlPlane) Exits() <-chan Exit { return c.exits }

// Stop ends all processes, the last one started first, and waits until they are gone. Further calls do nothing.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	c.stopped = true
	order := slices.Clone(c.order)
	c.mu.Unlock()
	slices.Reverse(order)
	var errs []error
	for _, component := range order {
		// With a short patience, as nothing of this run is read again.
		m, err := c.get(component)
		if err == nil {
			_, err = m.stop(c.opts.Clock, stopGrace)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ended says that Stop was called.
func (c *ControlPlane) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

const stopGrace = 3 * time.Second

// Kubeconfig returns the path of the kubeconfig of an identity.
func (c *ControlPlane) Kubeconfig(identity Identity) string {
	return filepath.Join(c.opts.Dir, "kubeconfig", string(identity)+".yaml")
}

// RESTConfig returns a client configuration of an identity, without a client-side rate limit.
func (c *ControlPlane) RESTConfig(identity Identity) *rest.Config {
	return c.pki.restConfig(c.server, identity)
}

// Dir is the work directory.
func (c *ControlPlane) Dir() string { return c.opts.Dir }

// LogPath returns the path of the log of a component, which goes on over restarts.
func (c *ControlPlane) LogPath(component Component) string {
	return filepath.Join(c.opts.Dir, "logs", string(component)+".log")
}

// AuditLog returns the path of the audit log, which goes on over restarts.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.opts.Dir, "audit", "audit.log") }

// LogTail returns the last lines of the log of a component.
func (c *ControlPlane) LogTail(component Component, lines int) string {
	return (&process{log: c.LogPath(component)}).tail(lines)
}

// OwnLogs has the last lines of the logs of all processes that are not of Full.
func (c *ControlPlane) OwnLogs(lines int) string {
	var all strings.Builder
	logs, _ := filepath.Glob(c.LogPath("*"))
	for _, log := range logs {
		name := Component(strings.TrimSuffix(filepath.Base(log), ".log"))
		if !slices.Contains(Full(), name) {
			fmt.Fprintf(&all, "%s:\n%s\n", name, c.LogTail(name, lines))
		}
	}
	return all.String()
}

// SecureURL returns the base of what scheduler and controller serve over TLS, to those that the API server lets; "" if
// there is none. Their certificates are of their own making.
func (c *ControlPlane) SecureURL(component Component) string {
	m, err := c.get(component)
	if err != nil {
		return ""
	}
	return m.secureURL
}

// URL returns the base of the plain HTTP service of a component: for the scheduler its metrics and
// /apis/v1/plugins/..., for the controller its metrics. "" if there is none.
func (c *ControlPlane) URL(component Component) string {
	m, err := c.get(component)
	if err != nil {
		return ""
	}
	return m.url
}
