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
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// process is one child that can be started again with the same arguments.
type process struct {
	component Component
	path      string
	args      []string
	env       []string // in addition to that of this process
	log       string
	exits     chan<- Exit

	mu      sync.Mutex
	cmd     *exec.Cmd
	done    chan struct{} // closed when the child of cmd has been reaped
	wanted  bool          // the end of this child was asked for
	lastErr error
}

// spawner starts all children. The kernel sends the parent-death signal when the *thread* that forked ends,
// so one thread that never ends does all the forking.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func spawn(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}

// start runs the child. It is an error to start one that runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("%s runs already", p.component)
	}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	fmt.Fprintf(log, "# %s %s\n", p.path, strings.Join(p.args, " "))

	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own, so that Ctrl-C at the terminal reaches only the parent, which then stops its children in order.
	// The kernel sends a signal in case the parent cannot.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.component, err)
	}
	p.cmd, p.done, p.wanted, p.lastErr = cmd, make(chan struct{}), false, nil
	go p.reap(cmd, p.done)
	return nil
}

func (p *process) reap(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.cmd, p.lastErr = nil, err
	wanted := p.wanted
	p.mu.Unlock()
	close(done)
	if !wanted {
		select {
		case p.exits <- Exit{Component: p.component, Err: err, Log: p.log}:
		default:
		}
	}
}

// running returns a channel that is closed when the child ends, or nil when none runs.
func (p *process) running() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	return p.done
}

// pid of the child; 0 when none runs.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// send sends s to the whole process group of the child, as something that does not ask it to end.
func (p *process) send(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("%s does not run", p.component)
	}
	return syscall.Kill(-p.cmd.Process.Pid, s)
}

// signal asks the child to end: it sends s to its whole process group. ok is false when none runs.
func (p *process) signal(s syscall.Signal) (done <-chan struct{}, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil, false, nil
	}
	p.wanted = true
	err = syscall.Kill(-p.cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		err = nil
	}
	return p.done, true, err
}

// stop ends the child in good order, and after grace with kill -9. It returns whether that was needed.
func (p *process) stop(clk clock.Clock, grace time.Duration) (killed bool, err error) {
	done, ok, err := p.signal(syscall.SIGTERM)
	if !ok || err != nil {
		return false, err
	}
	// A paused process would get the signal only when it is resumed. The process may have ended.
	_ = p.send(syscall.SIGCONT)
	timer := clk.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return false, nil
	case <-timer.C():
		return true, p.kill()
	}
}

// kill ends the child with kill -9 and waits until it is gone.
func (p *process) kill() error {
	done, ok, err := p.signal(syscall.SIGKILL)
	if !ok || err != nil {
		return err
	}
	<-done
	return nil
}

// tail returns the last lines of the log.
func (p *process) tail(lines int) string {
	const window = 16 << 10
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close() //nolint:errcheck // read only
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-window), io.SeekStart)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
