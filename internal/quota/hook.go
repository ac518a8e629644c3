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
	corev1 "k8s.io/api/core/v1"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
	reservationutil "github.com/koordinator-sh/koordinator/pkg/util/reservation"
)

// hook is called by a GroupQuotaManager of ElasticQuota. There is one hook per manager. A manager can be thrown away
// and rebuilt, so a hook has no state of its own: everything is in the shared adapter.
//
// All methods except CheckPod are called with the manager's hierarchy lock held. They must not call the manager: that
// would lock again and stop the scheduler. They are O(1), except for a quota that appears or disappears with pods.
type hook struct {
	key    string
	shared *Adapter
}

var _ core.QuotaHookPlugin = &hook{}

// GetKey returns the key that the hook was configured with.
func (h *hook) GetKey() string { return h.key }

// IsQuotaUpdated is false: nothing of ours is part of a quota.
func (h *hook) IsQuotaUpdated(_, _ *core.QuotaInfo, _ *v1alpha1.ElasticQuota) bool { return false }

// PreQuotaUpdate does nothing.
func (h *hook) PreQuotaUpdate(_, _ *core.QuotaInfo, _ *v1alpha1.ElasticQuota, _ *core.QuotaUpdateState) {
}

// PostQuotaUpdate reports that a quota appeared, changed or disappeared. A quota that disappears silently takes its
// counted pods along: they count nowhere until ElasticQuota learns of each of them again. A quota that gets another
// parent disappears and appears again with them.
func (h *hook) PostQuotaUpdate(before, after *core.QuotaInfo, quota *v1alpha1.ElasticQuota, _ *core.QuotaUpdateState) {
	h.shared.quotaChanged(quota.Name)
	switch {
	case before != nil && after == nil:
		// Its use is taken off its ancestors, which are not on its path any more.
		h.shared.quotaChanged(before.ParentName)
		for _, pod := range before.GetPodThatIsAssigned() {
			h.shared.podLetGo(quota.Name, pod)
		}
	case before == nil && after != nil:
		for _, pod := range after.GetPodThatIsAssigned() {
			h.shared.podAssigned(quota.Name, pod, true)
		}
	}
}

// OnPodUpdated reports that a pod begins or ends to count in the used of the quota. Only a nil on one side means that.
// An assigned pod can lose its node name for a moment, if a status patch comes between reserve and bind. ElasticQuota
// calls before used moves, and for every change of a counted pod. Binding and statuses of such a pod move nothing.
func (h *hook) OnPodUpdated(quota string, oldPod, newPod *corev1.Pod) {
	switch {
	case oldPod == nil && newPod != nil:
		h.shared.podAssigned(quota, newPod, true)
	case oldPod != nil && newPod == nil:
		h.shared.podAssigned(quota, oldPod, false)
	case oldPod != nil && !sameUsed(oldPod, newPod):
		h.shared.quotaChanged(quota)
	}
}

// sameUsed says whether a pod that is counted before and after is counted with the same, as the manager counts.
func sameUsed(a, b *corev1.Pod) bool {
	return extension.IsPodNonPreemptible(a) == extension.IsPodNonPreemptible(b) &&
		(sameSpecRequests(&a.Spec, &b.Spec) || quotav1.Equals(core.PodRequests(a), core.PodRequests(b)))
}

// UpdateQuotaStatus changes nothing.
func (h *hook) UpdateQuotaStatus(_, _ *v1alpha1.ElasticQuota) *v1alpha1.ElasticQuota { return nil }

// IsReservation says whether a pod stands for a Reservation of Koordinator and not for a pod of the API server. The
// scheduler makes such pods itself and names them by the UID of the Reservation. The annotation alone proves nothing:
// anybody may write it on a pod, and nobody chooses the UID of a pod.
func IsReservation(pod *corev1.Pod) bool {
	return reservationutil.IsReservePod(pod) && pod.Name == string(pod.UID)
}

// CheckPod refuses a pod that would take quota which is reserved for an admitted job and is not part of one itself.
// It is called in PreFilter after ElasticQuota's own check, without locks.
func (h *hook) CheckPod(quota string, pod *corev1.Pod) error {
	if pod == nil || IsReservation(pod) {
		return nil
	}
	return h.shared.protection.check(pod, func() []level {
		plugin, _ := h.shared.captured()
		if plugin == nil {
			return nil
		}
		path, _ := pathOf(plugin, quota)
		return path
	})
}
