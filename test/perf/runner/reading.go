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
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/component-base/metrics/testutil"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// reading is what is counted at one moment, by the API server, by the scheduler and by the kernel.
type reading struct {
	spent
	writes map[writeKey]float64
	// queue are the metrics of the queue, histograms as their sum and count.
	queue map[string]float64
	peak  map[string]int64 // bytes by process
	// allocated are the bytes that the scheduler has asked its heap for.
	allocated float64
	err       error
}

// writeKey is a kind of write as the API server counts them.
type writeKey struct{ resource, verb, code string }

const self = "runner"

func (r *run) processes() map[string]int {
	pids := map[string]int{self: os.Getpid()}
	for _, c := range []controlplane.Component{
		controlplane.Etcd, controlplane.APIServer, controlplane.Scheduler,
		controlplane.Controller, controlplane.ControllerManager, controlplane.KWOK,
	} {
		if pid := r.cp.PID(c); pid != 0 {
			pids[string(c)] = pid
		}
	}
	return pids
}

// again reads the counters of the kernel once more, without the cost of the rest of the reading.
func (x *reading) again(r *run) (err error) {
	if x.spent, err = r.spent(); err != nil {
		return err
	}
	x.peak = map[string]int64{}
	for name, pid := range r.processes() {
		if _, x.peak[name], err = usage(pid); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) spent() (x spent, err error) {
	x = spent{at: time.Now(), cpu: map[string]float64{}}
	for name, pid := range r.processes() {
		if x.cpu[name], _, err = usage(pid); err != nil {
			return x, err
		}
	}
	x.busy, x.idle, err = machineTime()
	return x, err
}

func (r *run) read() (x reading) {
	x = reading{writes: map[writeKey]float64{}, queue: map[string]float64{}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if x.err = x.again(r); x.err != nil {
		return x
	}
	raw, err := r.client.get(ctx, "/metrics")
	if err != nil {
		x.err = fmt.Errorf("metrics of the API server: %w", err)
		return x
	}
	samples, err := parseMetrics(bytes.NewReader(raw), "apiserver_request_total")
	if err != nil {
		x.err = err
		return x
	}
	for _, s := range samples["apiserver_request_total"] {
		m := s.Metric
		verb := string(m["verb"])
		if !isWrite(verb, string(m["resource"])) {
			continue
		}
		resource := string(m["resource"])
		if sub := string(m["subresource"]); sub != "" {
			resource += "/" + sub
		}
		x.writes[writeKey{resource, verb, string(m["code"])}] += float64(s.Value)
	}
	if r.cp.Running(controlplane.Scheduler) {
		x.err = r.readScheduler(ctx, &x)
	}
	return x
}

// readAtRest reads until the writes in flight are counted. The watch shows an object before its writer has its answer,
// and the API server counts a write after its answer. Processor time and clock are those of the first reading.
func (r *run) readAtRest(ctx context.Context) reading {
	const pause, most = 100 * time.Millisecond, 20
	first := r.read()
	for last, i := first, 0; i < most && last.err == nil && controlplane.Sleep(ctx, pause); i++ {
		next := r.read()
		if next.err == nil && maps.Equal(next.writes, last.writes) {
			break
		}
		last = next
		first.writes, first.err = next.writes, next.err
	}
	return first
}

const allocatedBytes = "go_memstats_alloc_bytes_total"

func (r *run) readScheduler(ctx context.Context, x *reading) error {
	response, err := fromProcess(ctx, r.cp.URL(controlplane.Scheduler)+"/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	samples, err := parseMetrics(response.Body, metrics.Prefix, allocatedBytes)
	if err != nil {
		return err
	}
	for name, all := range samples {
		for _, s := range all {
			if name == allocatedBytes {
				x.allocated = float64(s.Value)
				continue
			}
			key := strings.TrimPrefix(name, metrics.Prefix)
			x.queue[key] += float64(s.Value)
			if kind := s.Metric["kind"]; kind != "" {
				x.queue[key+"/"+string(kind)] += float64(s.Value)
			}
		}
	}
	return nil
}

// isWrite distinguishes requests that change an object from questions and reads.
func isWrite(verb, resource string) bool {
	switch verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
	default:
		return false
	}
	switch resource {
	case "", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews",
		"selfsubjectrulesreviews", "selfsubjectreviews":
		return false
	}
	return true
}

// parseMetrics reads those samples whose name begins with prefix. The API server tells of very many others.
func parseMetrics(from io.Reader, prefixes ...string) (testutil.Metrics, error) {
	var wanted strings.Builder
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			wanted.WriteString(line + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parsed := testutil.NewMetrics()
	return parsed, testutil.ParseMetrics(wanted.String(), &parsed)
}

// ticksPerSecond is the unit of processor time.
const ticksPerSecond = 100

// machineTime is how many seconds all cores together were busy and idle since the machine was started.
func machineTime() (busy, idle float64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(first)
	// Behind the name: user, nice, system, idle, waiting for disks, two kinds of interrupts, what the host took. Guests,
	// behind those, are in user.
	const idling, waiting, counted = 4, 5, 9
	if len(fields) < counted || fields[0] != "cpu" {
		return 0, 0, errors.New("/proc/stat cannot be read")
	}
	for _, field := range fields[1:counted] {
		busy += float64(atoi(field)) / ticksPerSecond
	}
	idle = float64(atoi(fields[idling])+atoi(fields[waiting])) / ticksPerSecond
	return busy - idle, idle, nil
}

// usage of a process: processor time in seconds, and the most memory that it ever had in bytes.
func usage(pid int) (cpu float64, peak int64, err error) {
	stat, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		return 0, 0, err
	}
	// The name of the program is in brackets and may hold blanks; utime and stime are fields 14 and 15 of all.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, 0, fmt.Errorf("/proc/%d/stat cannot be read", pid)
	}
	cpu = float64(atoi(fields[user])+atoi(fields[system])) / ticksPerSecond
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			peak = atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB"))) << 10
		}
	}
	return cpu, peak, nil
}

// loadAverage is what the kernel says of the last minute, 5 and 15 minutes.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(raw))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// addModules adds the versions of modules that a program is made of.
func addModules(versions map[string]string, path string, modules ...string) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return
	}
	for _, dep := range info.Deps {
		if slices.Contains(modules, dep.Path) {
			versions[dep.Path] = dep.Version
		}
	}
}
