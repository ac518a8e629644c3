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

// Package migrate converts the configuration of other queue systems to quotas, queues and roles. A finding reports each
// setting that cannot be converted. Each system has a package below: a function from documents to objects and findings.
package migrate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/koordqueue"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/kueue"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/volcano"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/yunikorn"
)

// Source is a system to migrate from.
type Source struct {
	// Name of the command is from- and the name.
	Name string
	// Title of the system, and what is read of it.
	Title, Reads string
	// Kinds are read from a cluster; those that it does not serve are left out.
	Kinds []Kind
	// Convert makes objects of documents.
	Convert func([]document.Document, *finding.List) []*unstructured.Unstructured
}

// Kind of objects that a source reads from a cluster.
type Kind struct {
	schema.GroupKind
	// ObjectName selects one object; empty is all.
	ObjectName string
}

// Sources are all systems.
var Sources = []Source{
	{
		Name: "kueue", Title: "Kueue",
		Reads: "ClusterQueues, Cohorts, LocalQueues, ResourceFlavors, WorkloadPriorityClasses, AdmissionChecks and " +
			"Namespaces",
		Kinds: append(kinds(kueue.Group, "ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass",
			"AdmissionCheck"), kinds("", "Namespace")...),
		Convert: kueue.Convert,
	},
	{
		Name: "yunikorn", Title: "YuniKorn",
		Reads:   "the file queues.yaml, or the ConfigMap yunikorn-configs that has it",
		Kinds:   []Kind{{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, ObjectName: "yunikorn-configs"}},
		Convert: yunikorn.Convert,
	},
	{
		Name: "volcano", Title: "Volcano", Reads: "Queues",
		Kinds: kinds(volcano.Group, "Queue"), Convert: volcano.Convert,
	},
	{
		Name: "koord-queue", Title: "the stand-alone Koord-Queue",
		Reads: "Queues, QueueUnits, ElasticQuotas and ElasticQuotaTrees",
		Kinds: append(kinds("scheduling.sigs.k8s.io", "ElasticQuota", "ElasticQuotaTree"),
			kinds("scheduling.x-k8s.io", "Queue", "QueueUnit")...),
		Convert: koordqueue.Convert,
	},
}

func kinds(group string, names ...string) []Kind {
	list := make([]Kind, 0, len(names))
	for _, name := range names {
		list = append(list, Kind{GroupKind: schema.GroupKind{Group: group, Kind: name}})
	}
	return list
}
