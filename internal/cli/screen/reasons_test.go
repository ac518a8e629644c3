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

package screen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/reasons"
)

// noUnit are reasons that no unit has, so nobody asks why of them.
var noUnit = map[string]string{
	"AmbiguousQueue":          "its job has no unit, and an event says it",
	"OutsideOfQueueNamespace": "of a Queue",
}

// parked are units that wait for a change, with the words of the scheduler or the controller.
var parked = map[string]string{
	"Adopting":               "the job runs already; its unit waits to be marked as running",
	"CheckInactive":          `admission check "budget" is not active: nobody answers it`,
	"CheckNotFound":          `queue "shared" names admission check "budget", which does not exist`,
	"ConsumerNotFound":       "no live job is known under this name",
	"ConsumerOtherNamespace": `consumerRef names namespace "lab"; the unit is in "research"`,
	"ConsumerUIDMismatch":    "a job of this name exists, and has another UID",
	"DuplicateUnit":          `unit "first" stands for the same Job research/train`,
	"EstimateChanged":        "Koordinator would count the pods of the job differently now",
	"HeldByOwner":            "the job has the annotation koord-queue/hold",
	"Inactive":               "the unit is held: spec.active is false",
	"InternalError":          "internal error while the unit was examined: index out of range",
	"InvalidRequest":         `resource "cpu": negative amount -1`,
	"KindNotListed":          "jobs of kind RayJob.v1.ray.io could not be listed yet",
	"NoPods":                 "the unit asks for nothing: no request and no pods",
	"NotPlaced":              "Reservations of the stand-alone Koord-Queue are removed",
	"OtherScheduler":         `spec.template.spec.schedulerName is "default-scheduler"; queued pods need koord-scheduler`,
	"Pending":                "not examined yet",
	"QueueDrained":           `queue "shared" takes back what it admitted`,
	"QueueFull":              `queue "shared" has 5 admitted units, and maxAdmitted is 5`,
	"QueueHeld":              `queue "shared" is held`,
	"QueueOverflow":          `queue "shared" has 1000 pending units, and maxPending is 1000`,
	"QuotaMismatch":          `the job names quota "research", and its template "lab"`,
	"QuotaNotInQueue":        `queue "shared" does not accept quota "research"`,
	"QuotaNotNamed":          `quota "koordinator-default-quota" is not for queueing; name a quota of your own`,
	"RestoringTemplates":     "what admission checks asked to write into the pods of the job is being taken out again",
	"SlowTermination":        "terminationGracePeriodSeconds of the template is 86400; at most 3600 is allowed",
	"SuspendedByOwner":       "spec.suspend was set after the admission",
	"UnknownPhase":           `phase "Dreaming" is not known to this version`,
	"UnknownPolicy":          `queue "shared" has policy "Random"; known are: "Block", "FIFO", "Intelligent", "Priority"`,
	"UnknownQueue":           `queue "shard" does not exist`,
	"UnknownQuota":           `quota "reserch" does not exist`,
	"UnsupportedJob":         "a Job with a successPolicy cannot be suspended without harm",
	"WaitingForGroup":        "it is admitted together with the other jobs of its gang group, and not all of them can be",
	"WriteRefused":           `the API server refuses the status: "status.message: Too long"`,
}

// evictions are reasons for which an admitted unit lost its quota. The unit waits in a back-off, or is deactivated.
var evictions = map[string]string{
	"CheckConflict":                `admission checks "a" and "b" want different values of nodeSelector "pool"`,
	"CheckRejected":                `admission check "budget" rejects it: the budget of the year is spent`,
	"CheckRetry":                   `admission check "nodes" wants it tried again: no capacity in zone a`,
	"CheckTimeout":                 "an admission check did not answer within 10m0s",
	"ChecksChanged":                `admission check "budget" was not asked about this reservation`,
	"IdleReservation":              "the job made no pod within 5m0s of its admission; its own events may say why",
	"MaximumExecutionTimeExceeded": "the job has run for 1h0m0s, which is as long as it may in all its runs together",
	"NoHeartbeat":                  "nobody renewed the heartbeat of the unit for 1m0s, which its queue asks for",
	"PodsReadyTimeout":             "not all pods of the job were ready within 5m0s of its admission",
	"PreemptedInQueue":             `a job of priority 9 in queue "shared" takes its quota; the job waits for room`,
	"Reclaimed":                    `quota "lab" takes back its min, which "research" had borrowed; the job waits`,
	"RecoveryTimeout":              "pods of the job stopped being ready, and not all were ready again within 5m0s",
	"RequeueLimitReached":          "not all pods were ready; it lost its admission so 3 times in a row",
	"Unschedulable":                "no pod of the job came on a node within 5m0s; events of its pods say why",
}

// stalls are reasons for which an admitted job does not run.
var stalls = map[string]string{
	"ContainersCrashing": `pods of the job crash (1): container main of pod x has restarted 4 times with exit code 1`,
	"ContainersWaiting":  `pods of the job are not ready (1): container main of pod train-x waits: ImagePullBackOff`,
	"JobNotResumed":      `the API server refuses to resume the job: "spec.template: field is immutable"`,
	"PodsGated":          `pods of the job are gated (1): pod train-x has gate "example.com/gate"`,
	"PodsNotCreated":     `pods of the job cannot be created; the job's own controller says: "exceeded quota: small"`,
	"PodsPending":        `pods of the job find no node (1): the scheduler says of pod train-x: "0/3 nodes are available"`,
}

// notices are about admitted units that go on, or want to grow.
var notices = map[string]string{
	"CheckNeeded":          "cpu: 2 more, cpu: 6 in all, is not what admission checks answered for",
	"PodsChargedElsewhere": `pods of the job are charged to quota "lab" and wait`,
	"PodsHeldBySuspension": "pods of the job are gated: the job has the annotation koord-queue/suspended-by",
	"QuotaChanged":         `the job names quota "lab" now; the unit stays in the quota that it was admitted with`,
}

// shortagesOf are reasons of quota, with what the server says.
func shortagesOf() map[string]*Story {
	of := func(reason, message string, list ...visibility.Shortage) *Story {
		live := &visibility.Unit{Status: visibility.UnitStatus{
			Phase: "Enqueued", Queue: "shared", Quota: "research", Position: 1, Waiting: 2, Reason: reason, Message: message,
			Shortages: list,
		}}
		return &Story{Unit: waiting("train", reason, message), Live: live}
	}
	x := func(level, bound, limit, reserved, free, missing string) visibility.Shortage {
		return visibility.Shortage{
			Level: level, Resource: "cpu", Bound: bound, Limit: resource.MustParse(limit),
			Reserved: resource.MustParse(reserved), Free: resource.MustParse(free), Request: resource.MustParse("4"),
			Missing: resource.MustParse(missing), Binds: true,
			Max: ptr.To(resource.MustParse(limit)),
		}
	}
	never := func(bound string) visibility.Shortage {
		s := x("research", bound, "2", "0", "2", "2")
		s.NeverFits = true
		return s
	}
	full := of("QuotaExceeded", "", x("research", "max", "8", "6", "2", "2"))
	full.Live.Status.Holders = heldBy("research", "research", map[string]string{"a": "3", "b": "2", "c": "1"}, "0")
	ahead := x("company", "max", "20", "16", "4", "8")
	ahead.ClaimedAhead, ahead.ClaimedBy = ptr.To(resource.MustParse("8")), "research/py-first"
	blocked := of("BlockedByHead", "", ahead)
	blocked.Live.Status.Position = 2
	blocked.Live.Status.Holders = heldBy("company", "lab", map[string]string{"big": "12"}, "4")
	blocked.Ahead = []visibility.WaitingUnit{{
		Position: 1, Namespace: "research", Name: "py-first", Job: "first", Requested: cpu("12"),
	}}
	least := of("MinExceeded", "", x("research", "min", "6", "4", "2", "2"))
	least.Live.Status.Holders = heldBy("research", "research", map[string]string{"serving": "4"}, "0")
	large, above := x("research", "runtime", "2", "0", "2", "2"), x("company", "total", "20", "18", "2", "2")
	large.Rightful, above.Binds = ptr.To(resource.MustParse("3")), false
	larger := of("ExceedsGuaranteedShare", "", large, above)
	larger.Quota = quotaOf("research", "2", "20", "0")
	larger.Live.Status.Holders = heldBy("company", "lab", map[string]string{"big": "12"}, "6")
	kept := x("company", "max", "20", "18", "2", "2")
	others := of("HeldByOthers", `quota "research" level "company": cpu: request 4, free 2 (max 20, used 0, `+
		`reserved 18); 2 must be freed; no job can be suspended for it now: at "company" cpu is held: `+
		`12 by non-preemptible jobs, 6 by jobs `+
		`that have just begun; the first may be from 2026-01-01T12:10:00Z`, kept)
	others.Live.Status.Remarks = `no job can be suspended for it now: at "company" cpu is held: ` +
		`12 by non-preemptible jobs, 6 by jobs that have just begun; the first may be from 2026-01-01T12:10:00Z`
	others.Live.Status.Holders = heldBy("company", "lab", map[string]string{"big": "12", "small": "6"}, "0")
	nowhere := of("NoNodeFits", "the job may take what others hold, and its pods would find no node even then: "+
		"0 of 3 nodes have 4 free cpu", kept)
	return map[string]*Story{
		"QuotaExceeded": full, "BlockedByHead": blocked, "MinExceeded": least,
		"ExceedsMax": of("ExceedsMax", "", never("max")), "ExceedsMin": of("ExceedsMin", "", never("min")),
		"ExceedsGuaranteedShare": larger, "HeldByOthers": others,
		"NoNodeFits": nowhere,
	}
}

// storyOf is a unit with a reason; nil if this file has none.
func storyOf(reason string) *Story {
	live := func(reason, message string) *visibility.Unit {
		return &visibility.Unit{Status: visibility.UnitStatus{
			Queue: "shared", Quota: "research", Reason: reason, Message: message,
		}}
	}
	admitted := func(phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
		u := waiting("train", "", "")
		u.Status.Phase, u.Status.Effective.Held = phase, "cpu: 4"
		u.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAdmitted, Status: "True", Reason: "Admitted"}}
		return u
	}
	if s := shortagesOf()[reason]; s != nil {
		return s
	}
	if message, is := parked[reason]; is {
		return &Story{Unit: waiting("train", reason, message), Live: live(reason, message)}
	}
	if message, is := evictions[reason]; is {
		ends := map[string]bool{"MaximumExecutionTimeExceeded": true, "RequeueLimitReached": true, "CheckRejected": true}
		u := waiting("train", "Backoff", "waits until 2026-01-01T12:01:00Z before it is tried again")
		u.Status.Phase = v1alpha1.PhaseTimeoutBackoff
		s := &Story{Unit: u, Live: live("Backoff", "waits until 2026-01-01T12:01:00Z before it is tried again")}
		s.Live.Status.NotBefore = ptr.To(before(-time.Minute))
		if ends[reason] {
			u.Spec.Active = ptr.To(false)
			s.Live = live("Inactive", "the unit is held: spec.active is false")
		}
		u.Status.Conditions = append(u.Status.Conditions, evictedFor(reason, message))
		return s
	}
	if message, is := stalls[reason]; is {
		u := admitted(v1alpha1.PhaseDequeued)
		u.Status.Conditions = append(u.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionPodsReady, Status: "False", Reason: reason, Message: message,
		})
		return &Story{Unit: u, Live: &visibility.Unit{Status: visibility.UnitStatus{
			LosesQuotaAt: ptr.To(before(-9 * time.Minute)), LosesQuotaFor: "PodsReadyTimeout",
		}}}
	}
	if message, is := notices[reason]; is {
		return &Story{Unit: admitted(v1alpha1.PhaseRunning), Live: live(reason, message)}
	}
	switch reason {
	case "Backoff":
		s := storyOf("Unschedulable")
		return s
	case "CannotSuspend":
		u := waiting("train", "QuotaExceeded", `quota "research" has too little cpu left`)
		u.Status.Conditions = append(u.Status.Conditions, evictedFor("Reclaimed", evictions["Reclaimed"]), metav1.Condition{
			Type: v1alpha1.ConditionCannotSuspend, Status: "True", Reason: reason,
			Message: `the job cannot be suspended: "metadata.annotations: Too long"; its pods still run`,
		})
		return &Story{Unit: u}
	case "WaitingForAdmissionChecks":
		u := waiting("train", reason, `quota is reserved: cpu: 4; waits for admission checks: "licence"`)
		u.Status.Phase, u.Status.Effective.Held = v1alpha1.PhaseReserved, "cpu: 4"
		u.Status.AdmissionChecks = []v1alpha1.AdmissionCheckState{
			{Name: "budget", State: "Ready"}, {Name: "licence", State: "Pending", Message: "asked the licence server"},
		}
		return &Story{Unit: u, Live: &visibility.Unit{}}
	}
	return nil
}

// Each reason that a person can meet has a screen, and each screen says what to do.
func TestEachReasonHasAScreen(t *testing.T) {
	golden(t, "reasons", func(b *bytes.Buffer) error {
		for _, row := range reasons.Table() {
			reason := string(row.Reason)
			s := storyOf(reason)
			if noUnit[reason] != "" {
				require.Nil(t, s, reason)
				continue
			}
			require.NotNil(t, s, "%s has no screen in this file", reason)
			lines := Short(now, s)
			var text strings.Builder
			for _, l := range lines {
				text.WriteString(l.Topic + l.Text)
			}
			require.Contains(t, text.String(), TopicHelps, reason)
			if shortagesOf()[reason] == nil {
				advice := strings.ReplaceAll(strings.TrimPrefix(row.Advice, "Wait. "), " JOB ", " job/train ")
				require.Contains(t, text.String(), advice, reason)
				require.Contains(t, text.String(), reason)
			}
			fmt.Fprintf(b, "## %s\n", reason)
			if err := writeShort(b, lines); err != nil {
				return err
			}
		}
		return nil
	})
}
