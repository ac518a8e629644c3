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

package kueue

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// maxChecks is the greatest number of admission checks of a Queue.
const maxChecks = 16

// queue is the Queue of one flavor of a ClusterQueue.
func (p *plan) queue(q *clusterQueue, tree string) v1alpha1.QueueSpec {
	spec := v1alpha1.QueueSpec{}
	if q.Spec.QueueingStrategy == "StrictFIFO" {
		spec.QueuePolicy = v1alpha1.PolicyBlock
	}
	if stop := v1alpha1.StopPolicy(q.Spec.StopPolicy); stop == v1alpha1.StopHold || stop == v1alpha1.StopHoldAndDrain {
		spec.StopPolicy = &stop
	}
	spec.Preemption = preemptionOf(q)
	for _, check := range checksOf(q) {
		onFlavor := len(check.flavors) == 0 || slices.ContainsFunc(check.flavors, func(f string) bool {
			return f == tree || counts(q, tree, f)
		})
		if onFlavor && len(spec.AdmissionChecks) < maxChecks {
			spec.AdmissionChecks = append(spec.AdmissionChecks, v1alpha1.QueueAdmissionCheck{Name: check.name})
		}
	}
	return spec
}

// counts says whether resources of a flavor of a further group are counted in the tree.
func counts(q *clusterQueue, tree, flavor string) bool {
	for i, group := range q.Spec.ResourceGroups {
		if i > 0 && len(group.Flavors) > 0 && group.Flavors[0].Name == flavor {
			first := q.Spec.ResourceGroups[0].Flavors
			return cohortOf(q) == "" || len(first) > 0 && first[0].Name == tree
		}
	}
	return false
}

// preemptionOf a ClusterQueue. Without a cohort nobody borrows from it, so it takes nothing back.
func preemptionOf(q *clusterQueue) *v1alpha1.QueuePreemption {
	given, spec := q.Spec.Preemption, &v1alpha1.QueuePreemption{}
	if given == nil {
		return nil
	}
	reclaim := v1alpha1.PreemptionPolicy(given.ReclaimWithinCohort)
	if cohortOf(q) != "" && (reclaim == v1alpha1.PreemptLowerPriority || reclaim == v1alpha1.PreemptAny) {
		spec.Reclaim = &reclaim
	}
	if strings.HasPrefix(given.WithinClusterQueue, "Lower") {
		spec.WithinQueue = ptr.To(v1alpha1.PreemptLowerPriority)
	}
	if spec.Reclaim == nil && spec.WithinQueue == nil {
		return nil
	}
	return spec
}

type check struct {
	name    string
	flavors []string
}

func checksOf(q *clusterQueue) []check {
	var checks []check
	enter := func(c check) {
		if !slices.ContainsFunc(checks, func(other check) bool { return other.name == c.name }) {
			checks = append(checks, c)
		}
	}
	for _, name := range q.Spec.AdmissionChecks {
		enter(check{name: name})
	}
	if s := q.Spec.AdmissionChecksStrategy; s != nil {
		for _, c := range s.AdmissionChecks {
			enter(check{c.Name, c.OnFlavors})
		}
	}
	return checks
}

// sayQueue says which fields of a ClusterQueue the Queue does not have, or has otherwise.
func (p *plan) sayQueue(q *clusterQueue) {
	source := "ClusterQueue/" + q.Name
	say := func(severity finding.Severity, reason finding.Reason, field, format string, args ...any) {
		p.out.Add(severity, reason, source, field, format, args...)
	}
	switch q.Spec.QueueingStrategy {
	case "", "BestEffortFIFO", "StrictFIFO":
	default:
		say(finding.Warning, finding.OrderDiffers, "spec.queueingStrategy",
			"Strategy %q is not known, so the queue has policy Priority.", q.Spec.QueueingStrategy)
	}
	switch q.Spec.StopPolicy {
	case "", "None", "Hold", "HoldAndDrain":
	default:
		say(finding.Warning, finding.NotExpressed, "spec.stopPolicy", "%q is not known, so the queue admits jobs.",
			q.Spec.StopPolicy)
	}
	p.sayPreemption(q.Spec.Preemption, say)
	if len(q.Spec.AdmissionScope) > 0 {
		say(finding.Warning, finding.NotExpressed, "spec.admissionScope",
			"Use of the past does not count for the order of jobs.")
	}
	if len(q.Spec.ConcurrentAdmissionPolicy) > 0 {
		say(finding.Warning, finding.NotExpressed, "spec.concurrentAdmissionPolicy",
			"A job waits in the quota of one flavor.")
	}
	checks := checksOf(q)
	if len(checks) > maxChecks {
		say(finding.Error, finding.NotExpressed, "spec.admissionChecks", "A Queue has at most %d checks, and %d are given.",
			maxChecks, len(checks))
	}
	for _, c := range checks {
		p.sayCheck(source, c.name)
	}
	p.sayFlavors(q, say)
}

type sayer func(severity finding.Severity, reason finding.Reason, field, format string, args ...any)

func (p *plan) sayPreemption(given *preemption, say sayer) {
	if given == nil {
		return
	}
	if policy, ok := given.BorrowWithinCohort["policy"]; ok && policy != "Never" {
		say(finding.Warning, finding.PreemptionDiffers, "spec.preemption.borrowWithinCohort",
			"A job that borrows preempts nobody of other queues.")
	}
	if given.WithinClusterQueue == "LowerOrNewerEqualPriority" {
		say(finding.Warning, finding.PreemptionDiffers, "spec.preemption.withinClusterQueue",
			"withinQueue is LowerPriority: newer jobs of equal priority are not preempted.")
	}
}

// sayCheck: Kueue's own controllers answer Workloads and not QueueUnits.
func (p *plan) sayCheck(source, name string) {
	controller := ""
	if c := p.in.checks[name]; c != nil {
		controller = c.Spec.ControllerName
	}
	advice := "Its controller has to answer QueueUnits."
	if strings.HasSuffix(controller, "/provisioning-request") {
		advice = "Create a check with controllerName " + v1alpha1.ProvisioningController + " and name it in the Queue."
	}
	p.out.Add(finding.Warning, finding.CheckNotAnswered, source, "spec.admissionChecks",
		"The Queue names check %s, and reserves nothing until the check is active. %s", name, advice)
}

// sayFlavors says how jobs choose a flavor, and which nodes a flavor stands for.
func (p *plan) sayFlavors(q *clusterQueue, say sayer) {
	leaves := p.leaves[q.Name]
	if len(leaves) > 1 {
		names := make([]string, 0, len(leaves))
		for _, l := range leaves {
			names = append(names, l.level.Quota())
		}
		say(finding.Warning, finding.QuotaPerFlavor, "spec.resourceGroups",
			"Each flavor has a quota: %v. A job names one of them, and does not go on to the next flavor by itself.", names)
	}
	for _, l := range leaves {
		flavor := p.in.flavors[l.flavor]
		if flavor != nil && flavor.Spec.TopologyName != "" {
			say(finding.Warning, finding.NotExpressed, "spec.resourceGroups."+l.flavor,
				"Topology %s is not used. Gangs of Koordinator have a network topology of their own.", flavor.Spec.TopologyName)
		}
		if flavor == nil || len(flavor.Spec.NodeLabels)+len(flavor.Spec.Tolerations) == 0 {
			continue
		}
		say(finding.Warning, finding.NodesNotBound, "spec.resourceGroups."+l.flavor,
			"Quota %s does not choose nodes. Put nodeSelector %s and the tolerations of the flavor (%d) into the pod templates.",
			l.level.Quota(), labels.FormatLabels(flavor.Spec.NodeLabels), len(flavor.Spec.Tolerations))
	}
}
