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

package objects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// defaultThreshold of policy Intelligent.
const defaultThreshold = 4

// Queue is what is kept of a Queue; immutable.
type Queue struct {
	Meta
	Spec       queue.Spec // without a priority that comes from a class
	Class      string
	Conditions []metav1.Condition
	// CheckFault is why its admission checks cannot be asked as they are written.
	CheckFault string
	// WaitObjective is for how many seconds its units should wait at most; 0 if it does not say.
	WaitObjective int32
	// Selectors are those of nodes, by the quotas that the queue lists.
	Selectors map[string]map[string]string
	Status    json.RawMessage // of which only a scheduler that has not written it yet wants to know more
	Panicked  bool            // while it was read
}

// DecodeQueue never fails: a queue that cannot be read has a policy that nobody knows, which parks its units.
func DecodeQueue(w *WireQueue, policy string, timeouts queue.Timeouts) (q *Queue) {
	q = &Queue{Meta: metaOf(&w.Metadata), Status: w.Status}
	q.Spec = queue.Spec{Name: q.Name, Threshold: defaultThreshold, MaxPending: -1, MaxAdmitted: -1,
		Preemption: queue.Preemption{MinRunTime: queue.DefaultMinRunTime}}
	defer func() {
		if r := recover(); r != nil {
			q.Panicked = true
			q.Spec.Policy = "unreadable: " + Shorten(fmt.Sprint(r))
		}
	}()
	var spec v1alpha1.QueueSpec
	if err := cmp.Or(w.Metadata.unread, Read(w.Spec, &spec)); err != nil {
		q.Spec.Policy = "unreadable: " + Shorten(err.Error())
		return q
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := Read(w.Status, &status); err == nil {
		q.Conditions = status.Conditions // conditions are written back
	}
	spec.MaxPending = cmp.Or(spec.MaxPending, formerkey.MaxPending(w.Metadata.Annotations))
	q.setSpec(&spec, policy)
	q.setTimes(&spec, timeouts)
	q.setChecks(&spec)
	q.setMetadata(w.Metadata.Labels, w.Metadata.Annotations)
	q.setQuotas(spec.Quotas)
	return q
}

// victimsOf are from whom a policy of preemption has units take; one of another version takes from nobody.
var victimsOf = map[v1alpha1.PreemptionPolicy]queue.Victims{
	v1alpha1.PreemptLowerPriority: queue.VictimsOfLowerPriority, v1alpha1.PreemptAny: queue.VictimsAny,
}

func (q *Queue) setSpec(spec *v1alpha1.QueueSpec, defaultPolicy string) {
	q.Spec.Policy = string(spec.QueuePolicy)
	if q.Spec.Policy == "" {
		q.Spec.Policy = defaultPolicy
	}
	if spec.Priority != nil {
		q.Spec.Priority = *spec.Priority
	} else {
		q.Class = spec.PriorityClassName
	}
	stop := ptr.Deref(spec.StopPolicy, v1alpha1.StopNone)
	q.Spec.Held = stop != v1alpha1.StopNone && stop != ""
	if p := spec.Preemption; p != nil {
		q.Spec.Preemption = queue.Preemption{
			Reclaim: victimsOf[ptr.Deref(p.Reclaim, "")], WithinQueue: victimsOf[ptr.Deref(p.WithinQueue, "")],
			MinRunTime: queue.DefaultMinRunTime,
			Protected:  !ptr.Deref(p.Preemptable, true), Adopted: p.PreemptAdopted, DryRun: p.DryRun,
			Keeps: p.AllowUnpreemptable,
		}
		if n := p.MinRunTimeSeconds; n != nil {
			q.Spec.Preemption.MinRunTime = min(secondsOf(int64(*n)), queue.MostMinRunTime)
		}
	}
	q.Spec.Drains = stop == v1alpha1.StopHoldAndDrain
	q.Spec.MaxPending, q.Spec.MaxAdmitted = ptr.Deref(spec.MaxPending, -1), ptr.Deref(spec.MaxAdmitted, -1)
	if b := spec.PerNamespace; b != nil {
		q.Spec.PerNamespace = &queue.NamespaceBounds{
			MaxPending: ptr.Deref(b.MaxPending, -1), MaxAdmitted: ptr.Deref(b.MaxAdmitted, -1),
		}
	}
}

// setTimes reads how long units may keep their quota. Absent times have the default.
func (q *Queue) setTimes(spec *v1alpha1.QueueSpec, timeouts queue.Timeouts) {
	set := func(d *time.Duration, seconds *int32) {
		if seconds != nil {
			*d = secondsOf(int64(*seconds))
		}
	}
	set(&q.Spec.HeartbeatTimeout, spec.HeartbeatTimeoutSeconds)
	q.WaitObjective = max(ptr.Deref(spec.WaitObjectiveSeconds, 0), 0)
	if own := spec.Timeouts; own != nil {
		set(&timeouts.PodsReady, own.PodsReadySeconds)
		set(&timeouts.Recovery, own.RecoverySeconds)
		set(&timeouts.Unbound, own.UnboundSeconds)
		set(&timeouts.Idle, own.IdleReservationSeconds)
		q.Spec.Timeouts = &timeouts
	}
	if e := spec.ExecutionTime; e != nil {
		set(&q.Spec.Execution.Default, e.DefaultSeconds)
		set(&q.Spec.Execution.Most, e.MaximumSeconds)
	}
	if n := spec.BackoffLimit; n != nil {
		q.Spec.MostEvictions = max(int64(*n), 0) + 1
	}
}

// DefaultTimeout stands for that of the check, which depends on its controller.
const DefaultTimeout = time.Duration(-1)

// setChecks reads the admission checks.
func (q *Queue) setChecks(spec *v1alpha1.QueueSpec) {
	timeout := DefaultTimeout
	if own := spec.Timeouts; own != nil && own.CheckSeconds != nil {
		timeout = secondsOf(int64(*own.CheckSeconds))
	}
	for i := range spec.AdmissionChecks {
		c := &spec.AdmissionChecks[i]
		check := queue.AdmissionCheck{Name: c.Name, Timeout: timeout}
		if c.TimeoutSeconds != nil {
			check.Timeout = secondsOf(int64(*c.TimeoutSeconds))
		}
		if c.LabelSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
			if err != nil {
				q.CheckFault = fmt.Sprintf("labelSelector of admission check %q: %s", c.Name, Shorten(err.Error()))
				continue
			}
			check.Selector = selector.String()
		}
		q.Spec.AdmissionChecks = append(q.Spec.AdmissionChecks, check)
	}
}

// Asks says whether the queue names this check.
func (q *Queue) Asks(check string) bool {
	return slices.ContainsFunc(q.Spec.AdmissionChecks, func(c queue.AdmissionCheck) bool { return c.Name == check })
}

// setMetadata reads labels and annotations. The default queue of a quota accepts only that quota, unless it says
// otherwise. Any tenant can name any queue, and would fill or block that of somebody else.
func (q *Queue) setMetadata(labels, annotations map[string]string) {
	if n, err := strconv.ParseInt(annotations[v1alpha1.AnnotationPriorityThreshold], 10, 32); err == nil {
		q.Spec.Threshold = int32(n)
	}
	var said bool
	if q.Spec.Quotas, said = acceptedQuotas(annotations); !said &&
		labels[v1alpha1.LabelCreatedBy] == v1alpha1.CreatedByController {
		q.Spec.Quotas = []string{q.Name}
	}
}

// acceptedQuotas reads the first comma separated list that names anything, and says whether there is one. Nil accepts
// all.
func acceptedQuotas(annotations map[string]string) (names []string, said bool) {
	for _, key := range []string{v1alpha1.AnnotationAvailableQuota, v1alpha1.AnnotationAvailableQuotaShort} {
		for name := range strings.SplitSeq(annotations[key], ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
		if slices.Contains(names, "*") {
			return nil, true
		}
		if len(names) > 0 {
			slices.Sort(names)
			return slices.Compact(names), true
		}
	}
	return nil, false
}
