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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
)

// shadow is a GroupQuotaManager of our own that computes what the runtime of every quota of one tree would be if the
// jobs that wait had pods. Koordinator's algorithm gives the answer, so that it agrees with what ElasticQuota's PreFilter
// computes once the pods are there.
//
// It is fed by change: specs as their events come, the cluster total as a difference, and the pods of a quota as at most
// two aggregates, one that is assigned and one that is not. It is not safe for concurrent use.
type shadow struct {
	mgr   *core.GroupQuotaManager
	total corev1.ResourceList
	// specs holds what exists; quotas is the part of it that has been given to mgr: a quota is given only after its
	// parent, because a GroupQuotaManager that sees them the other way round loses the child's share.
	specs  map[string]*v1alpha1.ElasticQuota
	quotas map[string]*shadowQuota
	// asks holds what is known of the pods of a quota, given or not.
	asks map[string]ask
	// rescale says that min may be scaled otherwise than before. The manager scales the min of a quota only when that
	// quota is refreshed, and until then shares out with the old one.
	rescale bool
	// assignedMatters says that the used part of every quota changes runtimes, not only that of the built-in quotas.
	assignedMatters bool
}

// ask is what pods of a quota request: live pods (assigned and not), and jobs that have none yet.
type ask struct {
	assigned, live, demand corev1.ResourceList
}

type shadowQuota struct {
	spec              *v1alpha1.ElasticQuota
	assigned, pending *corev1.Pod
}

// newShadow starts with what a GroupQuotaManager starts with: the built-in quotas in the default tree.
func newShadow(tree string, args *config.ElasticQuotaArgs, assignedMatters bool) *shadow {
	s := &shadow{
		mgr:             core.NewGroupQuotaManager(tree, args.EnableMinQuotaScale, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax),
		specs:           map[string]*v1alpha1.ElasticQuota{},
		quotas:          map[string]*shadowQuota{},
		asks:            map[string]ask{},
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
	delta := quotav1.Subtract(total, s.total)
	if quotav1.IsZero(delta) {
		return false
	}
	s.mgr.UpdateClusterTotalResource(delta)
	s.total = total
	s.rescale = true
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
	if !s.has(extension.GetParentQuotaName(spec)) {
		s.take(name)
		return true
	}
	s.give(name, spec)
	return true
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
	q.spec = spec
	s.rescale = true
	// The only error of UpdateQuota is none: it refuses nothing.
	_ = s.mgr.UpdateQuota(spec)
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
	for _, child := range s.childrenOf(name) {
		s.take(child)
	}
	s.setPods(name, q, nil, nil)
	delete(s.quotas, name)
	s.rescale = true
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
	return s.applyAsk(name, q)
}

// applyAsk makes the aggregate pods of a quota say what is asked, up to max: what goes beyond changes no runtime, so a
// backlog above max costs nothing as it grows.
func (s *shadow) applyAsk(name string, q *shadowQuota) bool {
	a, max := s.asks[name], q.spec.Spec.Max
	if !s.assignedMatters && !builtIn(name) {
		return s.setPods(name, q, nil, capped(max, a.live, a.demand))
	}
	assigned := capped(max, a.assigned)
	pending := quotav1.SubtractWithNonNegativeResult(capped(max, a.live, a.demand), assigned)
	return s.setPods(name, q, assigned, pending)
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

// runtimes returns the runtime of a quota and of its ancestors without the root, by name. It is nil for a quota that
// the shadow has not been given (yet).
func (s *shadow) runtimes(name string) map[string]corev1.ResourceList {
	if s.quotas[name] == nil {
		return nil
	}
	s.rescaleAll()
	s.mgr.RefreshRuntime(name)
	found := map[string]corev1.ResourceList{}
	for at := name; s.quotas[at] != nil && found[at] == nil; at = extension.GetParentQuotaName(s.quotas[at].spec) {
		info := s.mgr.GetQuotaInfoByName(at)
		if info == nil {
			break
		}
		found[at] = quotav1.Mask(info.GetRuntime(), quotav1.ResourceNames(s.quotas[at].spec.Spec.Max))
	}
	return found
}

// rescaleAll lets every quota see the min that follows from the current specs and total, parents before children. The
// first pass scales, the second shares out with what was scaled. A change of demand does not come here: where it makes a
// parent's runtime fall below the sum of its children's min, the children that are not observed keep their old share of
// min until they are, in this manager as in the live one.
func (s *shadow) rescaleAll() {
	if !s.rescale {
		return
	}
	s.rescale = false
	names := slices.SortedFunc(maps.Keys(s.quotas), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.depth(a), s.depth(b)), cmp.Compare(a, b))
	})
	for range 2 {
		for _, name := range names {
			s.mgr.RefreshRuntime(name)
		}
	}
}

func (s *shadow) depth(name string) int {
	depth := 0
	for q := s.quotas[name]; q != nil && depth <= len(s.quotas); q = s.quotas[extension.GetParentQuotaName(q.spec)] {
		depth++
	}
	return depth
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
