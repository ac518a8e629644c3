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

package submission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// outcome is how a job ended, the worst one last.
type outcome int

const (
	runs outcome = iota
	succeeded
	vanished
	failed
)

// exit is an error with an exit code of its own.
type exit struct {
	text string
	code int
}

func (e *exit) Error() string { return e.text }

// ExitCode of the command.
func (e *exit) ExitCode() int { return e.code }

var (
	errVanished = &exit{"a job vanished before its end was seen", 2}
	errTimeout  = &exit{"not all jobs have ended in time; those that have not go on", 3}
	errFailed   = errors.New("a job failed")

	errInterrupted = errors.New("interrupted; the jobs go on")
)

// followed is a job that was created.
type followed struct {
	// name as it is written.
	name string
	kind *jobKind
	// object as it was last seen.
	object *unstructured.Unstructured
	unit   types.NamespacedName
	// last line that was written, and whether the unit was seen.
	last string
	seen bool
}

// sawUnit returns the line to write, empty for none, and whether the job has ended. A nil unit is not there.
func (f *followed) sawUnit(u *v1alpha1.QueueUnit) (line string, end outcome) {
	if u == nil || !f.owns(u) {
		return "", runs
	}
	f.seen = true
	line = screen.StateLine(u)
	switch screen.State(u) {
	case "Succeeded":
		end = succeeded
	case "Failed":
		end = failed
	}
	if line == f.last {
		return "", end
	}
	f.last = line
	return line, end
}

// owns says whether the unit stands for this job, and not for a former one of its name.
func (f *followed) owns(u *v1alpha1.QueueUnit) bool {
	ref := u.Spec.ConsumerRef
	return ref == nil || ref.UID == "" || f.kind.OfPods() || ref.UID == f.object.GetUID()
}

// sawJob is sawUnit for the job itself. Its own state counts if it is deleted before its unit says that it has ended.
func (f *followed) sawJob(object *unstructured.Unstructured) (line string, end outcome) {
	if object == nil || object.GetUID() != f.object.GetUID() {
		return "is gone: it was deleted before its end was seen", vanished
	}
	f.object = object
	if f.kind.OfPods() {
		return "", runs
	}
	switch end, ended := jobs.Open(f.kind, object).Ended(); {
	case !ended:
		return "", runs
	case end.Succeeded:
		return "Succeeded", succeeded
	default:
		return "Failed (" + end.Message + ")", failed
	}
}

// sight is the state of a job or of its unit, or a notice about the watch. object is nil if it is not there.
type sight struct {
	of     *followed
	unit   bool
	object *unstructured.Unstructured
	notice string
}

// lines says what a sight tells.
func (s *sight) lines() (line string, end outcome, err error) {
	if !s.unit {
		line, end = s.of.sawJob(s.object)
		return line, end, nil
	}
	var unit *v1alpha1.QueueUnit
	if s.object != nil {
		unit = &v1alpha1.QueueUnit{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(s.object.Object, unit)
	}
	line, end = s.of.sawUnit(unit)
	return line, end, err
}

// hintAfter is the time after which a job without a unit is told.
const hintAfter = 30 * time.Second

// follow writes each change until all jobs have ended.
func (o *options) follow(ctx context.Context, api client.WithWatch, list []*followed) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sights, broken := make(chan sight), make(chan error)
	w := &watcher{api: api, clock: o.clock, sights: sights}
	stops := map[*followed]context.CancelFunc{}
	for _, f := range list {
		var of context.Context
		of, stops[f] = context.WithCancel(ctx)
		w.start(of, f, broken)
	}
	worst, hint := succeeded, o.clock.After(hintAfter)
	for len(stops) > 0 {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return errInterrupted
		case err := <-broken:
			return fmt.Errorf("the jobs are created, but cannot be followed: %w", err)
		case <-hint:
			o.hint(stops)
		case s := <-sights:
			if s.notice != "" {
				o.tell(s.notice)
				continue
			}
			end, err := o.show(&s, stops[s.of] != nil)
			if err != nil {
				return err
			}
			if end != runs && stops[s.of] != nil {
				stops[s.of]()
				delete(stops, s.of)
				worst = max(worst, end)
			}
		}
	}
	switch worst {
	case vanished:
		return errVanished
	case failed:
		return errFailed
	default:
		return nil
	}
}

// show writes what a sight tells of a job that has not ended.
func (o *options) show(s *sight, goes bool) (outcome, error) {
	if !goes {
		return runs, nil
	}
	line, end, err := s.lines()
	if err == nil && line != "" {
		_, err = fmt.Fprintf(o.streams.Out, "%s %s\n", s.of.name, line)
	}
	return end, err
}

// hint tells jobs that no queue knows.
func (o *options) hint(going map[*followed]context.CancelFunc) {
	for f := range going {
		if !f.seen {
			o.tell(fmt.Sprintf("%s has no QueueUnit yet; its events and kubectl jobqueue doctor may say why", f.name))
		}
	}
}

func (o *options) tell(text string) { fmt.Fprintln(o.streams.ErrOut, text) }
