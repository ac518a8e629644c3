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

// Package volcano converts Queues of Volcano. The min is deserved, or guarantee if deserved is absent. The max is
// capability.
package volcano

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/quotaplan"
)

// Group of Volcano's API of queues.
const Group = "scheduling.volcano.sh"

// root is above all queues in Volcano; Koordinator has its own.
const root = "root"

type queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              spec `json:"spec,omitempty"`
}

type spec struct {
	Weight          any              `json:"weight,omitempty"`
	Capability      document.Amounts `json:"capability,omitempty"`
	Deserved        document.Amounts `json:"deserved,omitempty"`
	Guarantee       guarantee        `json:"guarantee,omitempty"`
	Reclaimable     *bool            `json:"reclaimable,omitempty"`
	Parent          string           `json:"parent,omitempty"`
	Priority        *int32           `json:"priority,omitempty"`
	DequeueStrategy string           `json:"dequeueStrategy,omitempty"`
	Affinity        map[string]any   `json:"affinity,omitempty"`
	Type            string           `json:"type,omitempty"`
	ExtendClusters  []any            `json:"extendClusters,omitempty"`
}

type guarantee struct {
	Resource document.Amounts `json:"resource,omitempty"`
}

// Convert makes quotas and queues of Queues of Volcano.
func Convert(documents []document.Document, out *finding.List) []*unstructured.Unstructured {
	queues, closed := map[string]*queue{}, map[string]bool{}
	for _, d := range documents {
		if d.Group() != Group || d.Kind() != "Queue" {
			out.Add(finding.Info, finding.UnknownKind, d.Name(), "", "An object of kind %q of group %q is not migrated.",
				d.Kind(), d.Group())
			continue
		}
		q := &queue{}
		if !d.Into(q, out) {
			continue
		}
		if queues[q.Name] != nil {
			out.Add(finding.Error, finding.DuplicateObject, d.Name(), "",
				"The object is there more than once; the first one counts.")
			continue
		}
		state := d.State()
		closed[q.Name] = state == "Closed" || state == "Closing"
		queues[q.Name] = q
	}
	return (&plan{queues: queues, closed: closed, levels: map[string]*quotaplan.Level{}, out: out}).build()
}

type plan struct {
	queues map[string]*queue
	// closed queues take no jobs.
	closed map[string]bool
	levels map[string]*quotaplan.Level
	out    *finding.List
}

func (p *plan) build() []*unstructured.Unstructured {
	parents := map[string]string{}
	var gone []string
	weighted := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.queues)) {
		if name == root {
			p.sayRoot(p.queues[name])
			continue
		}
		above := p.queues[name].Spec.Parent
		if above == root {
			above = ""
		}
		if above != "" && p.queues[above] == nil {
			p.out.Add(finding.Error, finding.ObjectNotFound, source(name), "spec.parent",
				"The queue is left out, because queue %s above it is not there.", above)
			gone = append(gone, name)
			continue
		}
		parents[name] = above
		weighted[above] = weighted[above] || p.queues[name].Spec.Weight != nil
	}
	for _, name := range gone {
		parents[name] = name // nor is what lies below it
	}
	order, lost := quotaplan.Order(parents)
	for _, name := range lost {
		if slices.Contains(gone, name) {
			continue
		}
		p.out.Add(finding.Error, finding.ParentCycle, source(name), "spec.parent",
			"The queue is left out: a queue above it is left out, or is the queue itself, or more than %d are above it.",
			quotaplan.MaxDepth-1)
	}
	levels := make([]*quotaplan.Level, 0, len(order))
	for _, name := range order {
		l := p.level(p.queues[name], p.levels[parents[name]])
		if weighted[parents[name]] {
			l.Weight = p.weight(p.queues[name])
		}
		p.levels[name] = l
		levels = append(levels, l)
	}
	objects := quotaplan.Build(levels, p.out)
	for _, name := range order {
		p.say(p.queues[name], p.levels[name])
	}
	return objects
}

func source(name string) string { return "Queue/" + name }

func (p *plan) sayRoot(q *queue) {
	if len(q.Spec.Capability)+len(q.Spec.Deserved)+len(q.Spec.Guarantee.Resource) > 0 {
		p.out.Add(finding.Warning, finding.NotExpressed, source(root), "spec",
			"Root has no quota. The size of the cluster is its limit.")
	}
}

func (p *plan) level(q *queue, above *quotaplan.Level) *quotaplan.Level {
	l := &quotaplan.Level{
		Source: source(q.Name), Name: q.Name, Alternative: q.Name + "-queue", Parent: above,
		Min: p.amounts(q, "deserved", q.Spec.Deserved), Max: p.amounts(q, "capability", q.Spec.Capability),
	}
	kept := p.amounts(q, "guarantee.resource", q.Spec.Guarantee.Resource)
	switch {
	case len(l.Min) == 0 && len(kept) > 0:
		l.Min, l.KeepBack = kept, true
	case len(kept) > 0:
		p.sayGuarantee(q, l.Min, kept)
	}
	for name, amount := range kept {
		if has := l.Min[name]; has.Cmp(amount) < 0 {
			l.Min[name] = amount
		}
	}
	l.Queue = queueSpec(q, len(q.Spec.Deserved) > 0)
	if p.closed[q.Name] {
		l.Queue.StopPolicy = ptr.To(v1alpha1.StopHold)
	}
	return l
}

// sayGuarantee: min is lent or not, as a whole.
func (p *plan) sayGuarantee(q *queue, least, kept corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		amount, has := kept[name], least[name]
		if !amount.IsZero() {
			p.out.Add(finding.Warning, finding.GuaranteeLent, source(q.Name), "spec.guarantee.resource."+string(name),
				"%s of deserved %s may be lent too while it is idle. Its jobs take it back.", amount.String(), has.String())
		}
	}
}

func queueSpec(q *queue, reclaims bool) v1alpha1.QueueSpec {
	spec := v1alpha1.QueueSpec{Priority: q.Spec.Priority}
	if q.Spec.DequeueStrategy == "fifo" || q.Spec.DequeueStrategy == "FIFO" {
		spec.QueuePolicy = v1alpha1.PolicyBlock
	}
	if reclaims {
		spec.Preemption = &v1alpha1.QueuePreemption{Reclaim: ptr.To(v1alpha1.PreemptAny)}
	}
	if q.Spec.Reclaimable != nil && !*q.Spec.Reclaimable {
		if spec.Preemption == nil {
			spec.Preemption = &v1alpha1.QueuePreemption{}
		}
		spec.Preemption.Preemptable = ptr.To(false)
	}
	return spec
}

// amounts that cannot be read count as 0.
func (p *plan) amounts(q *queue, field string, given document.Amounts) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		here := "spec." + field + "." + name
		if name == string(corev1.ResourcePods) {
			p.out.Add(finding.Warning, finding.ResourceNotCounted, source(q.Name), here,
				"ElasticQuota does not count pods, so %v pods are no limit. koord-queue/max-jobs bounds the number of jobs.",
				given[name])
			continue
		}
		one, err := document.Amounts{name: given[name]}.Parse()
		if err != nil {
			p.out.Add(finding.Error, finding.InvalidAmount, source(q.Name), here, "It counts as 0: %v", err)
			if one, err = (document.Amounts{name: int64(0)}).Parse(); err != nil {
				continue
			}
		}
		maps.Copy(list, one)
	}
	return list
}

// maxWeight bounds a weight: Koordinator multiplies and adds weights as 64-bit integers.
const maxWeight = 1_000_000

// weight against the queues with the same parent; Volcano's default is 1.
func (p *plan) weight(q *queue) *int64 {
	if q.Spec.Weight == nil {
		return ptr.To[int64](1)
	}
	weight, ok := q.Spec.Weight.(int64)
	if !ok || weight < 1 || weight > maxWeight {
		p.out.Add(finding.Error, finding.InvalidAmount, source(q.Name), "spec.weight",
			"%v is no weight from 1 to %d, so it is 1.",
			q.Spec.Weight, maxWeight)
		return ptr.To[int64](1)
	}
	return &weight
}

func (p *plan) say(q *queue, l *quotaplan.Level) {
	say := func(severity finding.Severity, reason finding.Reason, field, format string, args ...any) {
		p.out.Add(severity, reason, source(q.Name), field, format, args...)
	}
	if len(l.Min) == 0 && q.Spec.Weight != nil {
		say(finding.Warning, finding.ShareByWeight, "spec.weight",
			"The weight counts for shares of the moment. Without deserved, nothing is taken back from running jobs.")
	}
	if len(q.Spec.Affinity) > 0 {
		say(finding.Warning, finding.NodesNotBound, "spec.affinity",
			"Quota %s does not choose nodes. Put node affinity into the pod templates of its jobs.", l.Quota())
	}
	if len(q.Spec.ExtendClusters) > 0 || q.Spec.Type != "" {
		say(finding.Warning, finding.NotExpressed, "spec.extendClusters", "A queue belongs to one cluster, and has no type.")
	}
	for _, key := range []string{"volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"} {
		if q.Annotations[key] != "" {
			say(finding.Warning, finding.NotExpressed, "metadata.annotations",
				"%s is not read. Set spec.parent and spec.weight.", key)
		}
	}
	if l.Quota() != "" && l.Leaf() {
		say(finding.Info, finding.LabelsOfJobs, "", "Replace queue %s of jobs by the label %s: %s.", q.Name,
			v1alpha1.LabelQuotaName, l.Quota())
		say(finding.Warning, finding.RightsNotGranted, "",
			"Volcano checks no rights, so nobody has the right to use quota %s yet. Grant the verb use to its users.", l.Quota())
	}
}
