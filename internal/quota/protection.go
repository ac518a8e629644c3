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
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// protection keeps reserved quota of admitted jobs from all other pods. Its zero value protects nothing.
//
// The scheduling cycle asks it, the engine updates it, and neither waits for the other. It remembers each pod that it
// refused until there is room, and then returns the pod to the scheduling queue. ElasticQuota tries such a pod again
// only if a pod or a quota changes, and the end of a reservation changes neither.
type protection struct {
	reservations sync.Map     // string -> reservation, of quotas that have one
	reserved     atomic.Int64 // how many they are
	guard        atomic.Pointer[Guard]

	mu      sync.Mutex
	refused refusals
}

// reservation is the reserved amount in a quota and below it, beyond used, and the limit for it and all others.
type reservation struct{ outstanding, limit resources.List }

// mostTriedAgain bounds how many refused pods of a quota are returned at once. Each costs the scheduler a cycle, and
// anybody can create any number of them. The others follow with the next observation that finds room for them.
const mostTriedAgain = 32

// Guard is what protection asks and tells; all of it may be called from several goroutines.
type Guard struct {
	// Admitted says that a pod without a node belongs to an admitted job.
	Admitted func(*corev1.Pod) bool
	// Runs says that a pod on a node belongs to an admitted job.
	Runs func(*corev1.Pod) bool
	// TryAgain takes refused pods for which the reason may be over. It is called, without locks, by the callers of
	// SetOutstanding and Observe.
	TryAgain func([]types.NamespacedName)
	// Beyond counts attempts to schedule pods of admitted jobs that ElasticQuota's own check refuses.
	Beyond func(quota string, cause Cause, passes bool)
}

// Cause says why ElasticQuota refuses a pod of an admitted job.
type Cause string

const (
	// CauseUncounted: ElasticQuota's handler has not seen the pod yet, so what it asks for is not in the request that
	// bounds the runtime. The scheduling queue has a handler of its own, which may be ahead.
	CauseUncounted Cause = "Uncounted"
	// CauseLimit: runtime, or max, is too small now.
	CauseLimit Cause = "Limit"
)

// Protect makes reservations stand. Pods outside of admitted jobs cannot take them, and pods of admitted jobs get them
// even if the runtime has shrunk. Without it a reservation counts only for the admission of other jobs.
func (a *Adapter) Protect(g Guard) { a.protection.guard.Store(&g) }

// SetOutstanding sets the outstanding amount of admitted jobs in a quota and below it. It includes the amounts that
// jobs take from others. limit bounds these jobs and pods outside of jobs together.
func (a *Adapter) SetOutstanding(quota string, outstanding, limit resources.List) {
	p := &a.protection
	old := p.of(quota)
	if outstanding.IsZero() {
		p.reservations.Delete(quota)
	} else {
		p.reservations.Store(quota, reservation{outstanding, limit})
	}
	switch {
	case old.outstanding.IsZero() && !outstanding.IsZero():
		p.reserved.Add(1)
	case !old.outstanding.IsZero() && outstanding.IsZero():
		p.reserved.Add(-1)
	}
	if (anyBelow(outstanding, old.outstanding) || anyBelow(old.limit, limit)) && p.refusedIn(quota) {
		if info := a.infoOf(quota); info != nil {
			p.release(quota, usedOf(info))
		}
	}
}

// infoOf is what ElasticQuota knows of a quota, nil if it knows none.
func (a *Adapter) infoOf(quota string) *core.QuotaInfo {
	plugin, _ := a.captured()
	if plugin == nil {
		return nil
	}
	mgr := plugin.GetGroupQuotaManagerForQuota(quota)
	if mgr == nil {
		return nil
	}
	return mgr.GetQuotaInfoByName(quota)
}

// check says why a pod must not be scheduled now. path returns the levels from the pod's quota up, as pathOf does.
func (p *protection) check(pod *corev1.Pod, path func() []level) error {
	quota, err := p.refuses(pod, path)
	for err != nil {
		// Remember first and ask again then: a reservation that ends between the two is seen either here or by release.
		p.remember(quota, pod, toList(core.PodRequests(pod)))
		before := quota
		if quota, err = p.refuses(pod, path); err != nil && quota == before {
			return err
		}
		p.forget(pod)
	}
	return nil
}

// refuses goes from the leaf up. Reserved quota of a parent is protected too, whether ElasticQuota looks at parents or
// not. The total at the top is protected only while a job takes from others: capacity that becomes free on nodes is for
// that job. Koordinator's own quotas are not part of the total.
func (p *protection) refuses(pod *corev1.Pod, path func() []level) (quota string, err error) {
	guard := p.guard.Load()
	if guard == nil || p.reserved.Load() == 0 || guard.Admitted(pod) {
		return "", nil
	}
	request := toList(core.PodRequests(pod))
	levels := path()
	for _, l := range levels {
		if l.parent == "" && builtIn(levels[0].name) {
			break
		}
		if p.of(l.name).outstanding.IsZero() {
			continue
		}
		if err := p.keeps(l.name, request, usedOf(l.info)); err != nil {
			return l.name, err
		}
	}
	return "", nil
}

// keeps returns an error if a request would use reserved amounts of one quota.
func (p *protection) keeps(quota string, request, used resources.List) error {
	r := p.of(quota)
	for _, item := range request.Items() {
		reserved, _ := r.outstanding.Get(item.Name)
		most, limited := r.limit.Get(item.Name)
		taken, _ := used.Get(item.Name)
		if item.Amount <= 0 || reserved <= 0 || !limited {
			continue
		}
		if item.Amount > resources.SaturatingSub(resources.SaturatingSub(most, taken), reserved) {
			return fmt.Errorf("quota %s is reserved for admitted jobs: %s used %d + reserved %d + requested %d > limit %d",
				quota, item.Name, taken, reserved, item.Amount, most)
		}
	}
	return nil
}

// covers says whether at least this much is reserved in the quota.
func (p *protection) covers(quota string, request corev1.ResourceList) bool {
	return !anyBelow(p.of(quota).outstanding, toList(request))
}

// remember the requests of a pod for resources that the quota limits: a pod may request anything.
func (p *protection) remember(quota string, pod *corev1.Pod, request resources.List) {
	request = within(request, p.of(quota).limit)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused.add(quota, podName(pod), request)
}

func within(request, limit resources.List) resources.List {
	amounts := make(map[string]int64, limit.Len())
	for _, item := range limit.Items() {
		if amount, asked := request.Get(item.Name); asked {
			amounts[item.Name] = amount
		}
	}
	return resources.FromMap(amounts)
}

func (p *protection) refusedIn(quota string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.refused.pods[quota]) > 0
}

// forget a pod that is not refused any more, or is gone.
func (p *protection) forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused.remove(podName(pod))
}

// release returns refused pods of a quota that find room now, each for itself. If others take the room first, check
// refuses the pod again.
func (p *protection) release(quota string, used resources.List) {
	p.mu.Lock()
	pods := p.refused.take(quota, mostTriedAgain, func(request resources.List) bool {
		return p.keeps(quota, request, used) == nil
	})
	p.mu.Unlock()
	if guard := p.guard.Load(); len(pods) > 0 && guard != nil {
		guard.TryAgain(pods)
	}
}

// refusals are the refused pods, by the reserved quota. Anybody may create such pods. So a refusal keeps only the name
// of a pod and its requests of limited resources, until the pod is gone.
type refusals struct {
	pods   map[string]map[types.NamespacedName]resources.List
	quotas map[types.NamespacedName]string
}

func (r *refusals) add(quota string, pod types.NamespacedName, request resources.List) {
	r.remove(pod)
	if r.pods == nil {
		r.pods, r.quotas = map[string]map[types.NamespacedName]resources.List{}, map[types.NamespacedName]string{}
	}
	if r.pods[quota] == nil {
		r.pods[quota] = map[types.NamespacedName]resources.List{}
	}
	r.pods[quota][pod], r.quotas[pod] = request, quota
}

func (r *refusals) remove(pod types.NamespacedName) {
	quota, ok := r.quotas[pod]
	if !ok {
		return
	}
	delete(r.quotas, pod)
	delete(r.pods[quota], pod)
	if len(r.pods[quota]) == 0 {
		delete(r.pods, quota)
	}
}

// take removes pods of a quota whose request fits, so many at most, and returns them.
func (r *refusals) take(quota string, most int, fits func(resources.List) bool) (taken []types.NamespacedName) {
	for pod, request := range r.pods[quota] {
		if len(taken) == most {
			break
		}
		if fits(request) {
			taken = append(taken, pod)
		}
	}
	for _, pod := range taken {
		r.remove(pod)
	}
	return taken
}

func podName(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (p *protection) of(quota string) reservation {
	value, _ := p.reservations.Load(quota)
	r, _ := value.(reservation)
	return r
}

// anyBelow says whether a has less than b of some resource.
func anyBelow(a, b resources.List) bool {
	for _, item := range b.Items() {
		if amount, _ := a.Get(item.Name); amount < item.Amount {
			return true
		}
	}
	return false
}
