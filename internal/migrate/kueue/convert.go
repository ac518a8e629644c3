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
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/quotaplan"
)

// Convert makes quotas, queues and rights of objects of Kueue.
func Convert(documents []document.Document, out *finding.List) []*unstructured.Unstructured {
	in := read(documents, out)
	p := &plan{in: in, out: out, leaves: map[string][]leaf{}}
	top := roots(in, out)
	p.resources = resourcesOf(top)
	if len(p.resources) > quotaplan.MaxResources {
		out.Add(finding.Error, finding.TooLarge, "input", "", "There are %d resources, and at most %d are possible.",
			len(p.resources), quotaplan.MaxResources)
		return nil
	}
	for _, root := range top {
		p.grow(root)
	}
	objects := quotaplan.Build(p.levels, out)
	for _, q := range in.queues {
		p.sayQueue(q)
	}
	if len(p.levels) > 0 {
		out.Add(finding.Info, finding.UnlistedResources, "input", "",
			"The quotas limit %v. Kueue refuses jobs that ask for other resources; here these are not limited.", p.resources)
	}
	for _, c := range in.classes {
		out.Add(finding.Warning, finding.NumberAsPriority, "WorkloadPriorityClass/"+c.Name, "value",
			"Give jobs of this class the annotation %s: \"%d\". The namespace needs %s of at least that number.",
			v1alpha1.AnnotationPriority, c.Value, v1alpha1.AnnotationMaxPriority)
	}
	return append(objects, p.rights()...)
}

// rights of each LocalQueue: everybody who may create jobs in its namespace may use the quotas of its ClusterQueue.
func (p *plan) rights() (objects []*unstructured.Unstructured) {
	queues := map[string]*clusterQueue{}
	for _, q := range p.in.queues {
		queues[q.Name] = q
	}
	given := map[string]bool{}
	for _, l := range p.in.local {
		source := fmt.Sprintf("LocalQueue/%s/%s", l.Namespace, l.Name)
		q := queues[l.Spec.ClusterQueue]
		var names []string
		for _, leaf := range p.leaves[l.Spec.ClusterQueue] {
			if leaf.level.Quota() != "" {
				names = append(names, leaf.level.Quota())
			}
		}
		if q == nil || len(names) == 0 {
			p.out.Add(finding.Error, finding.ObjectNotFound, source, "spec.clusterQueue",
				"ClusterQueue %s has no quota, so the LocalQueue has none.", l.Spec.ClusterQueue)
			continue
		}
		if reason := p.withhold(l, q); reason != "" {
			p.out.Add(finding.Warning, finding.RightsNotGranted, source, "",
				"Nobody of namespace %s may use %v: %s.", l.Namespace, names, reason)
			continue
		}
		p.out.Add(finding.Info, finding.LabelsOfJobs, source, "",
			"In namespace %s, replace label %s/queue-name: %s of jobs by %s: %s.", l.Namespace, Group, l.Name,
			v1alpha1.LabelQuotaName, strings.Join(names, " or "))
		if l.Name == "default" {
			p.out.Add(finding.Warning, finding.LabelsOfJobs, source, "",
				"Kueue puts jobs without a label here. Label them, or annotate a quota with %s: '[%q]', which has all pods then.",
				"quota.scheduling.koordinator.sh/namespaces", l.Namespace)
		}
		if l.Spec.FairSharing != nil {
			p.out.Add(finding.Warning, finding.NotExpressed, source, "spec.fairSharing",
				"Namespaces of one quota have no weights. spec.perNamespace of the Queue bounds each.")
		}
		right := quotaplan.Right{
			Name: "use-" + q.Name, Namespace: l.Namespace, Quotas: names, Subjects: quotaplan.Everybody(l.Namespace),
		}
		if key := right.Namespace + "/" + right.Name; !given[key] {
			given[key] = true
			objects = append(objects, right.Objects()...)
		}
	}
	return objects
}

// withhold says why a LocalQueue gives no right; empty if it does.
func (p *plan) withhold(l *localQueue, q *clusterQueue) string {
	if len(utilvalidation.IsDNS1123Label(l.Namespace)) > 0 {
		return "it is no namespace"
	}
	if stop := l.Spec.StopPolicy; stop != "" && stop != "None" {
		return "stopPolicy of the LocalQueue is " + stop
	}
	if q.Spec.NamespaceSelector == nil {
		return "the ClusterQueue has no namespaceSelector, which selects no namespace"
	}
	selector, err := metav1.LabelSelectorAsSelector(q.Spec.NamespaceSelector)
	if err != nil {
		return "the namespaceSelector cannot be read: " + err.Error()
	}
	if selector.Empty() {
		return ""
	}
	known, ok := p.in.namespaces[l.Namespace]
	set := labels.Set{"kubernetes.io/metadata.name": l.Namespace}
	maps.Copy(set, known)
	switch {
	case selector.Matches(set) && (ok || onlyNames(q.Spec.NamespaceSelector)):
		return ""
	case !ok && !onlyNames(q.Spec.NamespaceSelector):
		return "the labels of the namespace are not known; add its Namespace to the input"
	default:
		return "the namespaceSelector does not select the namespace"
	}
}

// onlyNames says whether a selector reads only the name of the namespace.
func onlyNames(s *metav1.LabelSelector) bool {
	for key := range s.MatchLabels {
		if key != "kubernetes.io/metadata.name" {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		if e.Key != "kubernetes.io/metadata.name" {
			return false
		}
	}
	return true
}
