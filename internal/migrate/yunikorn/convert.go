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

package yunikorn

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/quotaplan"
)

// Convert makes quotas, queues and rights of queues.yaml, or of the ConfigMap that has it.
func Convert(documents []document.Document, out *finding.List) []*unstructured.Unstructured {
	p := &plan{out: out}
	for _, d := range documents {
		for _, part := range read(d, out) {
			p.partition(&part)
		}
	}
	objects := quotaplan.Build(p.levels, out)
	for _, r := range p.rights {
		if name := r.level.Quota(); name != "" && r.level.Leaf() {
			objects = append(objects, p.right(name, r)...)
		}
	}
	return objects
}

// plan collects the levels and who may use them.
type plan struct {
	out    *finding.List
	levels []*quotaplan.Level
	rights []right
	// subjects is the number of users and groups of all rights.
	subjects int
	// parted says that a partition was read.
	parted bool
}

type right struct {
	level  *quotaplan.Level
	path   string
	access access
}

// inherited is what a queue has from those above it.
type inherited struct {
	level  *quotaplan.Level
	access access
	// off: there is no preemption. Fenced: jobs preempt nobody elsewhere. Keep: they keep what they borrow.
	off, fenced, keep bool
	depth             int
}

func (p *plan) partition(part *partition) {
	object := "partition/" + part.Name
	if p.parted || part.Name != "" && part.Name != "default" {
		p.out.Add(finding.Error, finding.NotExpressed, object, "",
			"The partition is left out: only one, with the name default, is migrated.")
		return
	}
	p.parted = true
	for i, rule := range part.PlacementRules {
		p.out.Add(finding.Warning, finding.PlacementRule, object, fmt.Sprintf("placementrules[%d]", i),
			"The rule is left out. `placement` of the managed jobs gives the jobs of a namespace a path: %v.",
			rule)
	}
	if len(part.Limits) > 0 {
		p.limits(object, part.Limits)
	}
	for field, given := range map[string]bool{
		"nodesortpolicy": len(part.NodeSortPolicy) > 0, "statedumpfilepath": part.StateDumpFilePath != "",
	} {
		if given {
			p.out.Add(finding.Info, finding.NotExpressed, object, field, "koord-scheduler has settings of its own for that.")
		}
	}
	enabled, ok := part.Preemption["enabled"]
	off := ok && fmt.Sprint(enabled) == "false"
	if len(part.Queues) == 1 && isRoot(&part.Queues[0]) {
		p.root(&part.Queues[0], off)
		return
	}
	p.root(&queue{Name: "root", Queues: part.Queues}, off)
}

// root has no quota: Koordinator's own root is above all quotas.
func (p *plan) root(q *queue, off bool) {
	if len(q.Resources.Guaranteed)+len(q.Resources.Max) > 0 || q.MaxApplications != nil {
		p.out.Add(finding.Warning, finding.NotExpressed, source("root"), "resources",
			"Root has no quota. The size of the cluster is its limit.")
	}
	if len(q.Queues) == 0 {
		p.out.Add(finding.Error, finding.DynamicQueues, source("root"), "queues", "Without queues there is no quota.")
	}
	var a access
	a = a.with("root", "submitacl", q.SubmitACL, p.out).with("root", "adminacl", q.AdminACL, p.out)
	p.sayQueue(q, "root")
	for i := range q.Queues {
		p.queue(&q.Queues[i], "root", inherited{access: a, off: off, depth: 1})
	}
}

func (p *plan) queue(q *queue, above string, up inherited) {
	path := above + "." + q.Name
	if len(p.levels) == document.MaxObjects {
		p.out.Add(finding.Error, finding.TooLarge, source(path), "", "The queue is left out: at most %d queues are read.",
			document.MaxObjects)
		return
	}
	if up.depth > quotaplan.MaxDepth {
		p.out.Add(finding.Error, finding.TooLarge, source(path), "", "The queue is left out: it is more than %d levels deep.",
			quotaplan.MaxDepth)
		return
	}
	a := up.access.with(path, "submitacl", q.SubmitACL, p.out).with(path, "adminacl", q.AdminACL, p.out)
	policy := q.property("preemption.policy")
	down := inherited{
		access: a, depth: up.depth + 1,
		off: up.off, fenced: up.fenced || policy == "fence", keep: up.keep || policy == "disabled",
	}
	l := &quotaplan.Level{
		Source: source(path), Name: q.Name, Alternative: strings.ReplaceAll(strings.TrimPrefix(path, "root."), ".", "-"),
		Parent: up.level,
		Min:    resources(source(path), "guaranteed", q.Resources.Guaranteed, p.out),
		Max:    resources(source(path), "max", q.Resources.Max, p.out),
		Group:  q.Parent || len(q.Queues) > 0, MaxJobs: p.maxJobs(q, path), Queue: p.spec(q, path, down),
	}
	down.level = l
	p.levels = append(p.levels, l)
	p.sayQueue(q, path)
	if q.Parent && len(q.Queues) == 0 {
		p.out.Add(finding.Warning, finding.DynamicQueues, l.Source, "parent",
			"YuniKorn creates queues below it. No quota is created by itself: create one for each namespace or user, below %s.",
			q.Name)
	}
	p.rights = append(p.rights, right{level: l, path: path, access: a})
	for i := range q.Queues {
		p.queue(&q.Queues[i], path, down)
	}
}

func (p *plan) maxJobs(q *queue, path string) *int64 {
	if q.MaxApplications == nil {
		return nil
	}
	n, ok := q.MaxApplications.(int64)
	if !ok || n < 0 || n > math.MaxInt32 {
		p.out.Add(finding.Error, finding.InvalidAmount, source(path), "maxapplications",
			"%v is no number of jobs, so it is 0.",
			q.MaxApplications)
		return ptr.To[int64](0)
	}
	if n == 0 {
		return nil // YuniKorn: no limit
	}
	return &n
}

// spec is the Queue of a leaf. YuniKorn lets applications pass one that does not fit, as policy Priority does.
func (p *plan) spec(q *queue, path string, down inherited) v1alpha1.QueueSpec {
	spec := v1alpha1.QueueSpec{Preemption: &v1alpha1.QueuePreemption{}}
	if down.off || down.keep {
		spec.Preemption.Preemptable = ptr.To(false)
	}
	switch {
	case down.off:
	case down.fenced:
		p.out.Add(finding.Warning, finding.PreemptionDiffers, source(path), "properties.preemption.policy",
			"Preemption has no fence, so jobs of this queue preempt nobody.")
	default:
		spec.Preemption.Reclaim = ptr.To(v1alpha1.PreemptLowerPriority)
	}
	if *spec.Preemption == (v1alpha1.QueuePreemption{}) {
		spec.Preemption = nil
	}
	return spec
}

// sayQueue says what of a queue is not expressed.
func (p *plan) sayQueue(q *queue, path string) {
	object := source(path)
	if len(q.Limits) > 0 {
		p.limits(object, q.Limits)
	}
	if len(q.ChildTemplate) > 0 {
		p.out.Add(finding.Warning, finding.DynamicQueues, object, "childtemplate",
			"Quotas are not created by a template: create each with these settings: %v.", q.ChildTemplate)
	}
	if strings.TrimSpace(q.AdminACL) != "" {
		p.out.Add(finding.Info, finding.RightsDiffer, object, "adminacl",
			"Administrators may use the quotas. To hold, move and drain, bind %q to the role jobqueue-operator.", q.AdminACL)
	}
	p.sayProperties(q, object)
}

func (p *plan) limits(object string, limits []any) {
	for i, limit := range limits {
		p.out.Add(finding.Warning, finding.LimitPerUser, object, fmt.Sprintf("limits[%d]", i),
			"A quota has no limits of users and groups: %v. Give them quotas of their own.", limit)
	}
}

// sayProperties says which properties have another effect here.
func (p *plan) sayProperties(q *queue, object string) {
	for name := range q.Properties {
		value, field := q.property(name), "properties."+name
		switch name {
		case "application.sort.policy":
			if value != "fifo" {
				p.out.Add(finding.Warning, finding.OrderDiffers, object, field,
					"Order %q is not known: jobs are ordered by priority and time of creation.", value)
			}
		case "application.sort.priority":
			if value == "disabled" {
				p.out.Add(finding.Warning, finding.OrderDiffers, object, field,
					"Jobs are ordered by priority first. Policy FIFO orders by time, and lets no job pass.")
			}
		case "preemption.policy":
		case "preemption.delay":
			if delay, err := time.ParseDuration(value); err == nil {
				p.out.Add(finding.Info, finding.PreemptionDiffers, object, field,
					"A job preempts at once, and not after %s.", delay)
			}
		case "priority.policy", "priority.offset":
			p.out.Add(finding.Warning, finding.OrderDiffers, object, field,
				"%s is not expressed. spec.priority of a Queue orders queues.", value)
		default:
			p.out.Add(finding.Warning, finding.UnknownField, object, field,
				"The property is not known, and nothing is made of it.")
		}
	}
}

// right lets the users and groups of a queue use its quota, in each namespace where they may create jobs.
func (p *plan) right(quota string, r right) []*unstructured.Unstructured {
	object := source(r.path)
	p.out.Add(finding.Info, finding.LabelsOfJobs, object, "",
		"Replace queue %s of jobs by the label %s: %s.", r.path, v1alpha1.LabelQuotaName, quota)
	subjects := r.access.all()
	if p.subjects += len(subjects); p.subjects > maxAllSubjects {
		p.out.Add(finding.Error, finding.RightsNotGranted, object, "submitacl",
			"Nobody may use quota %s: at most %d users and groups of all queues are possible.", quota, maxAllSubjects)
		return nil
	}
	if len(subjects) == 0 {
		p.out.Add(finding.Warning, finding.RightsNotGranted, object, "submitacl",
			"Nobody may submit to the queue, so nobody may use quota %s.",
			quota)
		return nil
	}
	return quotaplan.Right{Name: "use-" + quota, Quotas: []string{quota}, Subjects: subjects}.Objects()
}
