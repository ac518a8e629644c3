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

package metrics

import (
	"fmt"
	"strings"

	"k8s.io/component-base/metrics"
)

// Prefix of the full name of every metric: they are served with those of the scheduler.
const Prefix = "scheduler_jobqueue_"

// Name of a metric, without the prefix.
type Name string

// The metrics.
const (
	PendingUnits             Name = "pending_units"
	AdmittedUnits            Name = "admitted_units"
	ParkedUnits              Name = "parked_units"
	AdmissionsTotal          Name = "admissions_total"
	LoansTotal               Name = "loans_total"
	PartialAdmissionsTotal   Name = "partial_admissions_total"
	ResizesTotal             Name = "resizes_total"
	EvictedUnitsTotal        Name = "evicted_units_total"
	DeactivatedUnitsTotal    Name = "deactivated_units_total"
	ReservationsTotal        Name = "reservations_total"
	AdmissionChecksSeconds   Name = "admission_checks_seconds"
	AttemptsTotal            Name = "attempts_total"
	AdmissionWaitSeconds     Name = "admission_wait_seconds"
	AdmittedToRunningSeconds Name = "admitted_to_running_seconds"
	CycleDurationSeconds     Name = "cycle_duration_seconds"
	CycleExaminedUnits       Name = "cycle_examined_units"
	ClaimsEndedTotal         Name = "claims_ended_total"
	LedgerOutstanding        Name = "ledger_outstanding"
	LedgerDifferences        Name = "ledger_differences"
	AuditsTotal              Name = "audits_total"
	StateRebuildsTotal       Name = "state_rebuilds_total"
	DecisionBackoff          Name = "decision_backoff_seconds"
	RequestDifferences       Name = "request_differences_total"
	StatusWritesTotal        Name = "status_writes_total"
	StatusWriteSeconds       Name = "status_write_duration_seconds"
	WriteConflictsTotal      Name = "write_conflicts_total"
	WriteUnknownTotal        Name = "write_unknown_total"
	RefusedTransitionsTotal  Name = "refused_transitions_total"
	ResyncsTotal             Name = "resyncs_total"
	GatedUnknownPodsTotal    Name = "gated_unknown_pods_total"
	PodsBeyondRuntimeTotal   Name = "pods_beyond_runtime_total"
	ConfigDiffers            Name = "managed_jobs_config_differs"
	JobKindUnavailable       Name = "job_kind_unavailable"
	PanicsTotal              Name = "panics_total"
	HistoryLostTotal         Name = "history_lost_records_total"
	StartupSeconds           Name = "startup_seconds"
)

type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// definition is one row of the table.
type definition struct {
	name    Name
	kind    kind
	labels  []string
	help    string
	buckets []float64
}

var (
	waitBuckets  = metrics.ExponentialBuckets(0.01, 4, 12) // 10 ms to 11 h
	cycleBuckets = metrics.ExponentialBuckets(0.0001, 2, 16)
	writeBuckets = metrics.ExponentialBuckets(0.001, 2, 14)
	countBuckets = metrics.ExponentialBuckets(1, 4, 10)
)

// definitions is the one table.
var definitions = []definition{
	{PendingUnits, gauge, []string{"queue", "quota"}, "Number of units that wait for quota. " +
		"Each queue or quota that does not exist has an empty label, also in other metrics.", nil},
	{AdmittedUnits, gauge, []string{"queue", "quota"}, "Number of units that hold quota.", nil},
	{ParkedUnits, gauge, []string{"queue", "quota"}, "Number of units that cannot be admitted until their object or the " +
		"configuration changes. Their condition gives the reason.", nil},
	{AdmissionsTotal, counter, []string{"queue", "quota"}, "Number of admissions whose status write is confirmed.", nil},
	{LoansTotal, counter, []string{"queue", "quota"}, "Number of admissions beyond the runtime of a quota. " +
		"They use capacity that no pending job could use within its share.", nil},
	{PartialAdmissionsTotal, counter, []string{"queue", "quota"}, "Number of reservations for fewer pods than the job " +
		"asks for.", nil},
	{ResizesTotal, counter, []string{"queue", "direction"}, "Number of changes of the quota that admitted units hold: " +
		"Grown or Shrunk.", nil},
	{EvictedUnitsTotal, counter, []string{"queue", "reason"}, "Number of units that lost their reservation or " +
		"admission.", nil},
	{DeactivatedUnitsTotal, counter, []string{"queue", "reason"}, "Number of evicted units that were also deactivated. " +
		"They are not retried until someone sets spec.active to true.", nil},
	{AttemptsTotal, counter, []string{"result", "reason"},
		"Number of decided admissions and evictions by result, and of " +
			"reasons written to pending units.", nil},
	{AdmissionWaitSeconds, histogram, []string{"queue"}, "Seconds from the creation of a unit to its admission.",
		waitBuckets},
	{ReservationsTotal, counter, []string{"queue", "quota"}, "Number of reservations of quota for units that then have " +
		"to pass admission checks.", nil},
	{AdmissionChecksSeconds, histogram, []string{"queue"}, "Seconds from the reservation of quota for a unit until the " +
		"unit has passed its admission checks.", waitBuckets},
	{AdmittedToRunningSeconds, histogram, []string{"queue"}, "Seconds from the admission of a unit until its pods run, " +
		"rounded to whole seconds. Pods that end within seconds are not counted.", waitBuckets},
	{CycleDurationSeconds, histogram, nil, "Seconds that one cycle of the admission loop took.", cycleBuckets},
	{CycleExaminedUnits, histogram, nil, "Number of units that one cycle compared with quota.", countBuckets},
	{ClaimsEndedTotal, counter, nil,
		"Number of claims that ended because claimTimeout was over. The unit at the front of " +
			"a blocking queue then blocks no other unit.", nil},
	{LedgerOutstanding, gauge, []string{"quota", "resource"},
		"Quota that admitted units hold beyond their assigned pods: " +
			"thousandths of cpu, whole units of other resources. Only resources that the quota limits are counted.", nil},
	{LedgerDifferences, gauge, []string{"kind"}, "Number of differences that the last audit found: to " +
		"a rebuild (ledger), the API objects (unit), positions (queue), the scheduler's cache (pod), " +
		"Koordinator's used (used).", nil},
	{AuditsTotal, counter, []string{"result"},
		"Number of audits of the state of admission: Clean, Differences, or Failed " +
			"if the API did not answer.", nil},
	{StateRebuildsTotal, counter, []string{"cause"}, "Number of times that the state of admission was rebuilt from the " +
		"API objects, after a Panic or a Difference that an audit found.", nil},
	{DecisionBackoff, gauge, nil,
		"Seconds without decisions after the last panic of the core. They double while no unit " +
			"is parked as the cause. 0: decisions are made.", nil},
	{RequestDifferences, counter, []string{"quota", "resource", "direction"}, "Number of admitted units with a pod that " +
		"asks for more or less than was estimated. Only resources that the quota limits are counted.", nil},
	{StatusWritesTotal, counter, []string{"kind", "outcome"}, "Number of status writes by content and outcome.", nil},
	{StatusWriteSeconds, histogram, []string{"kind"}, "Seconds that one request of a status write took.", writeBuckets},
	{WriteConflictsTotal, counter, nil, "Number of status writes that met an object which had changed.", nil},
	{WriteUnknownTotal, counter, nil, "Number of status writes whose outcome was unknown for a time.", nil},
	{RefusedTransitionsTotal, counter, []string{"kind"}, "Number of status writes that were not sent, because the " +
		"change of phase is not allowed. This is a bug; the log names the unit.", nil},
	{ResyncsTotal, counter, nil,
		"Number of passes that observe every quota and activate every pod of admitted jobs.", nil},
	{GatedUnknownPodsTotal, counter, []string{"action"},
		"Number of pods of managed jobs for which no unit appeared within " +
			"the grace period.", nil},
	{PodsBeyondRuntimeTotal, counter, []string{"quota", "cause", "result"}, "Number of attempts to schedule pods of " +
		"admitted jobs that ElasticQuota refuses. Cause: the pod is Uncounted, or the Limit shrank. Result: Pass or " +
		"Refuse.", nil},
	{ConfigDiffers, gauge, nil, "1 while scheduler and controller disagree about which jobs are managed.", nil},
	{JobKindUnavailable, gauge, []string{"kind", "reason"}, "1 while the jobs of a managed kind cannot be listed: " +
		"NotInstalled, Forbidden, or NotListed for another cause.", nil},
	{PanicsTotal, counter, []string{"where"}, "Number of panics that were recovered.", nil},
	{HistoryLostTotal, counter, []string{"cause"}, "Number of records of transitions that are not in the history file: " +
		"Overflow if the disk is too slow, Error if a write failed.", nil},
	{StartupSeconds, gauge, []string{"stage"}, "Seconds from the start of the queue until objects were " +
		"read (Synced), it led (Leading), it decided (Deciding), and its first admissions were confirmed (Admitted).", nil},
}

// MarkdownTable is the documentation of all metrics.
func MarkdownTable() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range definitions {
		labels := make([]string, 0, len(d.labels))
		for _, label := range d.labels {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", Prefix, d.name, d.kind, strings.Join(labels, ", "), d.help)
	}
	return b.String()
}
