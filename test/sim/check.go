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

package sim

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// checker compares all writes with the invariants, from API objects alone. Facts that a process could not know at its
// decision count with any value between then and now. The checks take nothing else from the process.
type checker struct {
	w          *world
	facts      *facts
	admissions *admissionCheck
	statuses   *statusCheck
	takings    *takingCheck
	graces     *graceCheck
	jobs       *jobCheck
	pods       *podCheck
	rest       *restCheck
}

func newChecker(w *world) *checker {
	f := newFacts(w)
	a := &accounts{w: w, facts: f}
	return &checker{
		w: w, facts: f, admissions: newAdmissionCheck(w, f, a), statuses: &statusCheck{w: w, facts: f},
		takings: newTakingCheck(w, f, a), graces: newGraceCheck(w, f),
		jobs: &jobCheck{w: w, facts: f, wholes: map[types.UID]int64{}}, pods: &podCheck{w: w, facts: f, accounts: a},
		rest: &restCheck{w: w, facts: f, writes: map[string]int{}},
	}
}

func (c *checker) onChange(ch *change) {
	c.facts.note(ch)
	switch ch.kind {
	case units:
		c.onUnit(ch)
	case jobKind, jobSets:
		c.jobs.onChange(ch)
	case pods:
		if ch.binds() {
			c.w.report.Binds++
			c.takings.spent(ch.after)
		}
	default:
	}
	c.graces.onChange(ch)
}

func (c *checker) onUnit(ch *change) {
	if ch.after == nil {
		c.admissions.goes(ch)
		c.takings.goes(ch)
		return
	}
	before := ch.former()
	if len(c.graces.owed) > 0 && ch.admits(before) {
		c.w.countFault("admission during a grace")
	}
	c.jobs.queued(ch)
	c.statuses.onUnit(before, ch)
	c.statuses.onChecks(before, ch)
	c.takings.onReclaim(before, ch)
	c.takings.onForesight(before, ch)
	c.takings.onUnit(before, ch)
	c.graces.loses(before, ch)
	c.admissions.onUnit(before, ch)
}

// beforeBind judges a pod before it gets its node.
func (c *checker) beforeBind(o *object, d *decision) {
	job := c.w.topOf(o)
	if job == o && podOf(o).Annotations[v1alpha1.AnnotationRelatedQueueUnit] == "" {
		c.takings.keptForTakers(o, d)
	}
	if job != nil && job != o {
		c.pods.beforeBind(o, job, d)
	}
}
