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
	"strings"

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
	// runtime is the one of the shadow, where it knows the quota; promised is that, or min where min is more.
	runtime, promised resources.List
}

// Observe returns what the named quotas and all their ancestors use and may use now, each once, leaf before parent;
// gone lists the names that do not exist, or whose way to the root is broken. Quotas whose limit has changed since they
// were last observed come along, if jobs wait in them or hold them, or if they have children.
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
	levels, gone := levelsOf(plugin, names)
	a.forget(gone)
	if !args.EnableRuntimeQuota {
		a.forgetSpecs()
		found = make([]admission.Quota, 0, len(levels))
		for i := range levels {
			found = append(found, a.observe(&levels[i], false))
		}
		return found, gone
	}
	a.observing.Lock()
	defer a.observing.Unlock()
	moved := a.refresh(plugin, args, names, levels)
	found = make([]admission.Quota, 0, len(levels)+len(moved))
	for i := range levels {
		q := a.observe(&levels[i], true)
		a.last[q.Name] = q
		found = append(found, q)
	}
	for _, name := range gone {
		delete(a.last, name)
	}
	for _, m := range moved {
		// Only its limit is another one: whatever else changes in a quota is told by name.
		q, ok := a.last[m.name]
		if !ok {
			continue
		}
		jobs, limited := q.Limit.Get(resources.Jobs)
		q.Limit = runtimeLimit(q.Max, m.runtime)
		a.protection.observe(q.Name, m.keptFrom(q.Max, q.Limit), q.Used)
		if limited {
			q.Limit = q.Limit.Add(resources.FromMap(map[string]int64{resources.Jobs: jobs}))
		}
		a.last[m.name] = q
		found = append(found, q)
	}
	a.shadowMu.Lock()
	clear(a.moved)
	a.shadowMu.Unlock()
	return found, gone
}

// forget what is remembered of quotas that do not exist, whether they ever did or not.
func (a *Adapter) forget(gone []string) {
	if len(gone) == 0 {
		return
	}
	a.mu.Lock()
	for _, name := range gone {
		delete(a.stale, name)
	}
	a.mu.Unlock()
	for _, name := range gone {
		a.protection.limits.Delete(name)
	}
}

// forgetSpecs drops what would be given to shadows: where runtime does not limit there are none.
func (a *Adapter) forgetSpecs() {
	a.mu.Lock()
	clear(a.specs)
	a.mu.Unlock()
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

func (a *Adapter) observe(l *level, byRuntime bool) admission.Quota {
	q, inMax := l.read(byRuntime)
	if l.parent == "" {
		q.Max = totalOf(l.mgr)
		a.totals.Store(l.name, q.Max)
		q.Limit = a.withMaxJobs(l.name, q.Max, nil)
		return q
	}
	q.Limit = q.Max
	q.Closed = builtIn(l.name) && !a.builtInOpen.Load()
	q.Shared = byRuntime && !builtIn(l.name)
	if q.Shared {
		q.Limit = runtimeLimit(q.Max, l.runtime)
	}
	kept := q.Limit
	if q.Shared {
		kept = l.keptFrom(q.Max, q.Limit)
	}
	a.protection.observe(l.name, kept, q.Used)
	q.Limit = a.withMaxJobs(l.name, q.Limit, inMax)
	return q
}

// read takes what the quota says, all at once, and the number of jobs that its max names. It reads under the quota's
// lock what a getter would make a copy of: most of the cost of an observation was these copies.
func (l *level) read(byRuntime bool) (q admission.Quota, inMax *resource.Quantity) {
	l.info.Lock()
	defer l.info.UnLock()
	info := &l.info.CalculateInfo
	q = admission.Quota{
		Name: l.name, Parent: l.parent, Used: toList(info.Used), NonPreemptibleUsed: toList(info.NonPreemptibleUsed),
	}
	if l.parent == "" {
		return q, nil
	}
	if n, ok := info.Max[resources.Jobs]; ok {
		inMax = &n
	}
	// ElasticQuota counts nothing that max does not name, against min neither.
	q.Min, q.Max = toListOf(info.Min, info.Max), toListOf(info.Max, info.Max)
	if byRuntime {
		q.Requested, q.KeepsMin = toListOf(info.SelfRequest, info.Max), !l.info.AllowLentResource
	}
	return q, inMax
}

// usedOf is what pods of a quota and below it use.
func usedOf(info *core.QuotaInfo) resources.List {
	info.Lock()
	defer info.UnLock()
	return toList(info.CalculateInfo.Used)
}

// keptFrom is the limit that pods outside of admitted jobs are measured against: what such a pod asks for is not in the
// runtime yet, and up to min it will be.
func (l *level) keptFrom(max, limit resources.List) resources.List {
	if l.promised.Same(l.runtime) {
		return limit
	}
	return runtimeLimit(max, l.promised)
}

// runtimeLimit is the runtime for every resource that max names. A resource that the runtime does not name has none:
// the quota is not in the shadow yet, or another max is.
func runtimeLimit(max, runtime resources.List) resources.List {
	limit := make([]resources.Item, 0, max.Len())
	for _, item := range max.Items() {
		amount, _ := runtime.Get(item.Name)
		limit = append(limit, resources.Item{Name: item.Name, Amount: amount})
	}
	return resources.FromSorted(limit)
}

// totalOf is the cluster total of a tree. Every node has cpu and memory, so where there is no node there is none of
// them; of anything else an unnamed resource is not limited here.
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

// pathOf walks from a quota to the root of its tree. It is not ok, and the path ends before the root, if the quota, or
// a parent that it names, is missing or comes twice.
func pathOf(plugin Live, name string) ([]level, bool) {
	path, _, ok := pathTo(plugin, name, nil)
	return path, ok
}

// pathTo walks from a quota up to the first level whose depth is known, and returns what is below that and the depth;
// -1 if it came to the root.
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

// refresh brings the shadows up to date, sets the runtimes of the levels and returns the other quotas whose runtime has
// changed since they were observed and for which that matters.
func (a *Adapter) refresh(plugin Live, args *config.ElasticQuotaArgs, names []string, levels []level) []level {
	a.shadowMu.Lock()
	defer a.shadowMu.Unlock()
	a.applySpecs(args)
	a.applyLive(plugin, args, names)
	for tree, s := range a.shadows {
		a.applyTotal(plugin, tree, s)
		for _, name := range s.settle() {
			a.moved[name] = true
		}
	}
	observed := make(map[string]bool, len(levels))
	for i := range levels {
		l := &levels[i]
		l.runtime, l.promised = a.runtimeOf(l.name)
		observed[l.name] = true
	}
	moved := make([]level, 0, len(a.moved))
	for name := range a.moved {
		if !observed[name] && !builtIn(name) && a.concerned(name) {
			l := level{name: name}
			l.runtime, l.promised = a.runtimeOf(name)
			moved = append(moved, l)
		}
	}
	slices.SortFunc(moved, func(x, y level) int { return strings.Compare(x.name, y.name) })
	return moved
}

func (a *Adapter) runtimeOf(name string) (runtime, promised resources.List) {
	if s := a.shadows[a.trees[name]]; s != nil {
		if runtime, known := s.limit(name); known {
			return runtime, s.shares.byName[name].promised()
		}
	}
	return resources.List{}, resources.List{}
}

// concerned says whether somebody waits for the limit of a quota or relies on it. Of all others it is told when jobs
// come.
func (a *Adapter) concerned(name string) bool {
	if _, waits := a.demands[name]; waits {
		return true
	}
	if _, holds := a.protection.outstanding.Load(name); holds {
		return true
	}
	s := a.shadows[a.trees[name]]
	return s != nil && s.hasChildren(name)
}

func (a *Adapter) applyTotal(plugin Live, tree string, s *shadow) {
	if mgr := plugin.GetGroupQuotaManagerForTree(tree); mgr != nil {
		s.setTotal(mgr.GetClusterTotalResource())
	}
}

// applyLive reads again what live pods request: of the quotas that are asked for, and of those in which a pod came,
// went or changed.
func (a *Adapter) applyLive(plugin Live, args *config.ElasticQuotaArgs, names []string) {
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
		a.shadowOf(a.trees[name], args).readLive(name, info)
	}
}
