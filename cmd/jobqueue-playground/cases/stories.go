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

package cases

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// story is what became of a job, as its objects in the store tell it.
type story struct {
	of   *Case
	name string
	sent time.Time // when it was submitted

	phase v1alpha1.QueueUnitPhase
	since time.Time // when the phase was first seen
	now   string    // why it is where it is
	// reserved and backoff are the longest times in these phases, in the sight of the demo.
	reserved, backoff time.Duration
	// lost are the reasons for which it lost its quota, in their order; inactive is why it is out of its queue for good.
	lost     []string
	inactive string
	attempts int64
	// bound is when each pod was first seen on a node. early are those that were bound while it held no quota or waited
	// for a check, unpaid those without what a check wrote.
	bound            map[string]time.Time
	early, unpaid    int
	made             map[string]time.Time // when each pod was first seen
	complete, failed bool
	// granted is with how many pods it was admitted last; alive are those on nodes now, peak the most at once.
	granted     int64
	alive       map[string]bool
	peak        int
	deactivated bool
}

// wait is from the submission to the moment when as many pods were seen on nodes as the case has; 0 if they never were.
func (s *story) wait() time.Duration {
	if len(s.bound) < int(s.of.pods) {
		return 0
	}
	return slices.SortedFunc(maps.Values(s.bound), time.Time.Compare)[s.of.pods-1].Sub(s.sent)
}

// hung is how many of its pods waited for a node for longer than this, or wait still.
func (s *story) hung(most time.Duration) (n int) {
	for uid, made := range s.made {
		if at := s.bound[uid]; at.IsZero() || at.Sub(made) > most {
			n++
		}
	}
	return n
}

func (s *story) ended() bool { return s.complete || s.failed || s.deactivated }

// ranAfter says what is missing to a job that ran to its end after it had lost its quota for these reasons.
func (s *story) ranAfter(lost ...string) string {
	switch {
	case s.early > 0:
		return fmt.Sprintf("%d pods were on nodes before it was released", s.early)
	case s.inactive != "" || s.failed:
		return "it did not run: " + cmp.Or(s.inactive, "failed")
	case !s.complete:
		return fmt.Sprintf("it is %s: %s", s.phase, s.now)
	case !slices.Equal(s.lost, lost):
		return fmt.Sprintf("it lost its quota for %s, and not for %s", listed(s.lost), listed(lost))
	case s.attempts != int64(len(lost)+1):
		return fmt.Sprintf("quota was reserved for it %d times", s.attempts)
	}
	return ""
}

// endedBy says which fact is missing of a job that left its queue for this reason before it had a pod on a node.
func (s *story) endedBy(reason string) string {
	switch {
	case len(s.bound) > 0:
		return fmt.Sprintf("%d of its pods were on nodes", len(s.bound))
	case s.inactive != reason:
		return fmt.Sprintf("it is %s: %s", s.phase, s.now)
	case holdsQuota(s.phase):
		return "it holds its quota"
	}
	return ""
}

func listed(reasons []string) string { return cmp.Or(strings.Join(reasons, ", "), "nothing") }

func holdsQuota(phase v1alpha1.QueueUnitPhase) bool { return unit.Phase(phase).Holds() }

// Stories are those of all jobs of the scenario, by UID of the job.
type Stories struct {
	*Scenario
	jobs map[string]*story
	done bool // the single actions are done
}

// Stories of a scenario in which nothing has happened.
func (s *Scenario) Stories() *Stories { return &Stories{Scenario: s, jobs: map[string]*story{}} }

// of is the story of a job, which may begin with its unit or with the job.
func (t *Stories) of(job string) *story {
	if t.jobs[job] == nil {
		t.jobs[job] = &story{bound: map[string]time.Time{}, made: map[string]time.Time{}, alive: map[string]bool{}}
	}
	return t.jobs[job]
}

// Submitted says of which case a job is.
func (t *Stories) Submitted(job, name string, of *Case, at time.Time) {
	s := t.of(job)
	s.of, s.name, s.sent = of, name, at
}

// Turn says whether it is time to submit a job of a case.
func (t *Stories) Turn(of *Case) bool {
	for _, s := range t.jobs {
		if of.last && s.of != nil && !s.of.last && len(s.alive) < int(s.of.pods) {
			return false
		}
	}
	return true
}

// MayLose says whether a job may lose its quota and get it again.
func (t *Stories) MayLose(job string) bool { of := t.of(job).of; return of == nil || !of.steady }

// NowDue says once that it is time for what is done once.
func (t *Stories) NowDue() bool {
	due := !t.done && t.Due != nil && t.Due(t)
	t.done = t.done || due
	return due
}

// unit takes the next state of a unit.
func (t *Stories) unit(now time.Time, u *v1alpha1.QueueUnit) {
	if u.Spec.ConsumerRef == nil {
		return
	}
	s := t.of(string(u.Spec.ConsumerRef.UID))
	s.now, s.attempts = whyThere(u), u.Status.Attempts
	if phase := u.Status.Phase; phase != s.phase {
		s.spent(now)
		if holdsQuota(s.phase) && !holdsQuota(phase) && phase != v1alpha1.PhaseSucceed && phase != v1alpha1.PhaseFailed {
			s.lost = append(s.lost, reasonOf(u, v1alpha1.ConditionEvicted))
		}
		if holdsQuota(phase) && !holdsQuota(s.phase) {
			s.granted = replicas(u)
		}
		s.phase, s.since = phase, now
	}
	if s.deactivated = u.Inactive(); s.deactivated {
		s.inactive = reasonOf(u, v1alpha1.ConditionDeactivationTarget)
	}
}

// replicas with which a unit is admitted.
func replicas(u *v1alpha1.QueueUnit) (n int64) {
	for i := range u.Status.Admissions {
		n += u.Status.Admissions[i].Replicas
	}
	return n
}

// spent counts the time in the present phase.
func (s *story) spent(now time.Time) {
	took := now.Sub(s.since)
	if s.phase == v1alpha1.PhaseReserved {
		s.reserved = max(s.reserved, took)
	}
	if s.phase == v1alpha1.PhaseTimeoutBackoff {
		s.backoff = max(s.backoff, took)
	}
}

func reasonOf(u *v1alpha1.QueueUnit, condition string) string {
	if c := meta.FindStatusCondition(u.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return "no reason"
}

// whyThere says why a unit does not run, in its own words.
func whyThere(u *v1alpha1.QueueUnit) string {
	for _, of := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{v1alpha1.ConditionDeactivationTarget, metav1.ConditionTrue},
		{v1alpha1.ConditionEvicted, metav1.ConditionTrue},
		{v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse},
		{v1alpha1.ConditionAdmitted, metav1.ConditionFalse},
	} {
		c := meta.FindStatusCondition(u.Status.Conditions, of.condition)
		if c != nil && c.Status == of.status && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// pod takes the next state of a pod that belongs to a job.
func (t *Stories) pod(now time.Time, pod checker.Pod, labels map[string]string) {
	if pod.Job == "" {
		return
	}
	s := t.of(pod.Job)
	if s.made[pod.UID].IsZero() {
		s.made[pod.UID] = now
	}
	if !pod.Bound {
		return
	}
	if s.alive[pod.UID] = true; pod.Terminal {
		delete(s.alive, pod.UID)
	}
	s.peak = max(s.peak, len(s.alive))
	if !s.bound[pod.UID].IsZero() {
		return
	}
	s.bound[pod.UID] = now
	if !holdsQuota(s.phase) || s.phase == v1alpha1.PhaseReserved {
		s.early++
	}
	if labels[paidLabel] != paidBy {
		s.unpaid++
	}
}

func (t *Stories) job(job checker.Job) {
	s := t.of(job.UID)
	s.complete, s.failed = job.Complete, job.Failed
}

// Take takes the next change of the store, as the checks have it and as it is.
func (t *Stories) Take(now time.Time, e checker.Event, object any) {
	if t == nil || e.Deleted {
		return
	}
	switch o := object.(type) {
	case *v1alpha1.QueueUnit:
		t.unit(now, o)
	case *corev1.Pod:
		if pod, ok := e.Object.(checker.Pod); ok {
			t.pod(now, pod, o.Labels)
		}
	default:
		if job, ok := e.Object.(checker.Job); ok {
			t.job(job)
		}
	}
}

// each are the stories of a case by name; without one, all of them.
func (t *Stories) each(of *Case) []*story {
	var all []*story
	for _, s := range t.jobs {
		if s.of != nil && (of == nil || s.of.name == of.name) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *story) int { return strings.Compare(a.name, b.name) })
	return all
}

// Ended is how many submitted jobs have come to their end.
func (t *Stories) Ended() (n int) {
	for _, s := range t.jobs {
		if s.of != nil && s.ended() {
			n++
		}
	}
	return n
}

// nodeIsMissed says whether all jobs that no node fits have lost their quota for that.
func (t *Stories) nodeIsMissed() bool {
	missed, want := 0, 0
	for i := range t.cases {
		if t.cases[i].late {
			want += t.cases[i].jobs
		}
	}
	for _, s := range t.jobs {
		if s.of != nil && s.of.late && len(s.lost) > 0 {
			missed++
		}
	}
	return missed > 0 && missed >= want
}

// Running are those of the jobs, by UID, that have to run to their end.
func (t *Stories) Running(names map[string]string) map[string]string {
	out := maps.Clone(names)
	maps.DeleteFunc(out, func(uid, _ string) bool { of := t.of(uid).of; return of != nil && of.Refused })
	return out
}

// Count is where the jobs of a case are at one moment.
type Count struct {
	name                                       string
	waiting, reserved, released, backoff, over int
	example, exampleMessage                    string
}

// Counts are those of all cases.
func (t *Stories) Counts() (counts []Count) {
	for i := range t.cases {
		c := Count{name: t.cases[i].name}
		for _, s := range t.each(&t.cases[i]) {
			switch {
			case s.ended():
				c.over++
				continue
			case s.phase == v1alpha1.PhaseReserved:
				c.reserved++
			case holdsQuota(s.phase):
				c.released++
				continue
			case s.phase == v1alpha1.PhaseTimeoutBackoff:
				c.backoff++
			default:
				c.waiting++
			}
			if c.example == "" && s.now != "" {
				_, c.example, _ = strings.Cut(s.name, "/")
				c.exampleMessage = s.now
			}
		}
		counts = append(counts, c)
	}
	return counts
}

// Lines are the rows of the table while the scenario runs.
func Lines(s screen.Screen, counts []Count) []string {
	if len(counts) == 0 {
		return nil
	}
	lines := []string{s.Style("2", fmt.Sprintf("%-18s %7s %8s %8s %8s %5s  %s", "CASE", "WAITING", "RESERVED", "RELEASED",
		"BACK-OFF", "OVER", "ONE THAT WAITS"))}
	for _, c := range counts {
		line := fmt.Sprintf("%s %7d %8d %8d %8d %5d", s.Bold(fmt.Sprintf("%-18s", c.name)), c.waiting, c.reserved,
			c.released, c.backoff, c.over)
		if c.example != "" {
			line += "  " + c.example + ": " + c.exampleMessage
		}
		lines = append(lines, line)
	}
	return lines
}

// Result is the outcome of a case, with the broken parts of its promise.
type Result struct {
	*Case
	what   string
	broken []string
}

// Verdict is what became of a scenario.
type Verdict struct {
	Cases []Result
	// lines are about all cases together, broken the promises of that.
	lines, broken []string
}

// Verdict at the end; once says that each job ran to its end once.
func (t *Stories) Verdict(once bool) (v Verdict) {
	for i := range t.cases {
		of := &t.cases[i]
		result := Result{Case: of}
		all := t.each(of)
		for _, s := range all {
			if missing := of.missing(s); missing != "" {
				result.broken = append(result.broken, s.name+": "+missing)
			}
		}
		if len(all) != of.jobs {
			result.broken = append(result.broken, fmt.Sprintf("%d jobs of %d were submitted", len(all), of.jobs))
		}
		result.what = whatHappened(all)
		v.Cases = append(v.Cases, result)
	}
	if t.sum != nil {
		v.lines, v.broken = t.sum(t, once)
	}
	return v
}

// whatHappened to the jobs of a case, in words.
func whatHappened(all []*story) string {
	counts := map[string]int{}
	var done, refused int
	var reserved, backoff time.Duration
	for _, s := range all {
		if s.complete {
			done++
		}
		if s.deactivated {
			refused++
		}
		for _, reason := range s.lost {
			counts[reason]++
		}
		reserved, backoff = max(reserved, s.reserved), max(backoff, s.backoff)
	}
	var parts []string
	if reserved > 0 {
		parts = append(parts, "quota reserved for up to "+inSeconds(reserved))
	}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d times", reason, counts[reason]))
	}
	if backoff > 0 {
		parts = append(parts, "back-off of up to "+inSeconds(backoff))
	}
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%d inactive", refused))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d of %d ran to their end", done, len(all))), ", ")
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// Lines are those of the summary.
func (v *Verdict) Lines(s screen.Screen) (lines []string) {
	for _, line := range v.lines {
		lines = append(lines, "  "+line)
	}
	for _, why := range v.broken {
		lines = append(lines, "  "+s.Style("31;1", "BROKEN")+": "+why)
	}
	if len(v.Cases) == 0 {
		return lines
	}
	lines = append(lines, "",
		s.Style("2", fmt.Sprintf("  %-18s %4s  %s", "CASE", "JOBS", "WHAT HAPPENED, AND THE PROMISE")))
	for _, r := range v.Cases {
		lines = append(lines, fmt.Sprintf("  %s %4d  %s", s.Bold(fmt.Sprintf("%-18s", r.name)), r.jobs, r.what))
		verdict := s.Style("32", "kept")
		if len(r.broken) > 0 {
			verdict = s.Style("31;1", "BROKEN")
		}
		const indent = 26
		lines = append(lines, fmt.Sprintf("%*s%s: %s", indent, "", verdict, r.promise))
		for _, why := range r.broken {
			lines = append(lines, fmt.Sprintf("%*s%s", indent, "", s.Style("31", why)))
		}
	}
	return append(lines, "")
}

// Err says which promises are broken.
func (v *Verdict) Err() error {
	n := 0
	for _, r := range v.Cases {
		n += min(1, len(r.broken))
	}
	var err error
	if n > 0 {
		err = fmt.Errorf("%d of %d cases without what they promise", n, len(v.Cases))
	}
	for _, why := range v.broken {
		err = errors.Join(err, errors.New(why))
	}
	return err
}
