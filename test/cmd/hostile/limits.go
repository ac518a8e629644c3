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
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// The rules that hold for the hostile tenant, too. What else the checker knows does not: pods that name any job as
// their owner, for example, are no pods of that job.
const (
	// heldBeyondMax: units hold more of a quota than its max.
	heldBeyondMax checker.Rule = "HeldBeyondMax"
	// foreignCharge: something outside of the victim's namespace is charged to the victim's quota.
	foreignCharge checker.Rule = "ForeignCharge"
)

// limits sums what pods and units take of each quota, and compares it with the quota's max.
type limits struct {
	// queued: the queue has what the hostile tenant makes. Without it what the scheduler binds is between those pods and
	// ElasticQuota, which was seen to let half a core more than the max of four go.
	queued bool
	max    map[string]checker.Resources
	pods   map[types.UID]*podCharge
	// held is what each unit holds, if its job is not over.
	held map[types.UID]charge
	// over are jobs that have ended, or are being deleted: for the queue they are gone, whatever their unit still says.
	over       map[types.UID]bool
	beyond     map[string]bool
	violations []checker.Violation
}

// charge is what is taken of a quota.
type charge struct {
	quota  string
	amount checker.Resources
	job    types.UID // of a unit; "" if it has none
}

// podCharge is what a pod takes.
type podCharge struct {
	charge
	// byHand: whoever made the pod chose its node, or labelled it when it was on one. The scheduler was not asked.
	byHand bool
	bound  bool
}

func newLimits(queued bool) *limits {
	return &limits{
		queued: queued,
		max:    map[string]checker.Resources{}, pods: map[types.UID]*podCharge{}, held: map[types.UID]charge{},
		over: map[types.UID]bool{}, beyond: map[string]bool{},
	}
}

func (l *limits) report(rule checker.Rule, subject, format string, args ...any) {
	l.violations = append(l.violations,
		checker.Violation{Rule: rule, Subject: subject, Message: fmt.Sprintf(format, args...)})
}

// quota takes the state of a quota.
func (l *limits) quota(q checker.Quota) { l.max[q.Name] = q.Max }

// pod takes the next state of a pod.
func (l *limits) pod(p *corev1.Pod, deleted bool) {
	view := checker.PodOf(p)
	if view.Quota == victimQuota && p.Namespace != victimNamespace && !deleted {
		l.reportOnce(foreignCharge, "pod "+view.Name, "names quota %s", view.Quota)
	}
	was, known := l.pods[p.UID]
	if deleted || view.Terminal {
		delete(l.pods, p.UID)
		return
	}
	is := &podCharge{charge: charge{quota: view.Quota, amount: view.Request}, bound: view.Bound}
	is.byHand = view.Bound && (!known || was.byHand || was.bound && was.quota != view.Quota)
	l.pods[p.UID] = is
	if l.queued && is.bound && !is.byHand {
		l.compare(checker.QuotaPassed, is.quota, l.running(is.quota), "with pod "+view.Name)
	}
}

// running sums what pods take that the scheduler bound.
func (l *limits) running(quota string) checker.Resources {
	sum := checker.Resources{}
	for _, p := range l.pods {
		if p.quota == quota && p.bound && !p.byHand {
			add(sum, p.amount)
		}
	}
	return sum
}

// job takes the next state of a job.
func (l *limits) job(j *batchv1.Job, deleted bool) {
	view := checker.JobOf(j)
	if !deleted && j.DeletionTimestamp == nil && !view.Complete && !view.Failed {
		return
	}
	l.over[j.UID] = true
	for uid, c := range l.held {
		if c.job == j.UID {
			delete(l.held, uid)
		}
	}
}

// unit takes the next state of a unit. What an adopted one holds is bound already, whether or not it fits.
func (l *limits) unit(u *v1alpha1.QueueUnit, deleted bool) {
	delete(l.held, u.UID)
	amount := admitted(u)
	var job types.UID
	if u.Spec.ConsumerRef != nil {
		job = u.Spec.ConsumerRef.UID
	}
	if deleted || len(amount) == 0 || l.over[job] {
		return
	}
	quota := u.Labels[v1alpha1.LabelQuotaName]
	if u.Namespace != victimNamespace && (quota == victimQuota || checker.UnitOf(u).Queue == victimQuota) {
		l.reportOnce(foreignCharge, "unit "+u.Namespace+"/"+u.Name, "holds of quota %q in queue %q",
			quota, checker.UnitOf(u).Queue)
	}
	condition := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionAdmitted)
	if condition != nil && condition.Reason == v1alpha1.ReasonAdopted {
		return
	}
	l.held[u.UID] = charge{quota, amount, job}
	sum := checker.Resources{}
	for _, c := range l.held {
		if c.quota == quota {
			add(sum, c.amount)
		}
	}
	l.compare(heldBeyondMax, quota, sum, "with unit "+u.Namespace+"/"+u.Name)
}

// admitted sums what the status of a unit says that it holds.
func admitted(u *v1alpha1.QueueUnit) checker.Resources {
	if !checker.UnitOf(u).Admitted {
		return nil
	}
	sum := checker.Resources{}
	for _, admission := range u.Status.Admissions {
		for name, amount := range admission.Resources {
			sum[string(name)] += amount.MilliValue()
		}
	}
	return sum
}

func add(sum, amount checker.Resources) {
	for name, n := range amount {
		sum[name] += n
	}
}

// compare reports what has just passed the max of a quota.
func (l *limits) compare(rule checker.Rule, quota string, sum checker.Resources, with string) {
	for name, most := range l.max[quota] {
		key := fmt.Sprint(rule, quota, name)
		if sum[name] <= most {
			delete(l.beyond, key)
			continue
		}
		if !l.beyond[key] {
			l.report(rule, quota, "%s %g of max %g, %s", name, float64(sum[name])/1000, float64(most)/1000, with)
		}
		l.beyond[key] = true
	}
}

func (l *limits) reportOnce(rule checker.Rule, subject, format string, args ...any) {
	key := string(rule) + subject
	if !l.beyond[key] {
		l.report(rule, subject, format, args...)
	}
	l.beyond[key] = true
}
