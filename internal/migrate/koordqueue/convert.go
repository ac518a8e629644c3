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

// Package koordqueue takes over the objects of the stand-alone Koord-Queue unchanged. Its findings name the settings
// that have another effect here, or none.
package koordqueue

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/quotaplan"
)

// Names of the stand-alone Koord-Queue.
const (
	// formerPrefix of its annotations, and name of its namespace, in its first versions.
	formerPrefix = "kube-queue"
	// createdBy marks Queues that it made of nodes of a tree.
	createdBy = "create-by-koordqueue"
)

// converter collects what is taken over.
type converter struct {
	out    *finding.List
	quotas map[string]bool
	queues map[string]bool
	// ofJobs and others count QueueUnits.
	ofJobs, others int

	quotaObjects, queueObjects []*unstructured.Unstructured
}

// Convert takes over Queues, ElasticQuotas and ElasticQuotaTrees.
func Convert(documents []document.Document, out *finding.List) []*unstructured.Unstructured {
	c := &converter{out: out, quotas: map[string]bool{}, queues: map[string]bool{}}
	for _, d := range documents {
		switch d.Group() + " " + d.Kind() {
		case "scheduling.x-k8s.io Queue":
			c.queue(d)
		case "scheduling.x-k8s.io QueueUnit":
			c.unit(d)
		case "scheduling.sigs.k8s.io ElasticQuota":
			c.quota(d)
		case "scheduling.sigs.k8s.io ElasticQuotaTree":
			c.tree(d)
		default:
			out.Add(finding.Info, finding.UnknownKind, d.Name(), "", "An object of kind %q of group %q is not migrated.",
				d.Kind(), d.Group())
		}
	}
	if c.ofJobs > 0 {
		out.Add(finding.Info, finding.UnitsNotMoved, "QueueUnit", "",
			"%d QueueUnits of jobs are left out: the controller creates a unit of each job.", c.ofJobs)
	}
	if c.others > 0 {
		out.Add(finding.Warning, finding.UnitsNotMoved, "QueueUnit", "spec.consumerRef",
			"%d QueueUnits without a job are left out: their makers have to create them again.", c.others)
	}
	return append(c.queueObjects, c.quotaObjects...)
}

func (c *converter) unit(d document.Document) {
	spec, _ := d.Content["spec"].(map[string]any)
	if spec["consumerRef"] == nil {
		c.others++
		return
	}
	c.ofJobs++
}

// kept is an object without its status and what the API server writes.
func kept(d document.Document) *unstructured.Unstructured {
	given, _ := d.Content["metadata"].(map[string]any)
	metadata := map[string]any{"namespace": d.Namespace(), "name": d.ObjectName()}
	for _, key := range []string{"labels", "annotations"} {
		fields, _ := given[key].(map[string]any)
		fields = maps.Clone(fields)
		delete(fields, "kubectl.kubernetes.io/last-applied-configuration")
		if len(fields) > 0 {
			metadata[key] = fields
		}
	}
	object := map[string]any{"apiVersion": d.Content["apiVersion"], "kind": d.Content["kind"], "metadata": metadata}
	if spec, ok := d.Content["spec"]; ok {
		object["spec"] = spec
	}
	return &unstructured.Unstructured{Object: object}
}

// first says whether no object of the name was there, and tells otherwise.
func (c *converter) first(seen map[string]bool, d document.Document) bool {
	if d.ObjectName() == "" {
		c.out.Add(finding.Error, finding.Unreadable, d.Name(), "metadata.name", "The object has no name, so it is left out.")
		return false
	}
	if seen[d.ObjectName()] {
		c.out.Add(finding.Error, finding.DuplicateObject, d.Name(), "",
			"The name is there more than once, and names are unique in the cluster. The first object counts.")
		return false
	}
	seen[d.ObjectName()] = true
	return true
}

func (c *converter) quota(d document.Document) {
	var read struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              map[string]any `json:"spec,omitempty"`
	}
	if !d.Into(&read, c.out) || !c.first(c.quotas, d) {
		return
	}
	c.quotaObjects = append(c.quotaObjects, kept(d))
}

func (c *converter) tree(d document.Document) {
	if d.ObjectName() == "" {
		c.out.Add(finding.Error, finding.Unreadable, d.Name(), "metadata.name", "The object has no name, so it is left out.")
		return
	}
	c.out.Add(finding.Info, finding.NotExpressed, d.Name(), "",
		"The tree applies unchanged with manifests/components/elasticquotatree. Its condition Ready tells its problems.")
	c.quotaObjects = append(c.quotaObjects, kept(d))
}

func (c *converter) queue(d document.Document) {
	q := &v1alpha1.Queue{}
	if !d.Into(q, c.out) {
		return
	}
	if q.Labels[createdBy] == "true" {
		c.out.Add(finding.Info, finding.NotExpressed, d.Name(), "metadata.labels",
			"The Queue was made of a node of a tree. The controller creates one with the name of the quota.")
		return
	}
	if !c.first(c.queues, d) {
		return
	}
	q.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Queue"}
	if q.Namespace != v1alpha1.DefaultQueueNamespace {
		c.out.Add(finding.Info, finding.NamespaceChanged, d.Name(), "metadata.namespace",
			"The Queue comes to namespace %s; elsewhere a Queue orders nothing.", v1alpha1.DefaultQueueNamespace)
	}
	q.ObjectMeta = metav1.ObjectMeta{
		Namespace: v1alpha1.DefaultQueueNamespace, Name: q.Name, Annotations: c.annotations(d, q.Annotations),
	}
	c.policy(d, q)
	c.queueObjects = append(c.queueObjects, quotaplan.Object(q))
}

func (c *converter) policy(d document.Document, q *v1alpha1.Queue) {
	switch q.Spec.QueuePolicy {
	case "":
		q.Spec.QueuePolicy = v1alpha1.PolicyPriority
	case v1alpha1.PolicyPriority, v1alpha1.PolicyFIFO, v1alpha1.PolicyIntelligent:
	case v1alpha1.PolicyBlock:
		c.out.Add(finding.Warning, finding.OrderDiffers, d.Name(), "spec.queuePolicy",
			"Koord-Queue blocks the quota of a unit that does not fit. Here the unit claims what it waits for, on every level.")
	case "Round":
		c.out.Add(finding.Info, finding.OrderDiffers, d.Name(), "spec.queuePolicy", "Round is Priority, as in Koord-Queue.")
		q.Spec.QueuePolicy = v1alpha1.PolicyPriority
	default:
		c.out.Add(finding.Warning, finding.OrderDiffers, d.Name(), "spec.queuePolicy",
			"Policy %s is not known, so the queue has policy Priority.", q.Spec.QueuePolicy)
		q.Spec.QueuePolicy = v1alpha1.PolicyPriority
	}
}

// annotations that something reads here, with the prefix of today.
func (c *converter) annotations(d document.Document, given map[string]string) map[string]string {
	taken := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		name := key
		if rest, ok := strings.CutPrefix(key, formerPrefix+"/"); ok {
			name = "koord-queue/" + rest
		}
		if _, ok := given[name]; ok && name != key {
			continue // the annotation of today counts
		}
		ignored := formerkey.Ignored(formerkey.Queue, nil, map[string]string{name: given[key]})
		if ignored != "" {
			c.out.Add(finding.Warning, finding.NotExpressed, d.Name(), "metadata.annotations."+key, "%s.", ignored)
		} else if slices.ContainsFunc(formerkey.Table(), func(r formerkey.Row) bool {
			return r.Object == formerkey.Queue && r.Key == name && r.Fate == formerkey.Honoured
		}) {
			taken[name] = given[key]
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return taken
}
