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
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// shadow is a GroupQuotaManager of our own that computes what the runtime of every quota of one tree would be if the
// jobs that wait had pods. What quotas request of their parents and what there is to share is Koordinator's answer, and
// shares repeats its last step, so that the limits agree with what ElasticQuota's PreFilter computes once the pods are
// there.
//
// It is fed by change: specs as their events come, the cluster total as a difference, and the pods of a quota as at
// most two aggregates, one that is assigned and one that is not. What changed is given to the manager when limits are
// asked for, so that demand which becomes pods within one step of the engine changes nothing. It is not safe for
// concurrent use.
type shadow struct {
	mgr   *core.GroupQuotaManager
	total corev1.ResourceList
	// specs holds what exists; quotas is the part of it that has been given to mgr: a quota is given only after its
	// parent, because a GroupQuotaManager that sees them the other way round loses the child's share.
	specs  map[string]*v1alpha1.ElasticQuota
	quotas map[string]*shadowQuota
	// asks holds what is known of the pods of a quota, given or not.
	asks map[string]ask
	// pending are the quotas whose asks the manager has not been given.
	pending map[string]bool
	// shares are the runtimes; nil before the first settle. rebuild says that specs changed since.
	shares  *shares
	rebuild bool
	// recount says that there may be another total to share.
	recount bool
	// scales says that min shrinks where there is less to share than all min together.
	scales bool
	// assignedMatters says that the used part of every quota changes runtimes, not only that of the built-in quotas.
	assignedMatters bool
}

// ask is what pods of a quota request: live pods (assigned and not), and jobs that have none yet; of a built-in quota
// only admitted jobs.
type ask struct {
	assigned, live, demand corev1.ResourceList
}

type shadowQuota struct {
	spec              *v1alpha1.ElasticQuota
	assigned, pending *corev1.Pod
	// What the two pods are to request.
	toAssign, toPend corev1.ResourceList
}

// newShadow starts with what a GroupQuotaManager starts with: the built-in quotas in the default tree.
func newShadow(tree string, args *config.ElasticQuotaArgs, assignedMatters bool) *shadow {
	s := &shadow{
		mgr: core.NewGroupQuotaManager(tree, args.EnableMinQuotaScale, args.SystemQuotaGroupMax,
			args.DefaultQuotaGroupMax),
		specs:           map[string]*v1alpha1.ElasticQuota{},
		quotas:          map[string]*shadowQuota{},
		asks:            map[string]ask{},
		pending:         map[string]bool{},
		rebuild:         true,
		scales:          args.EnableMinQuotaScale,
		assignedMatters: assignedMatters,
	}
	if tree == "" {
		s.quotas[extension.DefaultQuotaName] = startingQuota(extension.DefaultQuotaName, args.DefaultQuotaGroupMax)
		s.quotas[extension.SystemQuotaName] = startingQuota(extension.SystemQuotaName, args.SystemQuotaGroupMax)
	}
	return s
}

func startingQuota(name string, max corev1.ResourceList) *shadowQuota {
	return &shadowQuota{spec: &v1alpha1.ElasticQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ElasticQuotaSpec{Max: max},
	}}
}

// builtIn quotas have their max as limit; what they use is taken off the cluster total that the others share.
func builtIn(name string) bool {
	return name == extension.DefaultQuotaName || name == extension.SystemQuotaName
}

// setTotal makes total the cluster total. It says whether that changed anything.
func (s *shadow) setTotal(total corev1.ResourceList) bool {
	if quotav1.Equals(total, s.total) {
		return false
	}
	s.mgr.UpdateClusterTotalResource(quotav1.Subtract(total, s.total))
	s.total = total
	s.recount = true
	return true
}

// setSpec takes a new or changed quota; nil means that it is gone. It says whether runtimes may have changed.
func (s *shadow) setSpec(name string, spec *v1alpha1.ElasticQuota) bool {
	if name == extension.RootQuotaName {
		return false
	}
	old := s.specs[name]
	if spec == nil {
		delete(s.specs, name)
		s.take(name)
		return old != nil
	}
	if old != nil && sameSpec(old, spec) {
		s.specs[name] = spec
		return false
	}
	s.specs[name] = spec
	if parent := extension.GetParentQuotaName(spec); !s.has(parent) || s.isBelow(parent, name) {
		s.take(name)
		return true
	}
	s.give(name, spec)
	return true
}

// isBelow says whether a quota that was given is another one, or below it.
func (s *shadow) isBelow(name, other string) bool {
	for q := s.quotas[name]; q != nil && name != other; q = s.quotas[name] {
		name = extension.GetParentQuotaName(q.spec)
	}
	return name == other
}

// fill gives an empty shadow all its quotas at once, as ElasticQuota does when it starts: the manager looks at all that
// it has for each that comes alone.
func (s *shadow) fill(specs map[string]*v1alpha1.ElasticQuota) {
	below := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		parent := extension.GetParentQuotaName(specs[name])
		below[parent] = append(below[parent], name)
	}
	maps.Copy(s.specs, specs)
	given := slices.Clone(below[extension.RootQuotaName])
	for i := 0; i < len(given); i++ {
		name := given[i]
		s.mgr.UpdateQuotaInfo(specs[name])
		s.quotas[name] = &shadowQuota{spec: specs[name]}
		given = append(given, below[name]...)
	}
	s.mgr.ResetQuota()
	s.rebuild = true
	for _, name := range given {
		s.ask(name, s.quotas[name])
		s.applyAsk(name, s.quotas[name])
	}
}

func (s *shadow) has(name string) bool {
	return name == extension.RootQuotaName || s.quotas[name] != nil
}

// give hands a quota to the manager, and then the quotas that waited for it as their parent.
func (s *shadow) give(name string, spec *v1alpha1.ElasticQuota) {
	q := s.quotas[name]
	if q == nil {
		q = &shadowQuota{}
		s.quotas[name] = q
	}
	if q.spec != nil {
		// What is asked comes again behind the new spec, as it will in the live manager when pods come: a manager masks
		// requests by the names that max has at the time, and forgets to pass on what a changed min adds to them.
		s.setPods(name, q, nil, nil)
	}
	moves := q.spec != nil && extension.GetParentQuotaName(q.spec) != extension.GetParentQuotaName(spec)
	q.spec = spec
	s.rebuild = true
	// The only error of UpdateQuota is none: it refuses nothing.
	_ = s.mgr.UpdateQuota(spec)
	if moves && extension.IsParentQuota(spec) {
		// A manager that moves a parent of quotas forgets what its former siblings ask for: it takes off all that the
		// children of the parent ask for, and had added no more of it than the max of the parent. So it sums up anew.
		s.mgr.ResetQuota()
	}
	s.ask(name, q)
	s.applyAsk(name, q)
	for _, child := range s.childrenOf(name) {
		if s.quotas[child] == nil {
			s.give(child, s.specs[child])
		}
	}
}

// take removes a quota from the manager, its descendants first; they stay in specs until they are deleted themselves.
func (s *shadow) take(name string) {
	q := s.quotas[name]
	if q == nil {
		return
	}
	delete(s.quotas, name) // first, for parents may form a circle
	for _, child := range s.childrenOf(name) {
		s.take(child)
	}
	s.setPods(name, q, nil, nil)
	s.rebuild = true
	// It fails only for a quota that the manager does not have.
	_ = s.mgr.DeleteQuota(q.spec)
}

func (s *shadow) childrenOf(parent string) []string {
	var children []string
	for name, spec := range s.specs {
		if name != parent && extension.GetParentQuotaName(spec) == parent {
			children = append(children, name)
		}
	}
	slices.Sort(children)
	return children
}

// readLive is setLive with what the live quota says, of which it makes copies only where that has changed.
func (s *shadow) readLive(name string, info *core.QuotaInfo) bool {
	a := s.asks[name]
	live, assigned, changed := func() (live, assigned corev1.ResourceList, changed bool) {
		info.Lock()
		defer info.UnLock()
		live = info.CalculateInfo.SelfRequest
		if s.assignedMatters || builtIn(name) {
			assigned = info.CalculateInfo.SelfUsed
		}
		if quotav1.Equals(live, a.live) && quotav1.Equals(assigned, a.assigned) {
			return nil, nil, false
		}
		return live.DeepCopy(), assigned.DeepCopy(), true
	}()
	return changed && s.setLive(name, live, assigned)
}

// setLive takes what the live pods of a quota request: all of them, and those that are assigned. It says whether
// runtimes may have changed.
func (s *shadow) setLive(name string, request, assigned corev1.ResourceList) bool {
	a := s.asks[name]
	a.live, a.assigned = request, assigned
	return s.setAsk(name, a)
}

// setDemand takes what jobs of a quota will request beyond their live pods. It says whether runtimes may have changed.
//
// The built-in quotas are left out: their limit does not depend on it, and Koordinator deducts what they request, even
// unassigned, from the share of all others, so that jobs which only wait there would starve real quotas.
func (s *shadow) setDemand(name string, demand corev1.ResourceList) bool {
	if builtIn(name) {
		return false
	}
	a := s.asks[name]
	a.demand = demand
	return s.setAsk(name, a)
}

// setReserved takes what admitted jobs of a built-in quota will use beyond what its assigned pods do. Unlike what only
// waits there it is as good as used: it will be taken off what the others share.
func (s *shadow) setReserved(name string, reserved corev1.ResourceList) bool {
	a := s.asks[name]
	a.demand = reserved
	return s.setAsk(name, a)
}

func (s *shadow) setAsk(name string, a ask) bool {
	if quotav1.IsZero(a.live) && quotav1.IsZero(a.demand) && quotav1.IsZero(a.assigned) {
		delete(s.asks, name)
	} else {
		s.asks[name] = a
	}
	q := s.quotas[name]
	if q == nil {
		return false
	}
	if !s.ask(name, q) {
		return false
	}
	s.pending[name] = true
	return true
}

// ask decides what the aggregate pods of a quota are to say, up to max: what goes beyond changes no runtime, so a
// backlog above max costs nothing as it grows. It says whether that is something else than before.
func (s *shadow) ask(name string, q *shadowQuota) bool {
	a, max := s.asks[name], q.spec.Spec.Max
	var assigned corev1.ResourceList
	pending := capped(max, a.live, a.demand)
	if builtIn(name) {
		// Of the pods that are live and not assigned, some may be those for which the quota is reserved.
		assigned, pending = capped(max, a.assigned, a.demand), capped(max, a.live)
	} else if s.assignedMatters {
		assigned = capped(max, a.assigned)
	}
	if assigned != nil {
		pending = quotav1.RemoveZeros(quotav1.SubtractWithNonNegativeResult(pending, assigned))
	}
	if quotav1.Equals(assigned, q.toAssign) && quotav1.Equals(pending, q.toPend) {
		return false
	}
	q.toAssign, q.toPend = assigned, pending
	return true
}

// applyAsk makes the aggregate pods of a quota say what is asked.
func (s *shadow) applyAsk(name string, q *shadowQuota) bool {
	s.recount = s.recount || builtIn(name)
	return s.setPods(name, q, q.toAssign, q.toPend)
}

func (s *shadow) setPods(name string, q *shadowQuota, assigned, pending corev1.ResourceList) bool {
	a := s.setPod(name, &q.assigned, "assigned", assigned)
	b := s.setPod(name, &q.pending, "pending", pending)
	return a || b
}

func (s *shadow) setPod(quota string, pod **corev1.Pod, kind string, request corev1.ResourceList) bool {
	old := *pod
	switch {
	case quotav1.IsZero(request) && old == nil:
		return false
	case quotav1.IsZero(request):
		s.mgr.OnPodDelete(quota, old)
		*pod = nil
		return true
	case old != nil && quotav1.Equals(old.Spec.Containers[0].Resources.Requests, request):
		return false
	}
	next := aggregatePod(kind, request)
	if old == nil {
		s.mgr.OnPodAdd(quota, next)
	} else {
		s.mgr.OnPodUpdate(quota, quota, next, old)
	}
	*pod = next
	return true
}

func aggregatePod(kind string, request corev1.ResourceList) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shadow", Name: kind},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: request},
		}}},
	}
	if kind == "assigned" {
		pod.Spec.NodeName = "shadow"
	}
	return pod
}

// settle brings the limits up to date and returns the quotas whose limit is another one than at the last time, also
// those that came and went meanwhile.
func (s *shadow) settle() []string {
	for _, name := range slices.Sorted(maps.Keys(s.pending)) {
		if q := s.quotas[name]; q != nil && s.applyAsk(name, q) && !s.rebuild {
			s.shares.ask(name)
		}
	}
	clear(s.pending)
	var gone []string
	if s.rebuild {
		gone = s.build()
	}
	if s.recount {
		s.recount = false
		s.shares.setTotal(s.mgr.RefreshRuntime(extension.RootQuotaName))
	}
	moved := s.shares.settle()
	names := make([]string, 0, len(moved)+len(gone))
	for _, n := range moved {
		names = append(names, n.name)
	}
	return append(names, gone...)
}

// build makes the shares anew, with the limits of before to compare with.
func (s *shadow) build() (gone []string) {
	old := s.shares
	s.shares = newShares(s.mgr, s.quotas, s.scales)
	s.rebuild, s.recount = false, true
	if old == nil {
		return nil
	}
	for name, n := range old.byName {
		if next := s.shares.byName[name]; next != nil {
			next.limit = n.limit
		} else {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// limit is the runtime of a quota at the last settle, for every resource that its max names; not known for a quota that
// the shadow has not been given (yet).
func (s *shadow) limit(name string) (limit resources.List, known bool) {
	if s.shares == nil || s.shares.byName[name] == nil {
		return resources.List{}, false
	}
	return s.shares.byName[name].limit, true
}

// hasChildren says whether the limit of a quota bounds others.
func (s *shadow) hasChildren(name string) bool {
	n := s.shares.byName[name]
	return n != nil && len(n.children) > 0
}

// sameSpec compares what changes the arithmetic; everything else in an ElasticQuota, its status above all, is rewritten
// up to once a second and raises its generation each time.
func sameSpec(a, b *v1alpha1.ElasticQuota) bool {
	return extension.GetParentQuotaName(a) == extension.GetParentQuotaName(b) &&
		extension.IsParentQuota(a) == extension.IsParentQuota(b) &&
		extension.IsAllowLentResource(a) == extension.IsAllowLentResource(b) &&
		extension.GetQuotaTreeID(a) == extension.GetQuotaTreeID(b) &&
		quotav1.Equals(a.Spec.Min, b.Spec.Min) &&
		quotav1.Equals(a.Spec.Max, b.Spec.Max) &&
		quotav1.Equals(extension.GetSharedWeight(a), extension.GetSharedWeight(b))
}
