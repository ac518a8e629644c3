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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Forecast says when a QueueUnit that waits will be admitted, or will reserve quota for admission checks. It has the
// name of that. It does not know jobs that arrive later.
//
// +kubebuilder:object:root=true
type Forecast struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	*Observation      `json:",inline"`
	Status            ForecastStatus `json:"status"`
}

// ForecastList has the units that wait and have their latest first, in this order, 100 at most. A unit that is not part
// of it has a forecast of its own, which may say why no time is known. An item has no ahead, moved, endlessJobs and
// medianWait.
//
// +kubebuilder:object:root=true
type ForecastList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	*Observation    `json:",inline"`
	Items           []Forecast `json:"items"`
}

// ForecastStatus is an answer for some seconds. Without about, latest and notBefore it has a reason.
type ForecastStatus struct {
	// about is when the unit will be admitted if other runs take as long as past ones: the median of several draws.
	About *metav1.Time `json:"about,omitempty"`
	// latest is when it will be admitted if each run takes as long as its time limit allows. A run without a limit takes
	// nearly as long as the longest past ones. If latest rests on such runs, and was too early for other units of the
	// namespace, it is later by that. Absent if nothing bounds the wait.
	Latest *metav1.Time `json:"latest,omitempty"`
	// notBefore is how far the forecast came, where it took too long.
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// moved says why latest is later than before by more than a minute. It stays until latest is back.
	Moved *ForecastMoved `json:"moved,omitempty"`
	// ahead is the number of units before this one in its queue; absent for a unit that is not in line.
	Ahead *int32 `json:"ahead,omitempty"`
	// checks is how long admission checks take after the reservation, as a part of about: the median of the last 30 of the
	// queue. latest has nearly the longest of those. Where the queue has checks and this is absent, all times are those of
	// the reservation.
	Checks *metav1.Duration `json:"checks,omitempty"`
	// draws that about is the median of. There are fewer where they take too long.
	Draws int32 `json:"draws,omitempty"`
	// limits is the number of runs that end before latest, and whose end rests on their time limit.
	Limits int32 `json:"limits,omitempty"`
	// past is the same for runs whose end rests on past runs.
	Past int32 `json:"past,omitempty"`
	// endless is the number of units that hold quota while neither a limit nor past runs say for how long.
	Endless int32 `json:"endless,omitempty"`
	// endlessJobs are the jobs of the first five of those that are of the same namespace.
	EndlessJobs []string `json:"endlessJobs,omitempty"`
	// medianWait is the median of the last waits that ended with an admission in the same queue.
	MedianWait *metav1.Duration `json:"medianWait,omitempty"`
	// waits is the number of those, 50 at most.
	Waits int32 `json:"waits,omitempty"`
	// reason if there is no time. It is that for which the unit waits, or HoldsQuota, Over or Observed.
	Reason string `json:"reason,omitempty"`
	// message is the reason in words.
	Message string `json:"message,omitempty"`
}

// ForecastMoved says why a bound is later than before.
type ForecastMoved struct {
	// from is what latest was.
	From metav1.Time `json:"from"`
	// cause is UnitChanged, ArrivalAhead, QuotaChanged, CapacityChanged, HolderBeyondItsLimit, or Other.
	Cause string `json:"cause"`
}
