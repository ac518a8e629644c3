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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// view passes events of the observer to the checks, and remembers the contents of the table.
type view struct {
	store *observer.Observer

	mu     sync.Mutex
	checks *checker.Checker
	events int

	queues   map[string]*v1alpha1.Queue
	sent     map[string]time.Time     // UID of a job -> when it was submitted
	names    map[string]string        // UID of a job -> its name
	admitted map[string]time.Duration // UID of a job -> from its submission to the sight of its admission

	mixed  []jobKind         // kinds of a mixed workload, none if there are only Jobs
	kinds  map[string]string // UID of a job -> its kind
	owners map[string]string // UID -> UID of the controlling object

	stories *cases.Stories // of a scenario of cases; nil in others
}

// newView returns the view of jobs of these kinds; without any, of Jobs.
func newView(mixed []jobKind) *view {
	return &view{
		checks:   checker.New(blockingQueues()),
		queues:   map[string]*v1alpha1.Queue{},
		sent:     map[string]time.Time{},
		names:    map[string]string{},
		admitted: map[string]time.Duration{},
		mixed:    mixed,
		kinds:    map[string]string{},
		owners:   map[string]string{},
	}
}

// watch follows the store at the endpoint until ctx ends; it returns once what exists has been seen.
func (v *view) watch(ctx context.Context, endpoint string) (err error) {
	var others []schema.GroupResource
	if len(v.mixed) > 0 {
		others = followed()
	}
	if v.store, err = observer.New(endpoint, v.take, others...); err != nil {
		return err
	}
	go v.store.Run(ctx)
	return v.store.CaughtUp(ctx)
}

// take takes the next change of the store.
func (v *view) take(change observer.Change) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if queue, ok := change.Object.(*v1alpha1.Queue); ok {
		v.queues[queue.Name] = queue
		if change.Deleted {
			delete(v.queues, queue.Name)
		}
		return nil
	}
	e, ok, err := v.event(change)
	if !ok {
		return err
	}
	v.events++
	v.checks.Apply(e)
	v.stories.Take(time.Now(), e, change.Object)
	if unit, ok := e.Object.(checker.Unit); ok {
		v.noteAdmission(unit)
	}
	return nil
}

// event is a change as the checks take it: a pod belongs to the topmost of the objects that made it.
func (v *view) event(change observer.Change) (checker.Event, bool, error) {
	if object, ok := change.Object.(metav1.Object); ok {
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
			v.owners[string(object.GetUID())] = string(owner.UID)
		}
	}
	e, ok, err := change.Event()
	if object, custom := change.Object.(*unstructured.Unstructured); custom && !ok && err == nil {
		i := slices.IndexFunc(v.mixed, func(k jobKind) bool { return k.GroupKind() == object.GroupVersionKind().GroupKind() })
		if ok = i >= 0; ok {
			e.Object = checker.JobOfKind(object, v.mixed[i].pods, v.mixed[i].deciding)
		}
	}
	if pod, isPod := e.Object.(checker.Pod); isPod {
		pod.Job = v.topmost(pod.Job)
		e.Object = pod
	}
	return e, ok, err
}

// topmost follows the owners of an object upwards. Owners are made before what they own, so they are known.
func (v *view) topmost(uid string) string {
	for v.owners[uid] != "" {
		uid = v.owners[uid]
	}
	return uid
}

// submitted takes note of a job that the API server has accepted. The order in which this and the sight of the
// job's unit come does not matter.
func (v *view) submitted(job *unstructured.Unstructured, of *cases.Case, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	uid := string(job.GetUID())
	v.sent[uid], v.names[uid], v.kinds[uid] = at, job.GetNamespace()+"/"+job.GetName(), job.GetKind()
	v.noteAdmission(v.checks.UnitFor(uid))
	if of != nil {
		v.stories.Submitted(uid, v.names[uid], of, at)
	}
}

// noteAdmission notes how long the job of an admitted unit has waited, if it is known when it was submitted.
func (v *view) noteAdmission(unit checker.Unit) {
	sent, ok := v.sent[unit.Job]
	if _, known := v.admitted[unit.Job]; ok && unit.Admitted && !known {
		v.admitted[unit.Job] = time.Since(sent)
	}
}

// admissions are the times at which jobs were admitted, by their names.
func (v *view) admissions() map[string]time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := map[string]time.Time{}
	for uid, waited := range v.admitted {
		at[v.names[uid]] = v.sent[uid].Add(waited)
	}
	return at
}

// ended returns how many submitted jobs have ended, in whatever way.
func (v *view) ended() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stories != nil {
		return v.stories.Ended()
	}
	n := 0
	for uid := range v.sent {
		if job := v.checks.Job(uid); job.Complete || job.Failed {
			n++
		}
	}
	return n
}

// verdict is what the checks say: at the end, with all that only the end tells.
func (v *view) verdict() (done, peak, events int, violations []checker.Violation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := maps.Clone(v.names)
	if v.stories != nil {
		names = v.stories.Running(names)
	}
	done, violations = v.checks.Finish(names)
	return done, v.checks.PeakPods(), v.events, violations
}

// nowDue says once that it is time for what a scenario does once.
func (v *view) nowDue() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stories != nil && v.stories.NowDue()
}

// turn says whether it is time to submit a job of a case.
func (v *view) turn(of *cases.Case) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return of == nil || v.stories.Turn(of)
}

// caseVerdict is that of a scenario of cases, at the end; once says that each job ran to its end once.
func (v *view) caseVerdict(once bool) (c cases.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stories != nil {
		c = v.stories.Verdict(once)
	}
	return c
}

func (v *view) violations() []checker.Violation {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.checks.Violations()
}

// waits returns the times from submission to admission by queue, sorted.
func (v *view) waits() map[string][]time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	result := map[string][]time.Duration{}
	for job, wait := range v.admitted {
		queue := v.checks.UnitFor(job).Queue
		result[queue] = append(result[queue], wait)
	}
	for _, waits := range result {
		slices.Sort(waits)
	}
	return result
}

// kindResult is how the jobs of a kind ended.
type kindResult struct {
	*jobKind
	submitted, done int
	waits           []time.Duration            // sorted
	queues          map[string][]time.Duration // waits by queue, sorted
}

// kindResults are those of the mixed workload, at the end.
func (v *view) kindResults() (results []kindResult) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.mixed {
		result := kindResult{jobKind: &v.mixed[i], queues: map[string][]time.Duration{}}
		names := map[string]string{}
		for uid, kind := range v.kinds {
			if kind != result.Kind {
				continue
			}
			names[uid] = v.names[uid]
			if wait, ok := v.admitted[uid]; ok {
				queue := v.checks.UnitFor(uid).Queue
				result.waits = append(result.waits, wait)
				result.queues[queue] = append(result.queues[queue], wait)
			}
		}
		slices.Sort(result.waits)
		for _, waits := range result.queues {
			slices.Sort(waits)
		}
		result.submitted = len(names)
		result.done, _ = v.checks.Finish(names)
		results = append(results, result)
	}
	return results
}

// name returns the part of a key after its namespace.
func name(key string) string {
	_, after, _ := strings.Cut(key, "/")
	return after
}
