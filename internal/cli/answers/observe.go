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

package answers

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Observed is what the queue would have done about the jobs that it observed.
type Observed struct {
	// Jobs is the number of observed jobs.
	Jobs int `json:"jobs"`
	// Waiting are those that would have waited, the longest wait first.
	Waiting []ObservedJob `json:"waiting"`
	// Taking are those that would preempt others now.
	Taking []Taking `json:"taking"`
	// NoDryRun says why nobody knows whom they would preempt.
	NoDryRun string `json:"noDryRun,omitempty"`
	// CompleteSince is the time from which on the record has all jobs; absent without a record.
	CompleteSince *metav1.Time `json:"completeSince,omitempty"`
	// NoRecord says why there is no record. Without it, jobs that were deleted are left out.
	NoRecord string `json:"noRecord,omitempty"`
}

// ObservedJob is a job that would have waited.
type ObservedJob struct {
	Subject `json:",inline"`
	// Asks is the request in words of the unit, and Requested that of the record.
	Asks      string              `json:"asks,omitempty"`
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// Pods that would not have run until then; 0 if the job is deleted.
	Pods   int64           `json:"pods,omitempty"`
	Waited metav1.Duration `json:"waited"`
	// Reason for which it would have waited at last.
	Reason  string  `json:"reason,omitempty"`
	Outcome Outcome `json:"outcome"`
}

// Outcome is what became of a wait.
type Outcome string

// The outcomes.
const (
	OutcomeWaits    Outcome = "Waits"    // the unit would still wait
	OutcomeAdmitted Outcome = "Admitted" // the unit would have been admitted
	OutcomeEnded    Outcome = "Ended"    // its job ended before that
)

// leastWait is from where on a job counts as one that would have waited. A reason is told after that time.
const leastWait = 5 * time.Second

// Observe reads units of a namespace, or of all if it is empty, and the record since a time.
func Observe(ctx context.Context, r *Reader, namespace string, now, since time.Time) (*Observed, error) {
	units, err := r.Units(ctx, namespace)
	if err != nil {
		return nil, err
	}
	found, missing := r.Records(ctx, &RecordQuery{Namespace: namespace, Since: since})
	if missing != nil {
		found = &Records{}
	}
	o, takers := observedOf(units, found.Items, now, since)
	if missing != nil {
		o.NoRecord = missing.Error()
	} else {
		o.CompleteSince = &found.CompleteSince
	}
	if len(takers) == 0 {
		return o, nil
	}
	dry, err := r.DryRun(ctx, &PreemptionQuery{Namespace: namespace})
	if err != nil {
		o.NoDryRun = err.Error()
		return o, nil //nolint:nilerr // the rest is answered without
	}
	for _, t := range dry.Taking {
		if takers[t.Namespace+"/"+t.Unit] {
			o.Taking = append(o.Taking, t)
		}
	}
	return o, nil
}

// observedOf units and records. takers are the units that wait, by namespace/name.
func observedOf(
	units []v1alpha1.QueueUnit, records []visibility.Record, now, since time.Time,
) (o *Observed, takers map[string]bool) {
	jobs := map[string]*ObservedJob{}
	for i := range records {
		if r := &records[i]; r.Observed {
			recordWait(jobs, r)
		}
	}
	takers = map[string]bool{}
	for i := range units {
		u := &units[i]
		if !u.Observed() {
			continue
		}
		waits := unit.Phase(u.Status.Phase).Waits()
		if waits {
			takers[u.Namespace+"/"+u.Name] = true
		} else if endOf(u, now).Before(since) {
			continue
		}
		j, recorded := jobs[string(u.UID)]
		if !recorded {
			j = &ObservedJob{Outcome: OutcomeAdmitted}
			jobs[string(u.UID)] = j
		}
		j.addUnit(u, now, waits, recorded)
	}
	o = &Observed{Jobs: len(jobs), Waiting: []ObservedJob{}, Taking: []Taking{}}
	for _, j := range jobs {
		if j.Reason != "" || j.Waited.Duration >= leastWait {
			o.Waiting = append(o.Waiting, *j)
		}
	}
	slices.SortFunc(o.Waiting, func(a, b ObservedJob) int {
		return cmp.Or(cmp.Compare(b.Waited.Duration, a.Waited.Duration), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Job, b.Job))
	})
	return o, takers
}

// recordWait adds what a record says of the wait of its unit.
func recordWait(jobs map[string]*ObservedJob, r *visibility.Record) {
	j := jobs[r.UID]
	if j == nil {
		j = &ObservedJob{Outcome: OutcomeAdmitted}
		jobs[r.UID] = j
	}
	j.Subject = Subject{
		Namespace: r.Namespace, Unit: r.Unit, Job: JobName(r.Kind, r.Job, r.Unit), Queue: r.Queue, Quota: r.Quota,
	}
	j.Requested = r.Requested
	if r.Waited == nil || r.Event != visibility.RecordAdmitted && r.Attempt > 0 { // admitted before its end
		return
	}
	j.Waited.Duration += r.Waited.Duration
	if j.Reason, j.Outcome = cmp.Or(r.Reason, j.Reason), OutcomeAdmitted; r.Event != visibility.RecordAdmitted {
		j.Outcome = OutcomeEnded
	}
}

// addUnit adds what an object says that no record has.
func (j *ObservedJob) addUnit(u *v1alpha1.QueueUnit, now time.Time, waits, recorded bool) {
	j.Subject = subjectOf(u)
	if e := u.Status.Effective; e != nil {
		j.Asks = e.Requested
	}
	for i := range u.Spec.PodSets {
		j.Pods += int64(u.Spec.PodSets[i].Count)
	}
	reserved := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionQuotaReserved)
	if reserved != nil && reserved.Status == metav1.ConditionFalse {
		j.Reason = reserved.Reason
	}
	admitted := u.Status.LastAllocateTime
	switch {
	case waits:
		j.Outcome = OutcomeWaits
		j.Waited.Duration += now.Sub(u.CreationTimestamp.Time)
	case recorded:
	case admitted != nil:
		j.Waited.Duration = admitted.Sub(u.CreationTimestamp.Time)
	default:
		j.Outcome = OutcomeEnded
		j.Waited.Duration = endOf(u, now).Sub(u.CreationTimestamp.Time)
	}
	j.Waited.Duration = j.Waited.Truncate(time.Second)
}

// endOf a unit is when its job ended; now while it goes on.
func endOf(u *v1alpha1.QueueUnit, now time.Time) time.Time {
	finished := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionFinished)
	if finished == nil || finished.Status != metav1.ConditionTrue {
		return now
	}
	return finished.LastTransitionTime.Time
}
