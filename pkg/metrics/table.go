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
	{PendingUnits, gauge, []string{"queue", "quota"}, "Units that wait for quota. Those of a queue or quota that " +
		"does not exist are counted together, under empty names; so are the next two.", nil},
	{AdmittedUnits, gauge, []string{"queue", "quota"}, "Units that hold quota.", nil},
	{ParkedUnits, gauge, []string{"queue", "quota"},
		"Units that cannot be admitted as they are; their condition says why.", nil},
	{AdmissionsTotal, counter, []string{"queue", "quota"}, "Admissions whose status write is confirmed.", nil},
	{LoansTotal, counter, []string{"queue", "quota"}, "The part of the admissions that went beyond the runtime of a " +
		"quota, on what no job could use within its share.", nil},
	{PartialAdmissionsTotal, counter, []string{"queue", "quota"}, "The part of the reservations that was for fewer pods " +
		"than the job asks for.", nil},
	{ResizesTotal, counter, []string{"queue", "direction"}, "Changes of what admitted units hold: Grown where their " +
		"jobs got more while they ran, Shrunk where quota was given back.", nil},
	{EvictedUnitsTotal, counter, []string{"queue", "reason"}, "Units that lost their reservation or admission. " +
		"Here and in whatever else counts writes, a queue or quota that does not exist any more has an empty name.", nil},
	{DeactivatedUnitsTotal, counter, []string{"queue", "reason"}, "The part of them that is not to be tried again " +
		"before somebody makes it active.", nil},
	{AttemptsTotal, counter, []string{"result", "reason"},
		"What became of decided admissions and evictions, and reasons given to waiting units.", nil},
	{
		AdmissionWaitSeconds, histogram, []string{"queue"}, "Time from the creation of a unit to its admission.", waitBuckets,
	},
	{ReservationsTotal, counter, []string{"queue", "quota"}, "Reservations of quota for units that have to pass " +
		"admission checks first.", nil},
	{AdmissionChecksSeconds, histogram, []string{"queue"}, "Time from the reservation of quota for a unit until it has " +
		"passed its admission checks.", waitBuckets},
	{AdmittedToRunningSeconds, histogram, []string{"queue"}, "Time from the admission of a unit until its pods run, " +
		"where they do so for some seconds; in whole seconds.", waitBuckets},
	{CycleDurationSeconds, histogram, nil, "Time that one cycle of the admission loop took.", cycleBuckets},
	{CycleExaminedUnits, histogram, nil, "Units that one cycle compared with quota.", countBuckets},
	{ClaimsEndedTotal, counter, nil, "Units at the front of blocking queues that block nobody any more, because " +
		"claimTimeout is over.", nil},
	{LedgerOutstanding, gauge, []string{"quota", "resource"},
		"What admitted units hold beyond their assigned pods, of resources that the quota limits; thousandths of cpu, " +
			"whole units of all else.", nil},
	{
		LedgerDifferences, gauge, []string{"kind"},
		"Differences that the last audit found: of the ledger to its rebuild (ledger), of units to the API objects (unit), " +
			"of units to their place (queue), of pods to the scheduler's cache (pod), " +
			"and where the ledger counts more pods than Koordinator's used (used).", nil,
	},
	{AuditsTotal, counter, []string{"result"},
		"Audits of the state of admission: Clean, Differences, or Failed because the API did not answer.", nil},
	{StateRebuildsTotal, counter, []string{"cause"}, "Times that the state of admission was built anew from the API " +
		"objects, because of a Panic in it or a Difference that an audit found.", nil},
	{
		DecisionBackoff, gauge, nil,
		"How long nothing is decided after the last panic of the core, until the state of admission is built anew; " +
			"it doubles while nobody can be blamed and parked. 0 while decisions are made.", nil,
	},
	{RequestDifferences, counter, []string{"quota", "resource", "direction"}, "Admitted units with a pod that asks for " +
		"more, or less, than was estimated; once for each unit, of resources that the quota limits.", nil},
	{StatusWritesTotal, counter, []string{"kind", "outcome"}, "Status writes by what they write and how they ended.", nil},
	{StatusWriteSeconds, histogram, []string{"kind"}, "Time that one request of a status write took.", writeBuckets},
	{WriteConflictsTotal, counter, nil, "Status writes that met an object which had changed.", nil},
	{WriteUnknownTotal, counter, nil, "Status writes of which it was unknown for a while whether they were applied.", nil},
	{
		RefusedTransitionsTotal, counter, []string{"kind"},
		"Status writes that were not sent, because they would have changed the phase of a unit as the scheduler may not: " +
			"an error of this program, whose log names the unit.", nil,
	},
	{ResyncsTotal, counter, nil, "Passes that observe every quota and activate every pod of admitted jobs again.", nil},
	{GatedUnknownPodsTotal, counter, []string{"action"},
		"Pods of managed jobs for which no unit appeared within the grace period.", nil},
	{
		PodsBeyondRuntimeTotal, counter, []string{"quota", "cause", "result"},
		"Attempts to schedule pods of admitted jobs that ElasticQuota's own check refuses, " +
			"because it has not counted the pod yet (Uncounted) or its limit is too small now (Limit): " +
			"Pass on reserved quota, or Refuse.", nil,
	},
	{ConfigDiffers, gauge, nil, "1 while scheduler and controller disagree about which jobs are managed.", nil},
	{JobKindUnavailable, gauge, []string{"kind", "reason"},
		"1 while the jobs of a managed kind cannot be listed: NotInstalled, Forbidden, or " +
			"NotListed where the list fails for another cause.", nil},
	{PanicsTotal, counter, []string{"where"}, "Panics that were recovered.", nil},
	{
		StartupSeconds, gauge, []string{"stage"},
		"Time from the start of the queue in this process until all that existed was read (Synced), " +
			"this replica was to lead (Leading), it began to decide (Deciding), " +
			"and what its first decision admitted was confirmed (Admitted; absent if that was nothing).", nil,
	},
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
