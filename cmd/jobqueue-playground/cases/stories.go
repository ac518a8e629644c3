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
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// story is what became of a job, as its objects in the store tell it.
type story struct {
	of   *lifeCase
	name string

	phase v1alpha1.QueueUnitPhase
	since time.Time // when the phase was first seen
	now   string    // why it is where it is
	// reserved and backoff are the longest times in these phases, in the sight of the demo.
	reserved, backoff time.Duration
	// lost are the reasons for which it lost its quota, in their order; inactive is why it is out of its queue for good.
	lost     []string
	inactive string
	attempts int64
	// bound pods; early are those that were bound while it held no quota or waited for a check, unpaid those without what
	// a check wrote.
	bound            map[string]bool
	early, unpaid    int
	complete, failed bool
	// granted is with how many pods it was admitted last; alive are those on nodes now, peak the most at once.
	granted     int64
	alive       map[string]bool
	peak        int
	deactivated bool
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

// endedBy says what is missing to a job that was put out of its queue for this reason before it had a pod on a node.
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

// stories are those of all jobs of the scenario, by UID of the job.
type stories struct {
	cases []lifeCase
	jobs  map[string]*story
}

func newStories() *stories { return &stories{cases: lifeCases(), jobs: map[string]*story{}} }

// of is the story of a job, which may begin with its unit or with the job.
func (t *stories) of(job string) *story {
	if t.jobs[job] == nil {
		t.jobs[job] = &story{bound: map[string]bool{}, alive: map[string]bool{}}
	}
	return t.jobs[job]
}

// submitted says of which case a job is.
func (t *stories) submitted(job, name string, of *lifeCase) {
	s := t.of(job)
	s.of, s.name = of, name
}

// unit takes the next state of a unit.
func (t *stories) unit(now time.Time, u *v1alpha1.QueueUnit) {
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
	if s.deactivated = u.Spec.Active != nil && !*u.Spec.Active; s.deactivated {
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
func (t *stories) pod(pod checker.Pod, labels map[string]string) {
	if pod.Job == "" || !pod.Bound {
		return
	}
	s := t.of(pod.Job)
	if s.alive[pod.UID] = true; pod.Terminal {
		delete(s.alive, pod.UID)
	}
	s.peak = max(s.peak, len(s.alive))
	if s.bound[pod.UID] {
		return
	}
	s.bound[pod.UID] = true
	if !holdsQuota(s.phase) || s.phase == v1alpha1.PhaseReserved {
		s.early++
	}
	if labels[paidLabel] != paidBy {
		s.unpaid++
	}
}

func (t *stories) job(job checker.Job) {
	s := t.of(job.UID)
	s.complete, s.failed = job.Complete, job.Failed
}

// take takes the next change of the store, as the checks have it and as it is.
func (t *stories) take(now time.Time, e checker.Event, object any) {
	if t == nil || e.Deleted {
		return
	}
	switch o := object.(type) {
	case *v1alpha1.QueueUnit:
		t.unit(now, o)
	case *corev1.Pod:
		if pod, ok := e.Object.(checker.Pod); ok {
			t.pod(pod, o.Labels)
		}
	default:
		if job, ok := e.Object.(checker.Job); ok {
			t.job(job)
		}
	}
}

// each are the stories of a case by name.
func (t *stories) each(of *lifeCase) []*story {
	var all []*story
	for _, s := range t.jobs {
		if s.of != nil && s.of.name == of.name {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *story) int { return strings.Compare(a.name, b.name) })
	return all
}

// ended is how many submitted jobs have come to their end.
func (t *stories) ended() (n int) {
	for _, s := range t.jobs {
		if s.of != nil && s.ended() {
			n++
		}
	}
	return n
}

// nodeIsMissed says whether all jobs that no node fits have lost their quota for that.
func (t *stories) nodeIsMissed() bool {
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

// running are those of the jobs, by UID, that have to run to their end.
func (t *stories) running(names map[string]string) map[string]string {
	out := maps.Clone(names)
	maps.DeleteFunc(out, func(uid, _ string) bool { of := t.of(uid).of; return of != nil && of.refused })
	return out
}

// caseCount is where the jobs of a case are at one moment.
type caseCount struct {
	name                                       string
	waiting, reserved, released, backoff, over int
	example, exampleMessage                    string
}

// counts are those of all cases.
func (t *stories) counts() (counts []caseCount) {
	for i := range t.cases {
		c := caseCount{name: t.cases[i].name}
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
				c.example, c.exampleMessage = name(s.name), s.now
			}
		}
		counts = append(counts, c)
	}
	return counts
}

// caseLines are the rows of the table while the scenario runs.
func caseLines(s screen, counts []caseCount) []string {
	if len(counts) == 0 {
		return nil
	}
	lines := []string{s.style("2", fmt.Sprintf("%-18s %7s %8s %8s %8s %5s  %s", "CASE", "WAITING", "RESERVED", "RELEASED",
		"BACK-OFF", "OVER", "ONE THAT WAITS"))}
	for _, c := range counts {
		line := fmt.Sprintf("%s %7d %8d %8d %8d %5d", s.bold(fmt.Sprintf("%-18s", c.name)), c.waiting, c.reserved,
			c.released, c.backoff, c.over)
		if c.example != "" {
			line += "  " + c.example + ": " + c.exampleMessage
		}
		lines = append(lines, line)
	}
	return lines
}

// caseResult is what became of a case, and what is missing to its promise.
type caseResult struct {
	*lifeCase
	what   string
	broken []string
}

// results are those of all cases, at the end.
func (t *stories) results() (results []caseResult) {
	for i := range t.cases {
		of := &t.cases[i]
		result := caseResult{lifeCase: of}
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
		results = append(results, result)
	}
	return results
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

// caseTable is the table of the summary.
func caseTable(s screen, results []caseResult) []string {
	if len(results) == 0 {
		return nil
	}
	lines := []string{"", s.style("2", fmt.Sprintf("  %-18s %4s  %s", "CASE", "JOBS", "WHAT HAPPENED, AND THE PROMISE"))}
	for _, r := range results {
		lines = append(lines, fmt.Sprintf("  %s %4d  %s", s.bold(fmt.Sprintf("%-18s", r.name)), r.jobs, r.what))
		verdict := s.style("32", "kept")
		if len(r.broken) > 0 {
			verdict = s.style("31;1", "BROKEN")
		}
		const indent = 26
		lines = append(lines, fmt.Sprintf("%*s%s: %s", indent, "", verdict, r.promise))
		for _, why := range r.broken {
			lines = append(lines, fmt.Sprintf("%*s%s", indent, "", s.style("31", why)))
		}
	}
	return append(lines, "")
}

// broken is how many cases did not keep their promise.
func broken(results []caseResult) (n int) {
	for _, r := range results {
		if len(r.broken) > 0 {
			n++
		}
	}
	return n
}
