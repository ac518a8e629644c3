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

// Package kueue converts ClusterQueues, Cohorts, LocalQueues and ResourceFlavors of Kueue.
//
// Kueue counts each resource of each flavor, and an ElasticQuota counts each resource. So each flavor of a cohort
// becomes a tree of quotas. Its min is nominalQuota, and its max is nominalQuota with borrowingLimit.
package kueue

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// Group of Kueue's API.
const Group = "kueue.x-k8s.io"

// object is what all kinds have.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

type clusterQueue struct {
	object `json:",inline"`
	Spec   clusterQueueSpec `json:"spec,omitempty"`
}

type clusterQueueSpec struct {
	ResourceGroups            []resourceGroup       `json:"resourceGroups,omitempty"`
	Cohort                    string                `json:"cohort,omitempty"`
	CohortName                string                `json:"cohortName,omitempty"`
	QueueingStrategy          string                `json:"queueingStrategy,omitempty"`
	NamespaceSelector         *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	FlavorFungibility         map[string]any        `json:"flavorFungibility,omitempty"`
	Preemption                *preemption           `json:"preemption,omitempty"`
	AdmissionChecks           []string              `json:"admissionChecks,omitempty"`
	AdmissionChecksStrategy   *checksStrategy       `json:"admissionChecksStrategy,omitempty"`
	StopPolicy                string                `json:"stopPolicy,omitempty"`
	FairSharing               *fairSharing          `json:"fairSharing,omitempty"`
	AdmissionScope            map[string]any        `json:"admissionScope,omitempty"`
	ConcurrentAdmissionPolicy map[string]any        `json:"concurrentAdmissionPolicy,omitempty"`
}

type resourceGroup struct {
	CoveredResources []string       `json:"coveredResources,omitempty"`
	Flavors          []flavorQuotas `json:"flavors,omitempty"`
}

type flavorQuotas struct {
	Name      string          `json:"name,omitempty"`
	Resources []resourceQuota `json:"resources,omitempty"`
}

type resourceQuota struct {
	Name           string `json:"name,omitempty"`
	NominalQuota   any    `json:"nominalQuota,omitempty"`
	BorrowingLimit any    `json:"borrowingLimit,omitempty"`
	LendingLimit   any    `json:"lendingLimit,omitempty"`
}

type preemption struct {
	ReclaimWithinCohort string         `json:"reclaimWithinCohort,omitempty"`
	BorrowWithinCohort  map[string]any `json:"borrowWithinCohort,omitempty"`
	WithinClusterQueue  string         `json:"withinClusterQueue,omitempty"`
}

type checksStrategy struct {
	AdmissionChecks []struct {
		Name      string   `json:"name,omitempty"`
		OnFlavors []string `json:"onFlavors,omitempty"`
	} `json:"admissionChecks,omitempty"`
}

type fairSharing struct {
	Weight any `json:"weight,omitempty"`
}

type cohort struct {
	object `json:",inline"`
	Spec   struct {
		Parent         string          `json:"parent,omitempty"`
		ParentName     string          `json:"parentName,omitempty"`
		ResourceGroups []resourceGroup `json:"resourceGroups,omitempty"`
		FairSharing    *fairSharing    `json:"fairSharing,omitempty"`
	} `json:"spec,omitempty"`
}

type localQueue struct {
	object `json:",inline"`
	Spec   struct {
		ClusterQueue string       `json:"clusterQueue,omitempty"`
		StopPolicy   string       `json:"stopPolicy,omitempty"`
		FairSharing  *fairSharing `json:"fairSharing,omitempty"`
	} `json:"spec,omitempty"`
}

type resourceFlavor struct {
	object `json:",inline"`
	Spec   struct {
		NodeLabels   map[string]string `json:"nodeLabels,omitempty"`
		NodeTaints   []any             `json:"nodeTaints,omitempty"`
		Tolerations  []any             `json:"tolerations,omitempty"`
		TopologyName string            `json:"topologyName,omitempty"`
	} `json:"spec,omitempty"`
}

type priorityClass struct {
	object      `json:",inline"`
	Value       int64  `json:"value,omitempty"`
	Description string `json:"description,omitempty"`
}

type admissionCheck struct {
	object `json:",inline"`
	Spec   struct {
		ControllerName    string         `json:"controllerName,omitempty"`
		Parameters        map[string]any `json:"parameters,omitempty"`
		RetryDelayMinutes any            `json:"retryDelayMinutes,omitempty"`
	} `json:"spec,omitempty"`
}

// input is all that was read, in the order of the documents.
type input struct {
	queues     []*clusterQueue
	cohorts    map[string]*cohort
	local      []*localQueue
	flavors    map[string]*resourceFlavor
	classes    []*priorityClass
	checks     map[string]*admissionCheck
	namespaces map[string]map[string]string
}

// read sorts documents by kind.
func read(documents []document.Document, out *finding.List) *input {
	in := &input{
		cohorts: map[string]*cohort{}, flavors: map[string]*resourceFlavor{}, checks: map[string]*admissionCheck{},
		namespaces: map[string]map[string]string{},
	}
	seen := map[string]bool{}
	for _, d := range documents {
		if seen[d.Name()] {
			out.Add(finding.Error, finding.DuplicateObject, d.Name(), "",
				"The object is there more than once; the first one counts.")
			continue
		}
		seen[d.Name()] = true
		if d.Group() == "" && d.Kind() == "Namespace" {
			namespace := &object{}
			if (document.Document{Content: map[string]any{"metadata": d.Content["metadata"]}}).Into(namespace, out) {
				in.namespaces[namespace.Name] = namespace.Labels
			}
			continue
		}
		if d.Group() != Group || !in.take(d, out) {
			out.Add(finding.Info, finding.UnknownKind, d.Name(), "", "An object of kind %q of group %q is not migrated.",
				d.Kind(), d.Group())
		}
	}
	return in
}

// take reads an object of Kueue, and says whether the kind is known.
func (in *input) take(d document.Document, out *finding.List) bool {
	switch d.Kind() {
	case "ClusterQueue":
		if q := (&clusterQueue{}); d.Into(q, out) {
			in.queues = append(in.queues, q)
		}
	case "Cohort":
		if c := (&cohort{}); d.Into(c, out) {
			in.cohorts[c.Name] = c
		}
	case "LocalQueue":
		if q := (&localQueue{}); d.Into(q, out) {
			in.local = append(in.local, q)
		}
	case "ResourceFlavor":
		if f := (&resourceFlavor{}); d.Into(f, out) {
			in.flavors[f.Name] = f
		}
	case "WorkloadPriorityClass":
		if c := (&priorityClass{}); d.Into(c, out) {
			in.classes = append(in.classes, c)
		}
	case "AdmissionCheck":
		if c := (&admissionCheck{}); d.Into(c, out) {
			in.checks[c.Name] = c
		}
	default:
		return false
	}
	return true
}
