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

	"github.com/koordinator-sh/koordinator/apis/extension"
	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/cluster"
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

// builtIn quotas have their max as limit; what they use is taken off the cluster total that the others share.
func builtIn(name string) bool {
	return name == extension.DefaultQuotaName || name == extension.SystemQuotaName
}

// Adapter answers questions about the live quotas. It is safe for concurrent use.
type Adapter struct {
	captured func() (Live, *config.ElasticQuotaArgs)
	sink     atomic.Pointer[Sink]

	protection protection
	room       room

	// moving: the hook has spoken of pods since an observation has waited for used to move.
	moving atomic.Bool

	// builtInOpen: jobs may be admitted in Koordinator's default and system quota.
	builtInOpen atomic.Bool

	// maxJobs says how many jobs may be admitted in a quota and below, where its annotation does.
	maxJobs sync.Map // string -> int64

	// totals are those of the trees when their roots were last observed, by name of the root.
	totals sync.Map // string -> resources.List

	// more are the quotas of which was told that a pod more is there, since they were observed. Informer handlers write
	// them, so nothing else is done under mu.
	mu   sync.Mutex
	more map[string]bool
}

func newAdapter(captured func() (Live, *config.ElasticQuotaArgs)) *Adapter {
	return &Adapter{captured: captured, more: map[string]bool{}, room: room{cluster.NewNodes()}}
}

// OpenBuiltIn has jobs admitted in Koordinator's default and system quota, too. A job that names no quota is charged to
// the default one, which in most clusters has a max that nobody ever reaches. It is called before anything is observed.
func (a *Adapter) OpenBuiltIn() { a.builtInOpen.Store(true) }

// Subscribe sets the sink. Earlier events are not replayed.
func (a *Adapter) Subscribe(s Sink) { a.sink.Store(&s) }

func (a *Adapter) tell(what func(Sink)) {
	if s := a.sink.Load(); s != nil {
		what(*s)
	}
}

// podAssigned is called just before used moves: what ends is not room for others, not for a moment.
func (a *Adapter) podAssigned(quota string, pod *corev1.Pod, assigned bool) {
	a.moving.Store(true)
	moved := false
	if assigned {
		moved = a.room.run(pod)
	} else {
		moved = a.room.end(pod)
	}
	a.roomMoved(moved)
	a.tell(func(s Sink) { s.PodAssigned(quota, pod, assigned) })
}

// roomMoved tells it if what pods can use of the nodes is another amount. Only the root is limited by that, and what
// follows for others is computed.
func (a *Adapter) roomMoved(moved bool) {
	if moved {
		a.quotaChanged(extension.RootQuotaName)
	}
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

// noteSpec takes the newest spec of a quota; nil means that it is gone.
func (a *Adapter) noteSpec(name string, spec *eqv1alpha1.ElasticQuota) {
	a.noteMaxJobs(name, spec)
	a.quotaChanged(name)
}

// noteMoreRequested reports that a quota has only one more pod. It reports that once until the quota is observed.
func (a *Adapter) noteMoreRequested(name string) {
	a.mu.Lock()
	told := a.more[name]
	a.more[name] = true
	a.mu.Unlock()
	if !told {
		a.tell(func(s Sink) { s.MoreRequested(name) })
	}
}

// Resolve returns the quota that pods with these labels in this namespace are charged to, even if no quota of that name
// exists. The result is empty only if Koordinator's feature DisableDefaultQuota leaves such pods without a quota.
//
// Jobs can have two fallback labels that ElasticQuota does not know. When such a job is resumed, its pods get a label
// with the quota's name.
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

// awaitUsed returns when used has moved for all pods of which the hook has spoken. ElasticQuota speaks and then moves
// used under one lock, often as one of several readers. UnreservePod takes the lock as the writer, and waits for them.
func (a *Adapter) awaitUsed(plugin Live) {
	if a.moving.Swap(false) {
		for _, mgr := range managers(plugin) {
			mgr.UnreservePod("", nil)
		}
	}
}

func managers(plugin Live) []*core.GroupQuotaManager {
	return append(plugin.ListGroupQuotaManagersForQuotaTree(), plugin.GetGroupQuotaManagerForTree(""))
}
