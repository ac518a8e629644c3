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
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/koordinator-sh/koordinator/apis/extension"
	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/features"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Sink takes what happens to quotas. It is called under Koordinator's locks and from informer goroutines: every method
// must be O(1) and must not block. The events of one quota are hints to observe it, not a log of it.
type Sink interface {
	// PodAssigned says that the pod begins (true) or ends (false) to count in used of the quota, just before it does.
	PodAssigned(quota string, pod *corev1.Pod, assigned bool)
	// PodLetGo says that the pod ends to count in used of the quota because that goes. It counts nowhere then, also once
	// a quota of that name is there again, until PodAssigned speaks of it.
	PodLetGo(quota string, pod *corev1.Pod)
	// QuotaChanged says that used, limits or existence of these quotas may have changed.
	QuotaChanged(names ...string)
	// MoreRequested says that a pod came that asks for a part of this quota: limits of others may have become smaller.
	MoreRequested(name string)
	// TotalChanged says that the cluster total may have changed, and with it every limit.
	TotalChanged()
	// MappingChanged says that namespaces may be charged to other quotas than before.
	MappingChanged()
}

// Adapter answers questions about the live quotas. It is safe for concurrent use.
type Adapter struct {
	captured func() (Live, *config.ElasticQuotaArgs)
	sink     atomic.Pointer[Sink]

	protection protection

	// builtInOpen: jobs may be admitted in Koordinator's default and system quota.
	builtInOpen atomic.Bool

	// maxJobs says how many jobs may be admitted in a quota and below, where its annotation does.
	maxJobs sync.Map // string -> int64

	// totals are those of the trees when their roots were last observed, by name of the root.
	totals sync.Map // string -> resources.List

	// Changes that the shadow has not been given yet. Informer handlers write them, so nothing else is done under mu.
	mu    sync.Mutex
	specs map[string]specChange
	stale map[string]bool

	// observing guards last, the last observation of each quota. Order: observing, then shadowMu.
	observing sync.Mutex
	last      map[string]admission.Quota

	// shadowMu guards the shadows, one per quota tree, and what belongs to them. Order: shadowMu, then mu.
	shadowMu sync.Mutex
	shadows  map[string]*shadow
	trees    map[string]string // quota -> tree that its shadow is in
	demands  map[string]corev1.ResourceList
	// moved are the quotas whose limit has changed since it was last observed.
	moved map[string]bool
}

// specChange is the newest spec of a quota; spec nil means that it is gone.
type specChange struct {
	tree string
	spec *eqv1alpha1.ElasticQuota
}

func newAdapter(captured func() (Live, *config.ElasticQuotaArgs)) *Adapter {
	return &Adapter{
		captured: captured,
		specs:    map[string]specChange{},
		stale:    map[string]bool{},
		shadows:  map[string]*shadow{},
		trees:    map[string]string{},
		demands:  map[string]corev1.ResourceList{},
		moved:    map[string]bool{},
		last:     map[string]admission.Quota{},
	}
}

// OpenBuiltIn has jobs admitted in Koordinator's default and system quota, too. Whoever names no quota is charged to
// the default one, which in most clusters has a max that nobody ever reaches. It is called before anything is observed.
func (a *Adapter) OpenBuiltIn() { a.builtInOpen.Store(true) }

// Subscribe sets the sink. What happened before is not replayed.
func (a *Adapter) Subscribe(s Sink) { a.sink.Store(&s) }

func (a *Adapter) tell(what func(Sink)) {
	if s := a.sink.Load(); s != nil {
		what(*s)
	}
}

func (a *Adapter) podAssigned(quota string, pod *corev1.Pod, assigned bool) {
	a.tell(func(s Sink) { s.PodAssigned(quota, pod, assigned) })
}

func (a *Adapter) podLetGo(quota string, pod *corev1.Pod) {
	a.tell(func(s Sink) { s.PodLetGo(quota, pod) })
}

func (a *Adapter) quotaChanged(names ...string) {
	if len(names) > 0 {
		a.tell(func(s Sink) { s.QuotaChanged(names...) })
	}
}

func (a *Adapter) mappingChanged() { a.tell(func(s Sink) { s.MappingChanged() }) }

func (a *Adapter) totalChanged() { a.tell(func(s Sink) { s.TotalChanged() }) }

func (a *Adapter) noteSpec(name, tree string, spec *eqv1alpha1.ElasticQuota) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.MultiQuotaTree) {
		tree = ""
	}
	a.mu.Lock()
	a.specs[name] = specChange{tree: tree, spec: spec}
	a.mu.Unlock()
	a.noteMaxJobs(name, spec)
	a.quotaChanged(name)
}

func (a *Adapter) noteRequests(names ...string) {
	a.mu.Lock()
	for _, name := range names {
		a.stale[name] = true
	}
	a.mu.Unlock()
	a.quotaChanged(names...)
}

// noteMoreRequested is noteRequests of one quota in which nothing but a pod more is. It is told once until it is
// observed.
func (a *Adapter) noteMoreRequested(name string) {
	a.mu.Lock()
	told := a.stale[name]
	a.stale[name] = true
	a.mu.Unlock()
	if !told {
		a.tell(func(s Sink) { s.MoreRequested(name) })
	}
}

// Resolve returns the quota that pods with these labels in this namespace are charged to, also if none of that name
// exists. It is empty only where Koordinator's feature DisableDefaultQuota leaves such pods without a quota.
//
// The two fallback labels are read for jobs; ElasticQuota does not know them, so whoever resumes such a job labels its
// pods with the quota's name.
func (a *Adapter) Resolve(namespace string, labels map[string]string) string {
	for _, key := range v1alpha1.QuotaLabels {
		if name := labels[key]; name != "" {
			return name
		}
	}
	plugin, _ := a.captured()
	if plugin == nil {
		return ""
	}
	return plugin.GetQuotaName(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
}

// Mapped says whether pods of the namespace are charged to a quota without a label of theirs. Koordinator's own do not
// count. It may be called by any goroutine.
func (a *Adapter) Mapped(namespace string) bool {
	switch a.Resolve(namespace, nil) {
	case "", extension.DefaultQuotaName, extension.SystemQuotaName, extension.RootQuotaName:
		return false
	default:
		return true
	}
}

// All returns the names of all quotas, sorted, without the root.
func (a *Adapter) All() []string {
	plugin, _ := a.captured()
	if plugin == nil {
		return nil
	}
	names := map[string]bool{}
	for _, mgr := range managers(plugin) {
		for name := range mgr.GetAllQuotaNames() {
			names[name] = true
		}
	}
	delete(names, extension.RootQuotaName)
	return slices.Sorted(maps.Keys(names))
}

func managers(plugin Live) []*core.GroupQuotaManager {
	return append(plugin.ListGroupQuotaManagersForQuotaTree(), plugin.GetGroupQuotaManagerForTree(""))
}

// SetDemand says what jobs of a quota will request beyond their live pods. It has an effect only where runtime is the
// limit. It is true if limits may change by it; observing the quota brings the other limits along.
func (a *Adapter) SetDemand(quota string, demand resources.List) bool {
	plugin, args := a.captured()
	if plugin == nil || !args.EnableRuntimeQuota {
		return false
	}
	a.shadowMu.Lock()
	defer a.shadowMu.Unlock()
	list := toResourceList(demand)
	_, had := a.demands[quota]
	if demand.IsZero() {
		delete(a.demands, quota)
	} else {
		a.demands[quota] = list
	}
	a.applySpecs(args)
	s := a.shadows[a.trees[quota]]
	// Nobody was told of the limit while nothing was asked.
	return s != nil && (s.setDemand(quota, list) || (!had && !demand.IsZero()))
}

// setReserved says what admitted jobs hold in a built-in quota beyond what is used there. It is taken off what all
// others share, now and not only when the pods come.
func (a *Adapter) setReserved(quota string, reserved resources.List) {
	plugin, args := a.captured()
	if plugin == nil || !args.EnableRuntimeQuota {
		return
	}
	a.shadowMu.Lock()
	changed := a.shadowOf("", args).setReserved(quota, toResourceList(reserved))
	a.shadowMu.Unlock()
	if changed {
		a.quotaChanged(quota)
	}
}

// applySpecs gives the shadows the specs that came since the last time.
func (a *Adapter) applySpecs(args *config.ElasticQuotaArgs) {
	a.mu.Lock()
	specs := a.specs
	if len(specs) > 0 {
		a.specs = map[string]specChange{}
	}
	a.mu.Unlock()
	first := map[*shadow]map[string]*eqv1alpha1.ElasticQuota{}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		change := specs[name]
		if tree, ok := a.trees[name]; ok && (tree != change.tree || change.spec == nil) {
			a.shadows[tree].setSpec(name, nil)
			delete(a.trees, name)
		}
		if change.spec == nil {
			a.protection.limits.Delete(name)
			continue
		}
		a.trees[name] = change.tree
		s := a.shadowOf(change.tree, args)
		if _, known := s.asks[name]; !known {
			s.asks[name] = ask{demand: a.demands[name]}
		}
		a.markStale(name)
		if first[s] == nil && len(s.specs) == 0 {
			first[s] = map[string]*eqv1alpha1.ElasticQuota{}
		}
		if first[s] == nil || builtIn(name) || name == extension.RootQuotaName {
			s.setSpec(name, change.spec)
			continue
		}
		first[s][name] = change.spec
	}
	for s, specs := range first {
		if len(specs) > 0 {
			s.fill(specs)
		}
	}
}

func (a *Adapter) shadowOf(tree string, args *config.ElasticQuotaArgs) *shadow {
	s := a.shadows[tree]
	if s == nil {
		s = newShadow(tree, args, utilfeature.DefaultFeatureGate.Enabled(features.ElasticQuotaGuaranteeUsage))
		a.shadows[tree] = s
	}
	return s
}

func (a *Adapter) markStale(name string) {
	a.mu.Lock()
	a.stale[name] = true
	a.mu.Unlock()
}
