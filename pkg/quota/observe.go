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
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// level is one quota on the way from a leaf to the root of its tree, as the live manager has it.
type level struct {
	mgr  *core.GroupQuotaManager
	info *core.QuotaInfo
	// name differs from info.Name only at the root of a tree other than the default one: every tree has a root of the
	// same name.
	name, parent string
	height       int
}

// Observe returns what the named quotas and all their ancestors use and may use now, each once, leaf before parent;
// gone lists the names that do not exist, or whose way to the root is broken.
//
// The caller moves its own reservations first and observes then. Every level looks its quota up again before it reads
// used: that takes the lock under which ElasticQuota reserves a pod, so a pod whose reservation was seen by the hook is
// in used, or counted twice for a moment, but never missing.
func (a *Adapter) Observe(names []string) (found []admission.Quota, gone []string) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	plugin, args := a.captured()
	if plugin == nil {
		return nil, names
	}
	levels := map[string]level{}
	var leaves []string
	for _, name := range names {
		path, ok := pathOf(plugin, name)
		if !ok {
			gone = append(gone, name)
			continue
		}
		leaves = append(leaves, path[0].name)
		for _, l := range path {
			levels[l.name] = l
		}
	}
	limits := a.observedLimits(plugin, args, names, leaves)
	for _, l := range slices.SortedFunc(maps.Values(levels), func(x, y level) int {
		return cmp.Or(cmp.Compare(y.height, x.height), cmp.Compare(x.name, y.name))
	}) {
		found = append(found, a.observe(l, args, limits))
	}
	return found, gone
}

func (a *Adapter) observe(l level, args *config.ElasticQuotaArgs, limits map[string]corev1.ResourceList) admission.Quota {
	q := admission.Quota{
		Name:               l.name,
		Parent:             l.parent,
		Used:               toList(l.info.GetUsed()),
		NonPreemptibleUsed: toList(l.info.GetNonPreemptibleUsed()),
	}
	if l.parent == "" {
		q.Max = totalOf(l.mgr)
		q.Limit = a.withMaxJobs(l.name, q.Max, nil)
		return q
	}
	min, max := l.info.GetMin(), l.info.GetMax()
	inMax := takeMaxJobs(min, max)
	q.Min = toList(min)
	q.Max = toList(max)
	q.Limit = q.Max
	if args.EnableRuntimeQuota && !builtIn(l.name) {
		q.Limit = runtimeLimit(max, limits[l.name])
	}
	a.protection.setLimit(l.name, q.Limit)
	q.Limit = a.withMaxJobs(l.name, q.Limit, inMax)
	return q
}

// runtimeLimit is the runtime for every resource that max names. A resource that the runtime does not name has none:
// the quota is not in the shadow yet, or nothing was ever asked of it.
func runtimeLimit(max, runtime corev1.ResourceList) resources.List {
	limit := make(corev1.ResourceList, len(max))
	for name := range max {
		limit[name] = runtime[name]
	}
	return toList(limit)
}

// totalOf is the cluster total of a tree. Every node has cpu and memory, so where there is no node there is none of them;
// of anything else an unnamed resource is not limited here.
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
	return toList(total)
}

// pathOf walks from a quota to the root of its tree. It is not ok if the quota, or a parent that it names, is missing.
func pathOf(plugin live, name string) ([]level, bool) {
	mgr := plugin.GetGroupQuotaManagerForQuota(name)
	if mgr == nil {
		return nil, false
	}
	var path []level
	seen := map[string]bool{}
	for at := name; ; {
		info := mgr.GetQuotaInfoByName(at)
		if info == nil || seen[at] {
			return nil, false
		}
		seen[at] = true
		if at == extension.RootQuotaName {
			path = append(path, level{mgr: mgr, info: info, name: rootName(mgr)})
			break
		}
		parent := parentOf(info)
		next := parent
		if next == extension.RootQuotaName {
			next = rootName(mgr)
		}
		path = append(path, level{mgr: mgr, info: info, name: at, parent: next})
		at = parent
	}
	for i := range path {
		path[i].height = len(path) - 1 - i
	}
	return path, true
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

// observedLimits refreshes the shadow as far as it is behind, and returns the runtime of the leaves and of their
// ancestors. Where max is the limit it does nothing.
func (a *Adapter) observedLimits(plugin live, args *config.ElasticQuotaArgs, names, leaves []string) map[string]corev1.ResourceList {
	if !args.EnableRuntimeQuota {
		return nil
	}
	a.shadowMu.Lock()
	changed := a.applySpecs(args)
	changed = a.applyTotals(plugin) || changed
	changed = a.applyLive(plugin, args, names) || changed
	limits := map[string]corev1.ResourceList{}
	for _, name := range leaves {
		if s := a.shadows[a.trees[name]]; s != nil && !builtIn(name) {
			maps.Copy(limits, s.runtimes(name))
		}
	}
	var others []string
	if changed {
		others = slices.DeleteFunc(a.withDemand(), func(name string) bool {
			_, asked := slices.BinarySearch(names, name)
			return asked
		})
	}
	a.shadowMu.Unlock()
	a.quotaChanged(others...)
	return limits
}

func (a *Adapter) applyTotals(plugin live) bool {
	changed := false
	for tree, s := range a.shadows {
		if mgr := plugin.GetGroupQuotaManagerForTree(tree); mgr != nil {
			changed = s.setTotal(mgr.GetClusterTotalResource()) || changed
		}
	}
	return changed
}

// applyLive reads again what live pods request: of the quotas that are asked for, and of those in which a pod came, went
// or changed.
func (a *Adapter) applyLive(plugin live, args *config.ElasticQuotaArgs, names []string) bool {
	a.mu.Lock()
	stale := a.stale
	if len(stale) > 0 {
		a.stale = map[string]bool{}
	}
	a.mu.Unlock()
	if len(stale) == 0 {
		stale = make(map[string]bool, len(names)+1)
	}
	for _, name := range names {
		stale[name] = true
	}
	// Pods whose quota does not exist are charged to the default quota, and everything is a share of what that leaves.
	stale[extension.DefaultQuotaName] = true
	changed := false
	for name := range stale {
		mgr := plugin.GetGroupQuotaManagerForQuota(name)
		if _, known := a.trees[name]; mgr == nil || (!known && !builtIn(name)) {
			// Not in a shadow yet. It is marked stale when its spec comes.
			continue
		}
		info := mgr.GetQuotaInfoByName(name)
		if info == nil {
			continue
		}
		s := a.shadowOf(a.trees[name], args)
		changed = s.setLive(name, info.GetSelfRequest(), info.GetSelfUsed()) || changed
	}
	return changed
}
