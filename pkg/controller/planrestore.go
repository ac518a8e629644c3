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

package controller

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// The templates of a job that waits are as its owner wrote them. What admission checks asked to write into them is
// taken out by what the unit says that they asked for: the record on the job may be forged. So the unit says it until
// it is out, and quota is not reserved for it before.

// restore takes out of the templates what resuming added, and then out of the unit what was asked for.
func (p *planner) restore() []Action {
	if p.Kind.Open(p.Job).TemplatesFixed() && (p.chargedElsewhere() || p.Kind.Open(p.Job).HasUpdates()) {
		return p.resetStart() // now, so that admission need not wait for it
	}
	if after, plain := p.restored(); after != nil {
		return []Action{PatchJob{Before: p.Job, After: after, Plain: plain}}
	}
	return p.forget()
}

// restored is the job with its templates and numbers of pods as its owner wrote them, nil when there is nothing to take
// back or the API server would refuse it. Plain has the numbers as they are: what is recorded of them may be forged.
func (p *planner) restored() (after, plain *unstructured.Unstructured) {
	after = p.Job.DeepCopy()
	templates := !p.Kind.Open(p.Job).TemplatesFixed() && p.Kind.Edit(after).RestoreTemplates(p.asked())
	if !p.Kind.Open(p.Job).HasCounts() {
		if templates {
			return after, nil
		}
		return nil, nil
	}
	plain = after.DeepCopy()
	p.Kind.Edit(plain).DropCounts()
	p.Kind.Edit(after).RestoreCounts()
	return after, plain
}

// forget takes out of a unit that waits what checks asked for, once the API server itself says that no template has it.
func (p *planner) forget() []Action {
	if len(p.asked()) == 0 || holdsQuota(p.Unit.Status.Phase) || p.Kind.Open(p.Job).HasUpdates() {
		return nil
	}
	if !p.Fresh {
		return []Action{ReadJob{}}
	}
	after := p.Unit.DeepCopy()
	for i := range after.Status.AdmissionChecks {
		after.Status.AdmissionChecks[i].PodSetUpdates = nil
	}
	return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
}
