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

package engine

import "time"

// applyReleases takes, between the reading of used and the decision, what the hook has said since the last drain about
// pods that the ledger has as counted in used: they are not, until the next step says otherwise.
//
// Used is read without a lock that spans the mailbox. The hook says that a pod ends to count before used falls, so if
// it spoke after the mailbox was drained and used was read after it fell, the pod would be missing from both, and what
// its unit still holds would be given away a second time (I1). A pod that began to count since the drain is left alone:
// it is in the ledger still, and may be in used already. The events stay in the mailbox for the next step.
func (e *Engine) applyReleases(now time.Time) { e.pods.release(now, e.box.assignsWaiting()) }

// assignsWaiting lists the pods of which the hook has spoken since the last drain.
func (m *mailbox) assignsWaiting() []assignKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var waiting []assignKey
	for _, it := range m.batch.assigns.items {
		waiting = append(waiting, it.key)
	}
	return waiting
}
