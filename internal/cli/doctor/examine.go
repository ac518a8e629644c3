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

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	kueue "github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// Severity of a finding.
type Severity string

const (
	// Error: jobs do not run, or run where they must not.
	Error Severity = "Error"
	// Warning: something does not work as somebody asked for.
	Warning Severity = "Warning"
	// Note: something is not installed, or was not examined.
	Note Severity = "Note"
)

// Finding is one fault of an installation.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code is stable and CamelCase.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Fix says what to do.
	Fix string `json:"fix,omitempty"`
}

// examinations, in the order in which an operator mends what they find.
var examinations = []func(*Installation) []Finding{
	(*Installation).apis, (*Installation).scheduler, schedulers, (*Installation).controller, versions,
	(*Installation).managed, (*Installation).policies, edits, (*Installation).visibility, (*Installation).queues,
	(*Installation).quotas, (*Installation).units, (*Installation).audit, (*Installation).unread,
}

// Examine returns what is wrong with an installation, the gravest first.
func Examine(i *Installation) []Finding {
	var findings []Finding
	for _, examine := range examinations {
		findings = append(findings, examine(i)...)
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return findings
}

func (i *Installation) apis() (f []Finding) {
	for _, namespace := range slices.Sorted(maps.Keys(i.Namespaces)) {
		if !i.Namespaces[namespace] && !i.couldNotRead("namespace "+namespace) {
			f = append(f, Finding{Error, "NamespaceMissing", fmt.Sprintf("Namespace %s does not exist.", namespace),
				"Install the manifests, or name the namespaces with --queue-namespace and --scheduler-namespace."})
		}
	}
	if i.Served == nil {
		return f
	}
	for _, of := range []struct{ resource, fix string }{
		{"queues", "Apply the CustomResourceDefinitions of this project."},
		{"queueunits", "Apply the CustomResourceDefinitions of this project."},
	} {
		switch served := i.Served[queueGV]; {
		case !served[of.resource]:
			f = append(f, Finding{Error, "CRDMissing", fmt.Sprintf("The API server does not serve %s.%s.", of.resource,
				queueGV.Group), of.fix})
		case !served[of.resource+"/status"]:
			f = append(f, Finding{Error, "CRDOutdated", fmt.Sprintf("The CRD %s.%s has no subresource status.", of.resource,
				queueGV.Group), of.fix})
		}
	}
	if !i.Served[quotaGV]["elasticquotas"] {
		f = append(f, Finding{Error, "QuotaCRDMissing", "The API server does not serve elasticquotas." + quotaGV.Group + ".",
			"Install Koordinator."})
	}
	return f
}

// stale says for how long nobody has renewed a lease, 0 if somebody leads.
func stale(lease *coordinationv1.Lease, now time.Time) time.Duration {
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	since := now.Sub(lease.Spec.RenewTime.Time)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return max(since, time.Second)
	}
	if since <= time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
		return 0
	}
	return since
}

func (i *Installation) leads(code, process, name string, lease *coordinationv1.Lease, fix string) []Finding {
	switch {
	case i.couldNotRead("lease " + name):
		return nil
	case lease == nil:
		return []Finding{{Error, code, fmt.Sprintf("%s has never led: lease %s does not exist.", process, name), fix}}
	}
	if since := stale(lease, i.Now); since > 0 {
		return []Finding{{Error, code, fmt.Sprintf("No replica of %s leads: lease %s was renewed %s ago.", process, name,
			since.Round(time.Second)), fix}}
	}
	return nil
}

func (i *Installation) scheduler() []Finding {
	f := i.leads("SchedulerNotLeading", "koord-scheduler", i.SchedulerNamespace+"/"+i.Names.SchedulerLease,
		i.SchedulerLease,
		"Read the log of koord-scheduler. Standard error names a CRD or a right that is missing.")
	if len(i.SchedulerConfigs) == 0 {
		return f
	}
	var profiles []profile
	for _, name := range slices.Sorted(maps.Keys(i.SchedulerConfigs)) {
		profiles = append(profiles, profilesOf(i.SchedulerConfigs[name])...)
	}
	if !slices.ContainsFunc(profiles, func(p profile) bool { return p.enables("JobQueue") }) {
		f = append(f, Finding{Error, "PluginNotEnabled", "No profile of the scheduler's configuration enables the plugin " +
			"JobQueue.",
			"kubectl jobqueue scheduler-config --merge FILE prints the configuration with it."})
	}
	for _, p := range profiles {
		if p.enables("JobQueue") && !p.enables("ElasticQuota") {
			f = append(f, Finding{Error, "QuotaPluginNotEnabled",
				fmt.Sprintf("Profile %q enables JobQueue and not ElasticQuota.", p.SchedulerName),
				"Enable the plugin ElasticQuota in the same profile."})
		}
	}
	return f
}

// profile is what is read of a profile of a KubeSchedulerConfiguration.
type profile struct {
	SchedulerName string `json:"schedulerName"`
	Plugins       map[string]struct {
		Enabled []struct {
			Name string `json:"name"`
		} `json:"enabled"`
	} `json:"plugins"`
}

func (p profile) enables(plugin string) bool {
	for _, point := range p.Plugins {
		for _, enabled := range point.Enabled {
			if enabled.Name == plugin {
				return true
			}
		}
	}
	return false
}

func isSchedulerConfig(text string) bool {
	var of metav1.TypeMeta
	return yaml.Unmarshal([]byte(text), &of) == nil && of.Kind == "KubeSchedulerConfiguration"
}

func profilesOf(text string) []profile {
	var config struct {
		Profiles []profile `json:"profiles"`
	}
	_ = yaml.Unmarshal([]byte(text), &config) // isSchedulerConfig has read it
	return config.Profiles
}

func (i *Installation) controller() []Finding {
	return i.leads("ControllerNotLeading", "jobqueue-controller", i.QueueNamespace+"/"+i.Names.ControllerLease,
		i.ControllerLease,
		"Read the log of jobqueue-controller. Suspended jobs get no QueueUnit until it runs.")
}

func (i *Installation) managed() (f []Finding) {
	name := "ConfigMap " + i.QueueNamespace + "/" + managedjobs.ConfigMap
	if i.ManagedJobs == nil {
		if i.couldNotRead(name) {
			return nil
		}
		return []Finding{{Warning, "ManagedJobsMissing", name + " does not exist: Jobs alone are managed.",
			"Apply manifests of the controller."}}
	}
	m, err := managedjobs.From(i.ManagedJobs.Data)
	if err != nil {
		return []Finding{{Error, "ManagedJobsInvalid", fmt.Sprintf("%s is not valid: %s. The former configuration stays "+
			"in force.", name, err),
			"Correct the ConfigMap; kubectl jobqueue kinds list shows the names of kinds."}}
	}
	if read := i.ManagedJobs.Annotations[managedjobs.AnnotationHash]; read != m.Hash() {
		f = append(f, Finding{Warning, "ManagedJobsNotRead",
			"The controller has not taken up the present text of " + name + ".",
			"See whether a controller leads; read its log."})
	}
	f = append(f, i.aliases(m.Aliases)...)
	for _, class := range i.MissingClasses {
		f = append(f, Finding{Warning, "PriorityClassMissing", fmt.Sprintf("jobDefaults of %s names PriorityClass %s, which "+
			"does not exist: it sets nothing.", name, class), "Create the class, or correct the ConfigMap."})
	}
	for n := range i.Managed {
		kind := &i.Managed[n]
		if i.Served != nil && !i.Served[kind.GVR.GroupVersion()][kind.GVR.Resource] {
			f = append(f, Finding{Warning, "KindNotServed", fmt.Sprintf("Kind %s is managed, and the API server does not "+
				"serve it.", kind),
				"Install its operator, or take it out of the ConfigMap."})
			continue
		}
		if verbs := i.Denied[kind.String()]; len(verbs) > 0 {
			f = append(f, Finding{Error, "RightsMissing", fmt.Sprintf("The controller may not %s %s.", strings.Join(verbs,
				", "), kind.GVR.GroupResource()),
				kindsCommand("rights", kind.String())})
		}
	}
	return f
}

// aliases of a system that is installed: it would hold and resume the same jobs.
func (i *Installation) aliases(entries []alias.Entry) (f []Finding) {
	for n, e := range entries {
		group, resource := e.System.Objects()
		for gv, served := range i.Served {
			if gv.Group == group && served[resource] && !e.Force {
				return append(f, Finding{Error, "AliasOfInstalledSystem", fmt.Sprintf("aliases[%d] understands labels of %s, "+
					"and the API server serves %s.%s: two systems would hold the same jobs.", n, e.System, resource, group),
					"Take the entry out of the ConfigMap, remove the other system with its definitions, or set force."})
			}
		}
	}
	return f
}

// useRole lets a namespace use a quota. kubectl create role refuses the verb.
const useRole = `Apply, if that is meant (owners of the namespace may have the right by name instead):
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: use-%[2]s}
rules:
- {apiGroups: [scheduling.sigs.k8s.io], resources: [elasticquotas], resourceNames: [%[2]s], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: use-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: use-%[2]s}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: default}]`

const policyPrefix = "jobqueue-tenancy-"

// corePolicies are the rules without which a tenant may charge the quota of another.
var corePolicies = []string{"quota", "queue", "template", "pod", "node", "priority"}

func (i *Installation) policies() (f []Finding) {
	if i.couldNotRead("ValidatingAdmissionPolicies") || i.couldNotRead("ValidatingAdmissionPolicyBindings") {
		return nil
	}
	var missing, warn []string
	for _, name := range corePolicies {
		if !i.Policies[policyPrefix+name] {
			missing = append(missing, policyPrefix+name)
		}
	}
	ofKinds := kindsThatWarn(i)
	for policy := range i.Bindings {
		if strings.HasPrefix(policy, policyPrefix) && !refuses(i, policy) && !ofKinds.covers(policy) {
			warn = append(warn, policy)
		}
	}
	if len(missing) > 0 {
		f = append(f, Finding{Warning, "PoliciesMissing", "Tenants may charge any quota: policies are not installed: " +
			strings.Join(missing, ", ") + ".", "Apply the policies of tenancy."})
	}
	if len(missing) == len(corePolicies) {
		return f
	}
	if len(warn) > 0 {
		f = append(f, Finding{Warning, "PoliciesWarnOnly",
			fmt.Sprintf("%d policies of tenancy warn and do not refuse.", len(warn)),
			"Set their validationActions to Deny once nothing is warned of."})
	}
	f = append(f, ofKinds.findings()...)
	if i.Tenancy == nil && !i.couldNotRead("ConfigMap "+i.QueueNamespace+"/"+ancestors.ConfigMap) {
		f = append(f, Finding{Error, "PolicyParametersMissing",
			fmt.Sprintf("ConfigMap %s/%s does not exist: the API server refuses jobs.",
				i.QueueNamespace, ancestors.ConfigMap), "Apply the policies of tenancy again."})
	}
	return append(f, i.tenants()...)
}

// tenants have rights, and kinds have policies.
func (i *Installation) tenants() (f []Finding) {
	f = append(f, i.unboundedNamespaces()...)
	for _, use := range i.Ungranted {
		f = append(f, Finding{Note, "UseNotGranted",
			fmt.Sprintf("Namespace %s charges quota %s and has no right to use it.", use.Namespace, use.Quota),
			fmt.Sprintf(useRole, use.Namespace, use.Quota)})
	}
	for n := range i.Managed {
		kind := &i.Managed[n]
		if kind.GVK.Group != "batch" && !kind.OfPods() && !i.Policies[policyPrefix+"quota-"+policyNameOf(kind)] {
			f = append(f, Finding{Warning, "KindPolicyMissing",
				fmt.Sprintf("Kind %s is managed and has no policy: its jobs charge any quota.", kind),
				kindsCommand("policy", kind.String())})
		}
	}
	return f
}

func (i *Installation) visibility() []Finding {
	name := visibilityGV.Version + "." + visibilityGV.Group
	if i.APIService == nil {
		if i.couldNotRead("APIService " + name) {
			return nil
		}
		return []Finding{{Note, "VisibilityMissing", "The aggregated API is not installed: positions, amounts and holders " +
			"are not shown.",
			"Install the visibility API."}}
	}
	conditions, _, _ := unstructured.NestedSlice(i.APIService.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Available" && condition["status"] != "True" {
			return []Finding{{Error, "VisibilityUnavailable", fmt.Sprintf("The aggregated API does not answer (%v): %v",
				condition["reason"], condition["message"]),
				"See the Service, the certificate and the network policies of the scheduler. Namespaces cannot be deleted " +
					"until it answers."}}
		}
	}
	if served := i.Served[visibilityGV]; i.Served != nil && (!served["units"] || !served["localqueues"]) {
		return []Finding{{Error, "VisibilityWrong", "The aggregated API of group " + visibilityGV.Group + " is not the " +
			"one of this scheduler.",
			"Point the APIService to the Service of koord-scheduler. The stand-alone Koord-Queue uses the same group."}}
	}
	return nil
}

func (i *Installation) queues() (f []Finding) {
	f = append(f, i.unallowedPriorities()...)
	quotas := sets.New[string]()
	for n := range i.Quotas {
		quotas.Insert(i.Quotas[n].GetName())
	}
	for n := range i.Queues {
		q := &i.Queues[n]
		name := q.Namespace + "/" + q.Name
		if q.Namespace != i.QueueNamespace {
			f = append(f, Finding{Warning, "QueueOutsideOfQueueNamespace", fmt.Sprintf("Queue %s has no effect.", name),
				"Create it in namespace " + i.QueueNamespace + "."})
			continue
		}
		if c := meta.FindStatusCondition(q.Status.Conditions, "Active"); c != nil && c.Status == metav1.ConditionFalse {
			f = append(f, Finding{Warning, "QueueNotActive", fmt.Sprintf("Queue %s admits nothing: %s (%s).", name, c.Message,
				c.Reason), ""})
		}
		available := cmp.Or(q.Annotations[v1alpha1.AnnotationAvailableQuota],
			q.Annotations[v1alpha1.AnnotationAvailableQuotaShort])
		for quota := range strings.SplitSeq(available, ",") {
			quota = strings.TrimSpace(quota)
			if quota != "" && quota != "*" && len(quotas) > 0 && !quotas.Has(quota) {
				f = append(f, Finding{Warning, "QueueQuotaMissing", fmt.Sprintf("Queue %s accepts quota %q, which does not exist.",
					name, quota),
					"Create the ElasticQuota, or correct the annotation " + v1alpha1.AnnotationAvailableQuota + "."})
			}
		}
		f = append(f, i.queueChecks(name, q)...)
		f = append(f, ignoredKeys(formerkey.Queue, name, q)...)
	}
	return f
}

// ignoredKeys finds keys of the stand-alone Koord-Queue.
func ignoredKeys(of formerkey.Object, name string, o metav1.Object) []Finding {
	words := formerkey.Ignored(of, o.GetLabels(), o.GetAnnotations())
	if words == "" {
		return nil
	}
	return []Finding{{Warning, formerkey.Reason, fmt.Sprintf("%s %s: %s.", of, name, words),
		"Remove the keys. See docs/operators/koord-queue.md."}}
}

func (i *Installation) queueChecks(name string, q *v1alpha1.Queue) (f []Finding) {
	for _, named := range q.Spec.AdmissionChecks {
		check := i.Checks[named.Name]
		switch {
		case check == nil:
			f = append(f, Finding{Error, "AdmissionCheckMissing",
				fmt.Sprintf("Queue %s needs AdmissionCheck %q, which does not exist: it admits nothing.",
					name, named.Name), "Create the AdmissionCheck, or take it out of the queue."})
		case !meta.IsStatusConditionTrue(check.Status.Conditions, kueue.ConditionActive):
			f = append(f, Finding{Error, "AdmissionCheckNotActive",
				fmt.Sprintf("AdmissionCheck %q of queue %s is not active: the queue admits nothing.",
					named.Name, name), "See whether its controller runs: " + check.Spec.ControllerName + "."})
		}
	}
	return f
}

// heldBack are reasons of admitted units whose pods do not start.
var heldBack = map[string]bool{"PodsHeldBySuspension": true, "PodsChargedElsewhere": true, "CheckUpdatesMissing": true}

func (i *Installation) units() (f []Finding) {
	parked := map[string][]string{}
	held := 0
	for n := range i.Units {
		u := &i.Units[n]
		if reason := u.Annotations[v1alpha1.AnnotationParkedReason]; reason != "" && !byOwner[reason] {
			parked[reason] = append(parked[reason], u.Namespace+"/"+u.Name)
		}
		if slices.ContainsFunc(u.Status.Conditions, func(c metav1.Condition) bool { return heldBack[c.Reason] }) {
			held++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(parked)) {
		units := parked[reason]
		f = append(f, Finding{Warning, "UnitsParked", fmt.Sprintf("%d units are parked with reason %s, such as %s.",
			len(units), reason, units[0]),
			"kubectl jobqueue why names what to change."})
	}
	if held > 0 {
		f = append(f, Finding{Warning, "PodsHeld", fmt.Sprintf("%d admitted units have pods that are held back or refused.",
			held),
			"kubectl describe queueunit says which: reason PodsHeldBySuspension, PodsChargedElsewhere or CheckUpdatesMissing."})
	}
	return f
}

// byOwner are reasons that an owner asked for.
var byOwner = map[string]bool{"HeldByOwner": true, "SuspendedByOwner": true}

// auditAge is thrice the default interval of audits.
const auditAge = 15 * time.Minute

func (i *Installation) audit() []Finding {
	if i.Audit == nil || i.Audit.Status == nil {
		return nil
	}
	s := i.Audit.Status
	switch age := i.Now.Sub(s.At.Time); {
	case s.Found > 0:
		return []Finding{{Error, "AuditDifferences", fmt.Sprintf("The last audit found %d differences between the state "+
			"of the scheduler and the objects.", s.Found),
			"See docs/operators/troubleshooting.md, Audits, and report the log."}}
	case age > auditAge && age < math.MaxInt64:
		return []Finding{{Warning, "AuditOld", fmt.Sprintf("The last audit was %s ago.", age.Round(time.Minute)),
			"Read the log of the leader."}}
	}
	return nil
}

func (i *Installation) unread() (f []Finding) {
	for _, what := range i.Unread {
		f = append(f, Finding{Note, "NotExamined", "Not read: " + what, ""})
	}
	return f
}

func (i *Installation) couldNotRead(what string) bool {
	return slices.ContainsFunc(i.Unread, func(s string) bool { return strings.HasPrefix(s, what+": ") })
}
