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

package sim

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// variants replace parts by broken ones, to show that the checks can fail. Nil breaks nothing.
type variants struct {
	// Quotas wraps the adapter.
	Quotas func(quotawatch.Quotas) quotawatch.Quotas
	// NoPrecondition has the API apply patches whatever version they were made on.
	NoPrecondition bool
	// Unprotected pods outside of units take held quota, and quota that units take.
	Unprotected bool
	// Policies replace the orders of queues.
	Policies map[string]queue.Factory
	// Deaf schedulers do not hear of these units, or that they are gone.
	Deaf func(key string, gone bool) bool
	// OpenGate lets every pod pass.
	OpenGate bool
	// Usurp makes every scheduler take the lease, even from its holder.
	Usurp bool
	// NoCollector leaves units whose job is gone, and has controllers delete nothing.
	NoCollector bool
	// NoBackoff has the writers send again at once.
	NoBackoff bool
	// Patch changes what a process sends.
	Patch func(p *process, k kind, patch map[string]any)
	// Read changes what the controllers find in a unit.
	Read func(u *v1alpha1.QueueUnit)
	// PartsStandAlone has controllers find no owner of a job, NoKinship schedulers.
	PartsStandAlone, NoKinship bool
	// Verify changes the ledger's own report, and Places that of the core about places of units.
	Verify func([]ledger.Difference) []ledger.Difference
	Places func([]admission.Mismatch) []admission.Mismatch
	// Healed is called when the faults end.
	Healed func(w *world)
}

// setOutstanding tells the adapter what units hold beyond their pods.
type setOutstanding = func(quota string, outstanding, limit resources.List)

func (v *variants) quotas(q quotawatch.Quotas) quotawatch.Quotas {
	if v == nil || v.Quotas == nil {
		return q
	}
	return v.Quotas(q)
}

func (v *variants) outstanding(set setOutstanding) setOutstanding {
	if v == nil || !v.Unprotected {
		return set
	}
	return func(string, resources.List, resources.List) {}
}

func (v *variants) deaf(key string, gone bool) bool {
	return v != nil && v.Deaf != nil && v.Deaf(key, gone)
}

func (v *variants) patch(p *process, k kind, data []byte) []byte {
	if v == nil || v.Patch == nil {
		return data
	}
	patch := map[string]any{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return data
	}
	v.Patch(p, k, patch)
	if changed, err := json.Marshal(patch); err == nil {
		return changed
	}
	return data
}

func (v *variants) read(u *v1alpha1.QueueUnit) {
	if v != nil && v.Read != nil {
		v.Read(u)
	}
}

func (v *variants) readJob(job *unstructured.Unstructured) {
	if v != nil && v.PartsStandAlone {
		job.SetOwnerReferences(nil)
	}
}

func (v *variants) owner(job *object) *metav1.OwnerReference {
	if v != nil && v.NoKinship {
		return nil
	}
	return metav1.GetControllerOf(job.u)
}

func (v *variants) verify(found []ledger.Difference) []ledger.Difference {
	if v == nil || v.Verify == nil {
		return found
	}
	return v.Verify(found)
}

func (v *variants) places(found []admission.Mismatch) []admission.Mismatch {
	if v == nil || v.Places == nil {
		return found
	}
	return v.Places(found)
}

func (v *variants) afterHealing(w *world) {
	if v != nil && v.Healed != nil {
		v.Healed(w)
	}
}
