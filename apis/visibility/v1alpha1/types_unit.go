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

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unit is the state of one QueueUnit, waiting or not. It has the name of that.
//
// +kubebuilder:object:root=true
type Unit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	Status            UnitStatus `json:"status"`
}

// UnitList is a list of units. Only a single unit has its shortages, and the reason with all numbers.
//
// +kubebuilder:object:root=true
type UnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []Unit `json:"items"`
}

// UnitStatus is what there is to say about a unit.
type UnitStatus struct {
	// state in one word: Pending, Backoff, Deactivated, Reserved, Admitted, Running, Succeeded or Failed.
	State string `json:"state,omitempty"`
	// kind of the job, for example Job.v1.batch; absent for a unit without a job.
	Kind string `json:"kind,omitempty"`
	// job is the name of the job.
	Job string `json:"job,omitempty"`
	// attempts is the number of admissions so far.
	Attempts int64 `json:"attempts,omitempty"`
	// phase of the unit.
	Phase string `json:"phase"`
	// admittedAt is the time of the last admission of a unit that holds quota.
	AdmittedAt *metav1.Time `json:"admittedAt,omitempty"`
	// queue that it is in.
	Queue string `json:"queue"`
	// quota that it is charged to.
	Quota string `json:"quota"`
	// priority by which the policy may order it.
	Priority int32 `json:"priority"`
	// position in the queue, from 1; absent for a unit that is not in line.
	Position int32 `json:"position,omitempty"`
	// waiting is the number of units in that line.
	Waiting int32 `json:"waiting,omitempty"`
	// first is the unit at the front, as namespace/name, if that is another one that the reader may know of.
	First string `json:"first,omitempty"`
	// reason why it waits.
	Reason string `json:"reason,omitempty"`
	// message is the reason in words.
	Message string `json:"message,omitempty"`
	// remarks are the part of message about loans, preemption and other quotas that the unit lists.
	Remarks string `json:"remarks,omitempty"`
	// notBefore is when the reason is over though nothing happens, as in a back-off.
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// observed: the queue does nothing about the job. reason is why it would wait.
	Observed bool `json:"observed,omitempty"`
	// shortages are all that a waiting unit lacks, its own quota first.
	Shortages []Shortage `json:"shortages,omitempty"`
	// holders hold what the unit is short of, at the level that decides. They are absent if the end of no unit helps.
	Holders *Holders `json:"holders,omitempty"`
	// dryRun is what the unit would take if its queue had no dryRun. Of units that ask for the same, the first one has
	// it. Only the replica that decides knows it.
	DryRun *DryRun `json:"dryRun,omitempty"`
	// writing says that a decision about the unit is on its way to the API server.
	Writing bool `json:"writing,omitempty"`
	// requested by the unit.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// held while the unit is admitted.
	Held corev1.ResourceList `json:"held,omitempty"`
	// outstanding is the part of held that no pod on a node uses yet.
	Outstanding corev1.ResourceList `json:"outstanding,omitempty"`
	// losesQuotaAt is when a time-out takes the quota of the unit back if its job goes on as it does now.
	LosesQuotaAt *metav1.Time `json:"losesQuotaAt,omitempty"`
	// losesQuotaFor is the reason of that time-out, for example IdleReservation.
	LosesQuotaFor string `json:"losesQuotaFor,omitempty"`
}

// DryRun is what a unit would take if its queue had no dryRun.
type DryRun struct {
	// units is the number of units that would lose what they hold.
	Units int32 `json:"units"`
	// holds are the first 100 of those, each as UID/ATTEMPTS, as in status.preemption of a QueueUnit.
	Holds []string `json:"holds"`
}

// Shortage is one resource on one level of the quota tree of which there is too little for a unit. Where bound is min,
// all amounts are of what is non-preemptible.
type Shortage struct {
	// level of the quota tree.
	Level string `json:"level"`
	// resource of which there is too little.
	Resource string `json:"resource"`
	// bound is the kind of limit. It is max or min of the quota, runtime (its fair share, below max), or the total of the
	// cluster. It is rightful if the limit is the amount that the quota can get while others use their guarantees.
	Bound string `json:"bound"`
	// binds marks the shortage that reason and message are about.
	Binds bool `json:"binds,omitempty"`
	// neverFits marks one that waiting does not help.
	NeverFits bool `json:"neverFits,omitempty"`
	// limit of used and reserved together.
	Limit resource.Quantity `json:"limit"`
	// max of the level, if it names the resource.
	Max *resource.Quantity `json:"max,omitempty"`
	// min of the level, if it names the resource.
	Min *resource.Quantity `json:"min,omitempty"`
	// used by pods on nodes.
	Used resource.Quantity `json:"used"`
	// usedByJobs is the part of used that is pods of queued jobs.
	UsedByJobs resource.Quantity `json:"usedByJobs"`
	// usedByOthers is the rest of it.
	UsedByOthers resource.Quantity `json:"usedByOthers"`
	// reserved for admitted units beyond their pods on nodes.
	Reserved resource.Quantity `json:"reserved"`
	// claimedAhead is what blocking units ahead wait for here.
	ClaimedAhead *resource.Quantity `json:"claimedAhead,omitempty"`
	// claimedBy is the first of those, as namespace/name, if the reader may know of it.
	ClaimedBy string `json:"claimedBy,omitempty"`
	// claimedIn is the queue of that unit, if it is another one.
	ClaimedIn string `json:"claimedIn,omitempty"`
	// beyond marks a level where the unit may go beyond the shares of its quotas, as these use less than their shares.
	Beyond bool `json:"beyond,omitempty"`
	// rightful is the amount that the quota can get while others use their guarantees, if the request is above that.
	Rightful *resource.Quantity `json:"rightful,omitempty"`
	// guaranteed is the part of limit that is kept for quotas below their guarantees.
	Guaranteed *resource.Quantity `json:"guaranteed,omitempty"`
	// unusable is free on nodes of the cluster that take no pods.
	Unusable *resource.Quantity `json:"unusable,omitempty"`
	// request of the unit.
	Request resource.Quantity `json:"request"`
	// free is limit - used - reserved - guaranteed; below zero where more is in use than the limit allows.
	Free resource.Quantity `json:"free"`
	// missing is what has to be freed here before the unit fits.
	Missing resource.Quantity `json:"missing"`
}

// Holders are the units that hold a resource at a level of the quota tree and below. Their ends make room there.
type Holders struct {
	// level that decides.
	Level string `json:"level"`
	// resource of which it has too little.
	Resource string `json:"resource"`
	// units are the first 100 of those that the reader may know of, the largest amount first.
	Units []Holder `json:"units"`
	// others is the amount held by all other units.
	Others resource.Quantity `json:"others"`
}

// Holder is a unit that holds some of a resource.
type Holder struct {
	// namespace of the unit.
	Namespace string `json:"namespace"`
	// name of the unit.
	Name string `json:"name"`
	// job is the name of its job.
	Job string `json:"job,omitempty"`
	// quota that it is charged to.
	Quota string `json:"quota"`
	// since is when it was admitted.
	Since *metav1.Time `json:"since,omitempty"`
	// held is its amount of the resource.
	Held resource.Quantity `json:"held"`
}
