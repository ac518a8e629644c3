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
	"slices"
	"strings"

	"k8s.io/component-base/metrics"
)

// Prefix of the metrics of the scheduler: they are served with those of its other plugins.
const Prefix = "scheduler_jobqueue_"

// Name of a metric.
type Name string

// The metrics of the scheduler.
const (
	PendingUnits             Name = Prefix + "pending_units"
	AdmittedUnits            Name = Prefix + "admitted_units"
	ParkedUnits              Name = Prefix + "parked_units"
	DryRunVictims            Name = Prefix + "dry_run_victims"
	AdmissionsTotal          Name = Prefix + "admissions_total"
	LoansTotal               Name = Prefix + "loans_total"
	PartialAdmissionsTotal   Name = Prefix + "partial_admissions_total"
	ResizesTotal             Name = Prefix + "resizes_total"
	EvictedUnitsTotal        Name = Prefix + "evicted_units_total"
	RepeatedEvictionsTotal   Name = Prefix + "repeated_evictions_total"
	DeactivatedUnitsTotal    Name = Prefix + "deactivated_units_total"
	ReservationsTotal        Name = Prefix + "reservations_total"
	WaitObjectiveSeconds     Name = Prefix + "wait_objective_seconds"
	LongestWaitStartSeconds  Name = Prefix + "longest_wait_start_seconds"
	AdmissionChecksSeconds   Name = Prefix + "admission_checks_seconds"
	AttemptsTotal            Name = Prefix + "attempts_total"
	AdmissionWaitSeconds     Name = Prefix + "admission_wait_seconds"
	ObservedWaitSeconds      Name = Prefix + "observed_wait_seconds"
	AdmittedToRunningSeconds Name = Prefix + "admitted_to_running_seconds"
	CycleDurationSeconds     Name = Prefix + "cycle_duration_seconds"
	CycleExaminedUnits       Name = Prefix + "cycle_examined_units"
	ClaimsEndedTotal         Name = Prefix + "claims_ended_total"
	TakenInVainTotal         Name = Prefix + "taken_in_vain_total"
	LedgerOutstanding        Name = Prefix + "ledger_outstanding"
	LedgerDifferences        Name = Prefix + "ledger_differences"
	AuditsTotal              Name = Prefix + "audits_total"
	StateRebuildsTotal       Name = Prefix + "state_rebuilds_total"
	DecisionBackoff          Name = Prefix + "decision_backoff_seconds"
	RequestDifferences       Name = Prefix + "request_differences_total"
	StatusWritesTotal        Name = Prefix + "status_writes_total"
	StatusWriteSeconds       Name = Prefix + "status_write_duration_seconds"
	WriteConflictsTotal      Name = Prefix + "write_conflicts_total"
	WriteUnknownTotal        Name = Prefix + "write_unknown_total"
	RefusedTransitionsTotal  Name = Prefix + "refused_transitions_total"
	ResyncsTotal             Name = Prefix + "resyncs_total"
	GatedUnknownPodsTotal    Name = Prefix + "gated_unknown_pods_total"
	PodsBeyondRuntimeTotal   Name = Prefix + "pods_beyond_runtime_total"
	PlacementMissesTotal     Name = Prefix + "placement_misses_total"
	ConfigDiffers            Name = Prefix + "managed_jobs_config_differs"
	JobKindUnavailable       Name = Prefix + "job_kind_unavailable"
	PanicsTotal              Name = Prefix + "panics_total"
	ForecastErrorSeconds     Name = Prefix + "forecast_error_seconds"
	ForecastBoundsTotal      Name = Prefix + "forecast_bounds_total"
	StartupSeconds           Name = Prefix + "startup_seconds"
	HistoryLostTotal         Name = Prefix + "history_lost_records_total"
	WithheldQuotas           Name = Prefix + "withheld_quotas"
)

// The metrics of the controller.
const (
	ControllerKindUnavailable Name = "jobqueue_controller_job_kind_unavailable"
	// ControllerCannotSuspendTotal counts what the condition CannotSuspend of a unit tells.
	ControllerCannotSuspendTotal Name = "jobqueue_controller_cannot_suspend_total"
	FeatureEnabled               Name = "kubernetes_feature_enabled"
)

// Process that serves a metric.
type Process string

// The processes. Nothing here is registered in the last one; an alert reads a metric of it.
const (
	Scheduler  Process = "scheduler"
	Controller Process = "controller"
	APIServer  Process = "kube-apiserver"
)

type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

type definition struct {
	name    Name
	kind    kind
	labels  []string
	help    string
	buckets []float64
}

type row struct {
	definition
	process Process
	// library that registers the metric; "" if a Set does.
	library string
}

func rows(process Process, library string, definitions ...definition) []row {
	out := make([]row, 0, len(definitions))
	for _, d := range definitions {
		out = append(out, row{definition: d, process: process, library: library})
	}
	return out
}

var (
	waitBuckets  = metrics.ExponentialBuckets(0.01, 4, 14) // 10 ms to 7.8 days
	cycleBuckets = metrics.ExponentialBuckets(0.0001, 2, 16)
	writeBuckets = metrics.ExponentialBuckets(0.001, 2, 14)
	countBuckets = metrics.ExponentialBuckets(1, 4, 10)
)

var table = slices.Concat(
	rows(Scheduler, "", schedulerMetrics...),
	rows(Controller, "", []definition{
		{ControllerKindUnavailable, gauge, []string{"kind", "reason"}, "1 while jobs of a managed kind are not managed: " +
			"NotInstalled, or Unsupported.", nil},
		{ControllerCannotSuspendTotal, counter, nil, "Evictions whose job still ran a minute later.", nil},
		{FeatureEnabled, gauge, []string{"name", "stage"}, "1 for each feature gate that is on, 0 for each that is off, " +
			"with its stage.", nil},
	}...),
	rows(Scheduler, "Kubernetes", definition{FeatureEnabled, gauge, []string{"name", "stage"},
		"The same, with the gates of Kubernetes and Koordinator.", nil}),
	rows(Scheduler, "Koordinator", definition{"scheduler_elastic_quota_status", gauge,
		[]string{"field", "is_parent", "name", "parent", "resource", "tree"}, "Amounts of an ElasticQuota by field, " +
			"such as used or max: thousandths of cpu, whole units of other resources.", nil}),
	rows(Controller, "controller-runtime", []definition{
		{"leader_election_master_status", gauge, []string{"name"},
			"1 while the process leads, by the name of the lease.", nil},
		{"workqueue_queue_duration_seconds", histogram, []string{"controller", "name"},
			"Seconds that an object waited until a reconciler took it.", nil},
		{"controller_runtime_reconcile_errors_total", counter, []string{"controller"}, "Number of reconciliations that " +
			"failed.", nil},
	}...),
	rows(APIServer, "Kubernetes", definition{"aggregator_unavailable_apiservice", gauge, []string{"name"},
		"1 while an aggregated API does not answer.", nil}),
)

var schedulerMetrics = []definition{
	{PendingUnits, gauge, []string{"queue", "quota"}, "Number of units that wait for quota. " +
		"Each queue or quota that does not exist has an empty label, also in other metrics.", nil},
	{AdmittedUnits, gauge, []string{"queue", "quota"}, "Number of units that hold quota.", nil},
	{ParkedUnits, gauge, []string{"queue", "quota"}, "Number of units that cannot be admitted until their object or the " +
		"configuration changes. Their condition gives the reason.", nil},
	{DryRunVictims, gauge, []string{"queue"}, "Number of units that would lose what they hold at this moment if the " +
		"queue had no dryRun. Each unit counts once.", nil},
	{AdmissionsTotal, counter, []string{"queue", "quota"}, "Number of admissions whose status write is confirmed.", nil},
	{LoansTotal, counter, []string{"queue", "quota"}, "Number of admissions beyond the runtime of a quota. " +
		"They use capacity that no pending job could use within its share.", nil},
	{PartialAdmissionsTotal, counter, []string{"queue", "quota"}, "Number of reservations for fewer pods than the job " +
		"asks for.", nil},
	{ResizesTotal, counter, []string{"queue", "direction"}, "Number of changes of the quota that admitted units hold: " +
		"Grown or Shrunk.", nil},
	{EvictedUnitsTotal, counter, []string{"queue", "reason"}, "Number of units that lost their reservation or " +
		"admission. Units whose job was deleted do not count.", nil},
	{RepeatedEvictionsTotal, counter, []string{"queue"}, "Number of evictions of units that had been evicted five times " +
		"or more before.", nil},
	{DeactivatedUnitsTotal, counter, []string{"queue", "reason"}, "Number of evicted units that were also deactivated. " +
		"They are not retried until someone sets spec.active to true.", nil},
	{AttemptsTotal, counter, []string{"result", "reason"},
		"Number of decided admissions and evictions by result, and of " +
			"reasons written to pending units.", nil},
	{AdmissionWaitSeconds, histogram, []string{"queue", "namespace"}, "Seconds from the creation of a unit, or its last " +
		"eviction, to its admission. At most 100 namespaces of a queue have a label.",
		waitBuckets},
	{ObservedWaitSeconds, histogram, []string{"queue"}, "Seconds that an observed unit would have waited, from its " +
		"creation until it would have been admitted.", waitBuckets},
	{WaitObjectiveSeconds, gauge, []string{"queue"}, "Seconds that a unit of the queue should wait at most: " +
		"waitObjectiveSeconds of a Queue that has it.", nil},
	{LongestWaitStartSeconds, gauge, []string{"queue"}, "Unix time since which the unit has waited that has " +
		"waited longest. Only queues with waitObjectiveSeconds have it.", nil},
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
	{TakenInVainTotal, counter, nil,
		"Number of times that jobs were preempted for a unit that gave up, or of which no pod came to a node.", nil},
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
	{PlacementMissesTotal, counter, []string{"reason"}, "Number of pods that are not on the node which placement found: " +
		"on an OtherNode, or on none until the job Ended or LostQuota.", nil},
	{ConfigDiffers, gauge, nil, "1 while scheduler and controller disagree about which jobs are managed.", nil},
	{JobKindUnavailable, gauge, []string{"kind", "reason"}, "1 while the jobs of a managed kind cannot be listed: " +
		"NotInstalled, Forbidden, or NotListed for another cause.", nil},
	{PanicsTotal, counter, []string{"where"}, "Number of panics that were recovered.", nil},
	{HistoryLostTotal, counter, []string{"cause"}, "Number of records of transitions that are not in the history file: " +
		"Overflow if the disk is too slow, Error if a write failed.", nil},
	{ForecastErrorSeconds, histogram, nil, "Seconds between the admission of a unit and `about` of the first forecast " +
		"that somebody asked for. Needs the history.", waitBuckets},
	{ForecastBoundsTotal, counter, []string{"result"}, "Number of units that were admitted before `latest` of their " +
		"first forecast, or within a minute after it (Kept), and of others (Missed).", nil},
	{StartupSeconds, gauge, []string{"stage"}, "Seconds from the start of the queue until objects were " +
		"read (Synced), it led (Leading), it decided (Deciding), and its first admissions were confirmed (Admitted).", nil},
	{WithheldQuotas, gauge, []string{"reason"},
		"Number of ElasticQuotas that Koordinator is not shown, because it would " +
			"loop without end or mistake one for another: QuotaOwnAncestor, QuotaBelowOwnAncestor or QuotaNameTaken.", nil},
}

// MarkdownTable is the documentation of the metrics that the two processes register, or of those of libraries that
// alerts and the dashboard read.
func MarkdownTable(ofLibraries bool) string {
	var b strings.Builder
	b.WriteString("| metric | process | type | labels | meaning |\n|---|---|---|---|---|\n")
	for i := range table {
		r := &table[i]
		if (r.library != "") != ofLibraries {
			continue
		}
		labels := make([]string, 0, len(r.labels))
		for _, label := range r.labels {
			labels = append(labels, "`"+label+"`")
		}
		process := string(r.process)
		if ofLibraries {
			process += ", by " + r.library
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.name, process, r.kind, strings.Join(labels, ", "), r.help)
	}
	return b.String()
}
