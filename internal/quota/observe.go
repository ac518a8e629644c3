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

package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/features"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
)

// level is one quota on the way from a leaf to the root of its tree, as the live manager has it.
type level struct {
	mgr  *core.GroupQuotaManager
	info *core.QuotaInfo
	// name differs from info.Name only at the root of a tree other than the default one: every tree has a root of the
	// same name.
	name, parent string
}

// Observe returns settings, use and limit of the named quotas and all their ancestors, each once, leaf before parent.
// gone has the names that do not exist, or whose path to the root is broken. If runtime is the limit, the result
// includes the default quota. Pods of missing quotas are charged to it, and every runtime is a share of the remainder.
//
// The caller first updates its own reservations and then observes. After the hook has announced that a pod begins to
// count, used has the pod, or the pod counts twice for a moment. It is never missing.
func (a *Adapter) Observe(names []string) (found []admission.Quota, gone []string) {
	plugin, args := a.captured()
	names = slices.Clone(names)
	if plugin != nil && args.EnableRuntimeQuota {
		names = append(names, extension.DefaultQuotaName)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if plugin == nil {
		return nil, names
	}
	a.mu.Lock()
	for _, name := range names {
		delete(a.more, name)
	}
	a.mu.Unlock()
	a.awaitUsed(plugin)
	levels, gone := levelsOf(plugin, names)
	found = make([]admission.Quota, 0, len(levels))
	for i := range levels {
		found = append(found, a.observe(plugin, &levels[i], args))
	}
	return found, gone
}

// TotalMoved says whether the total of a tree is another one than when its root was last observed. It says so once
// until the root is observed again: a tree without quotas never is.
func (a *Adapter) TotalMoved() (moved bool) {
	plugin, _ := a.captured()
	if plugin == nil {
		return false
	}
	for _, mgr := range managers(plugin) {
		name := rootName(mgr)
		last, observed := a.totals.Load(name)
		if total, ok := last.(resources.List); observed && ok && !totalOf(mgr).Same(total) {
			a.totals.Delete(name)
			moved = true
		}
	}
	return moved
}

// observe reads used before the room: a pod that ends makes the room smaller before it leaves used.
func (a *Adapter) observe(plugin Live, l *level, args *config.ElasticQuotaArgs) admission.Quota {
	q, inMax := l.read(args)
	a.protection.release(l.name, q.Used)
	if l.parent == "" {
		q.Max = totalOf(l.mgr)
		a.totals.Store(l.name, q.Max)
		q.Limit = a.withMaxJobs(l.name, a.room.limit(plugin, l, q.Max), nil)
		return q
	}
	q.Closed = builtIn(l.name) && !a.builtInOpen.Load()
	q.Shared = args.EnableRuntimeQuota && !builtIn(l.name)
	if !q.Shared {
		q.Limit = q.Max
	}
	q.Limit = a.withMaxJobs(l.name, q.Limit, inMax)
	return q
}

// read takes what the quota says, all at once, and the number of jobs that its max names. It reads under the quota's
// lock what a getter would make a copy of: most of the cost of an observation was these copies.
func (l *level) read(args *config.ElasticQuotaArgs) (q admission.Quota, inMax *resource.Quantity) {
	l.info.Lock()
	defer l.info.UnLock()
	info := &l.info.CalculateInfo
	q = admission.Quota{
		Name: l.name, Parent: l.parent, Used: toList(info.Used), NonPreemptibleUsed: toList(info.NonPreemptibleUsed),
	}
	if l.parent == "" {
		if args.EnableRuntimeQuota {
			q.Terms.Part = shares.Top
		}
		return q, nil
	}
	if n, ok := info.Max[resources.Jobs]; ok {
		inMax = &n
	}
	// ElasticQuota counts nothing that max does not name, against min neither.
	q.Min, q.Max = toListOf(info.Min, info.Max), toListOf(info.Max, info.Max)
	if !args.EnableRuntimeQuota {
		return q, inMax
	}
	q.Requested, q.KeepsMin = toListOf(info.SelfRequest, info.Max), !l.info.AllowLentResource
	q.Terms = capacity.Terms{
		Part: shares.Sharing, Weight: toWeights(info.SharedWeight), ScalesMin: args.EnableMinQuotaScale,
		GuaranteesUsed: utilfeature.DefaultFeatureGate.Enabled(features.ElasticQuotaGuaranteeUsage),
	}
	if builtIn(l.name) {
		q.Terms.Part = shares.Apart
	}
	if q.Terms.GuaranteesUsed {
		q.Terms.OwnUsed = toListOf(info.SelfUsed, info.Max)
	}
	return q, inMax
}

// usedOf is what pods of a quota and below it use.
func usedOf(info *core.QuotaInfo) resources.List {
	info.Lock()
	defer info.UnLock()
	return toList(info.CalculateInfo.Used)
}

// totalOf is the cluster total of a tree. Every node has cpu and memory, so without nodes their total is zero. Any
// other unnamed resource is not limited here.
func totalOf(mgr *core.GroupQuotaManager) resources.List {
	total := mgr.GetClusterTotalResource()
	if total == nil {
		total = corev1.ResourceList{}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, ok := total[name]; !ok {
			total[name] = resource.Quantity{}
		}
	}
	delete(total, corev1.ResourcePods)
	return toList(total)
}

// pathOf walks from a quota to the root of its tree. It is not ok, and the path ends before the root, if the quota, or
// a parent that it names, is missing or comes twice.
func pathOf(plugin Live, name string) ([]level, bool) {
	path, _, ok := pathTo(plugin, name, nil)
	return path, ok
}

// pathTo walks from a quota up to the first level whose depth is known. It returns the levels below that, and the
// depth, or -1 at the root.
func pathTo(plugin Live, name string, known map[string]int) (path []level, depth int, ok bool) {
	mgr := plugin.GetGroupQuotaManagerForQuota(name)
	if mgr == nil {
		return nil, 0, false
	}
	for at := name; ; {
		l := level{mgr: mgr, name: at}
		if at == extension.RootQuotaName {
			l.name = rootName(mgr)
		}
		if depth, ok := known[l.name]; ok {
			return path, depth, true
		}
		l.info = mgr.GetQuotaInfoByName(at)
		if l.info == nil || slices.ContainsFunc(path, func(below level) bool { return below.name == l.name }) {
			return path, 0, false
		}
		if at == extension.RootQuotaName {
			return append(path, l), -1, true
		}
		at = parentOf(l.info)
		l.parent = at
		if at == extension.RootQuotaName {
			l.parent = rootName(mgr)
		}
		path = append(path, l)
	}
}

// levelsOf lists the levels from all names to their roots, each once, leaf before parent.
func levelsOf(plugin Live, names []string) (levels []level, gone []string) {
	depths := make(map[string]int, len(names)+4)
	var byDepth [][]level
	for _, name := range names {
		path, depth, ok := pathTo(plugin, name, depths)
		if !ok {
			gone = append(gone, name)
			continue
		}
		for _, l := range slices.Backward(path) {
			depth++
			depths[l.name] = depth
			for len(byDepth) <= depth {
				byDepth = append(byDepth, nil)
			}
			byDepth[depth] = append(byDepth[depth], l)
		}
	}
	for _, same := range slices.Backward(byDepth) {
		levels = append(levels, same...)
	}
	return levels, gone
}

func rootName(mgr *core.GroupQuotaManager) string {
	if tree := mgr.GetTreeID(); tree != "" {
		return extension.RootQuotaName + "@" + tree
	}
	return extension.RootQuotaName
}

// parentOf reads the name of the parent under the quota's lock: a change of the quota writes it there.
func parentOf(info *core.QuotaInfo) string {
	info.Lock()
	defer info.UnLock()
	return info.ParentName
}
