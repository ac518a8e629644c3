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

// Package quotaplan makes ElasticQuotas and Queues of the levels that another system describes.
//
// Build keeps the rules of Koordinator's webhook and of the queue: names are unique, and one tree has the same
// resources. A min is at most max, and at least the sum of the mins below. If the other system breaks a rule, Build
// changes the level and reports that.
package quotaplan

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/quotaname"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/priority"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// Bounds of a tree.
const (
	// MaxDepth is the greatest number of levels above each other.
	MaxDepth = 16
	// MaxResources is the greatest number of resources, which each level of the tree names.
	MaxResources = 256
)

// Labels and annotations of ElasticQuotas that Koordinator reads.
const (
	prefix           = "quota.scheduling.koordinator.sh/"
	labelIsParent    = prefix + "is-parent"
	labelAllowLent   = prefix + "allow-lent-resource"
	annotationWeight = prefix + "shared-weight"
	rootQuota        = "koordinator-root-quota"
)

// defaultQueuePriority of Queues, as the controller gives it to default Queues.
const defaultQueuePriority int32 = 1000

// Level is one quota in the making.
type Level struct {
	// Source is the object that it is made of, for findings.
	Source string
	// Name that it should have, and the one that it gets if another level has that.
	Name, Alternative string
	// Parent is the level above; nil for a level below Koordinator's root.
	Parent *Level
	// Min is guaranteed, Max the most that may be used. A resource that Max omits has the limit of the level above.
	Min, Max corev1.ResourceList
	// KeepBack lends nothing of min to others.
	KeepBack bool
	// Weight of the level against its siblings, for what is beyond their min; nil is Koordinator's default, max.
	Weight *int64
	// MaxJobs bounds the admitted jobs of the level and all below it; nil is no bound.
	MaxJobs *int64
	// Group: the level is to have levels below it, whether it has some by now or not.
	Group bool
	// Queue of the level. Levels above others have none.
	Queue v1alpha1.QueueSpec

	quota    string
	children []*Level
}

// Quota is the name of the ElasticQuota, after Build. It is empty if the level has none.
func (l *Level) Quota() string { return l.quota }

// Leaf says whether jobs may name the quota, after Build.
func (l *Level) Leaf() bool { return len(l.children) == 0 && !l.Group }

// Build returns the Queues of the levels that have none below them, and the ElasticQuotas, parents first. Queues come
// before their quotas, or the controller would create them. A level comes after the one above it.
func Build(levels []*Level, out *finding.List) []*unstructured.Unstructured {
	b := &builder{out: out, names: map[string]*Level{}}
	var named, tops []*Level
	for _, l := range levels {
		if !b.name(l) {
			continue
		}
		named = append(named, l)
		if l.Parent == nil {
			tops = append(tops, l)
		} else {
			l.Parent.children = append(l.Parent.children, l)
		}
	}
	for _, top := range tops {
		names := resourcesOf(top)
		if len(names) > MaxResources {
			out.Add(finding.Error, finding.TooLarge, top.Source, "",
				"Quota %s and those below it are left out: they have %d resources, and at most %d are possible.",
				top.quota, len(names), MaxResources)
			top.leaveOut()
			continue
		}
		b.limits(top, names, nil)
		b.raise(top)
		b.share(top, top.Min)
	}
	var quotas, queues []*unstructured.Unstructured
	byPriority := 0
	for _, l := range named {
		if l.quota == "" {
			continue
		}
		quotas = append(quotas, l.object())
		if l.Leaf() {
			queues = append(queues, l.queue())
			if priority.Compared(l.Queue.Preemption) {
				byPriority++
			}
		}
	}
	if byPriority > 0 {
		out.Add(finding.Warning, finding.PreemptionDiffers, "input", "",
			"Queues whose jobs preempt by priority: %d. Priorities count up to %s of the namespace, and up to 0 without it.",
			byPriority, v1alpha1.AnnotationMaxPriority)
	}
	return append(queues, quotas...)
}

// leaveOut a level and all below it.
func (l *Level) leaveOut() {
	l.quota = ""
	for _, child := range l.children {
		child.leaveOut()
	}
}

type builder struct {
	out *finding.List
	// names that are taken.
	names map[string]*Level
}

// name gives the level a name that no other one has.
func (b *builder) name(l *Level) bool {
	if l.Parent != nil && l.Parent.quota == "" {
		b.out.Add(finding.Error, finding.ParentLeftOut, l.Source, "",
			"Quota %s is left out, because the quota above it is.", l.Name)
		return false
	}
	for _, wanted := range []string{l.Name, l.Alternative} {
		name := quotaname.Of(wanted)
		// A quota with the name of its namespace has all pods of that.
		if !quotaname.Usable(name) || name == v1alpha1.DefaultQueueNamespace || b.names[name] != nil {
			continue
		}
		b.names[name], l.quota = l, name
		if name != l.Name {
			b.out.Add(finding.Info, finding.Renamed, l.Source, "",
				"The ElasticQuota has the name %s: names are unique in the cluster and have at most 63 characters.", name)
		}
		return true
	}
	b.out.Add(finding.Error, finding.NameTaken, l.Source, "",
		"No ElasticQuota can have the name %s: another one has it, or it is no name of a quota.", l.Name)
	return false
}

// resourcesOf a level and all below it. Without any, cpu and memory are counted.
func resourcesOf(top *Level) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	var walk func(*Level)
	walk = func(l *Level) {
		for name := range l.Min {
			names[name] = true
		}
		for name := range l.Max {
			names[name] = true
		}
		for _, child := range l.children {
			walk(child)
		}
	}
	walk(top)
	if len(names) == 0 {
		names[corev1.ResourceCPU], names[corev1.ResourceMemory] = true, true
	}
	return slices.Sorted(maps.Keys(names))
}

// unlimited is an amount of a resource that no cluster has. Koordinator adds such amounts as 64-bit integers.
func unlimited(name corev1.ResourceName) resource.Quantity {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.MustParse("1Pi")
	default:
		return resource.MustParse("1G")
	}
}

// limits completes the max of a level and of all below it, so that all name the same resources.
func (b *builder) limits(l *Level, names []corev1.ResourceName, above corev1.ResourceList) {
	most := corev1.ResourceList{}
	var open []string
	for _, name := range names {
		limit, limited := above[name]
		own, ok := l.Max[name]
		switch {
		case ok && limited && own.Cmp(limit) > 0:
			most[name] = limit
		case ok:
			most[name] = own
		case limited:
			most[name] = limit
		default:
			most[name] = unlimited(name)
			open = append(open, string(name))
		}
	}
	if len(open) > 0 {
		b.out.Add(finding.Info, finding.NoLimit, l.Source, "",
			"No max is given for %v. ElasticQuota %s gets one that no cluster has, and the size of the cluster is the limit.",
			open, l.quota)
	}
	least := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(l.Min)) {
		amount, limit := l.Min[name], most[name]
		if amount.Cmp(limit) > 0 {
			b.out.Add(finding.Warning, finding.MinAboveMax, l.Source, "",
				"%s: min %s is above max %s of ElasticQuota %s, so min is %s.", name, amount.String(), limit.String(), l.quota,
				limit.String())
			amount = limit
		}
		least[name] = amount
	}
	l.Max, l.Min = most, least
	for _, child := range l.children {
		b.limits(child, names, most)
	}
}

// raise gives each level at least the min of all levels below it, up to its max.
func (b *builder) raise(l *Level) {
	sum := corev1.ResourceList{}
	for _, child := range l.children {
		b.raise(child)
		for name, amount := range child.Min {
			has := sum[name]
			has.Add(amount)
			sum[name] = has
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		amount, limit := sum[name], l.Max[name]
		if amount.Cmp(limit) > 0 {
			amount = limit
		}
		if has, named := l.Min[name]; !named || amount.Cmp(has) > 0 {
			l.Min[name] = amount
		}
	}
}

// share takes the min of the levels below from that of a level, in their order.
func (b *builder) share(l *Level, least corev1.ResourceList) {
	left := least.DeepCopy()
	for _, child := range l.children {
		for _, name := range slices.Sorted(maps.Keys(child.Min)) {
			amount, has := child.Min[name], left[name]
			if amount.Cmp(has) > 0 {
				b.out.Add(finding.Warning, finding.MinAboveParent, child.Source, "",
					"%s: min %s of ElasticQuota %s is above %s, which is left of the min of %s, so min is %s.",
					name, amount.String(), child.quota, has.String(), l.quota, has.String())
				amount = has
				child.Min[name] = amount.DeepCopy()
			}
			has.Sub(amount)
			left[name] = has
		}
		b.share(child, child.Min)
	}
}

func (l *Level) object() *unstructured.Unstructured {
	parent := rootQuota
	if l.Parent != nil {
		parent = l.Parent.quota
	}
	labels := map[string]any{
		v1alpha1.LabelQuotaParent: parent,
		labelIsParent:             strconv.FormatBool(!l.Leaf()),
	}
	if l.Leaf() {
		labels[v1alpha1.LabelQueuePolicy] = string(l.policy())
	}
	if l.KeepBack {
		labels[labelAllowLent] = "false"
	}
	annotations := map[string]any{}
	if l.Weight != nil {
		annotations[annotationWeight] = l.sharedWeight(*l.Weight)
	}
	if l.MaxJobs != nil {
		annotations[v1alpha1.AnnotationMaxJobs] = strconv.FormatInt(*l.MaxJobs, 10)
	}
	metadata := map[string]any{"namespace": v1alpha1.DefaultQueueNamespace, "name": l.quota, "labels": labels}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata,
		"spec": map[string]any{"min": texts(l.Min), "max": texts(l.Max)},
	}}
}

// sharedWeight is the same number for each resource of max: only the ratio to its siblings counts.
func (l *Level) sharedWeight(weight int64) string {
	weights := make(map[corev1.ResourceName]string, len(l.Max))
	for name := range l.Max {
		weights[name] = strconv.FormatInt(weight, 10)
	}
	raw, err := json.Marshal(weights)
	if err != nil {
		return ""
	}
	return string(raw)
}

func texts(list corev1.ResourceList) map[string]any {
	fields := make(map[string]any, len(list))
	for name, amount := range list {
		fields[string(name)] = amount.String()
	}
	return fields
}

func (l *Level) policy() v1alpha1.QueuePolicy {
	if l.Queue.QueuePolicy == "" {
		return v1alpha1.PolicyPriority
	}
	return l.Queue.QueuePolicy
}

func (l *Level) queue() *unstructured.Unstructured {
	spec := l.Queue.DeepCopy()
	spec.QueuePolicy = l.policy()
	if spec.Priority == nil {
		spec.Priority = ptr.To(defaultQueuePriority)
	}
	return Object(&v1alpha1.Queue{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Queue"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.DefaultQueueNamespace, Name: l.quota,
			Annotations: map[string]string{v1alpha1.AnnotationAvailableQuotaShort: l.quota},
		},
		Spec: *spec,
	})
}
