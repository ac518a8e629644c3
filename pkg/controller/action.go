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

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
)

// Action is one step of a plan. Steps are done in order; the first that fails ends the plan.
type Action interface{ action() }

type (
	// LookAtPods asks for Bound and a new plan.
	LookAtPods struct{}
	// LookAtRefusals asks for Refusal and a new plan.
	LookAtRefusals struct{}
	// ReadUnit asks for the unit from the API server, and a new plan.
	ReadUnit struct{}
	// ReadJob asks for the job from the API server, and a new plan.
	ReadJob struct{}
	// PlanLater asks for a new plan after some time. It stands alone.
	PlanLater struct{ After time.Duration }
	// CreateUnit creates a unit.
	CreateUnit struct {
		Unit  *v1alpha1.QueueUnit
		Event *event.Event
	}
	// PatchUnit changes spec or metadata of a unit.
	PatchUnit struct {
		Before, After *v1alpha1.QueueUnit
		Event         *event.Event
	}
	// PatchUnitStatus changes the status of a unit.
	PatchUnitStatus struct {
		Before, After *v1alpha1.QueueUnit
		Event         *event.Event
	}
	// Report changes how many pods are ready, as the status of a unit tells it. It stands alone, and is left for later
	// where there are many.
	Report struct{ Before, After *v1alpha1.QueueUnit }
	// DeleteUnit deletes this very unit, as it is here.
	DeleteUnit struct {
		Unit  *v1alpha1.QueueUnit
		Event *event.Event
	}
	// PatchJob changes a job. Plain, when set, is tried when the API server refuses After as invalid; without
	// Plain a refusal is waited for.
	PatchJob struct {
		Before, After, Plain *unstructured.Unstructured
		Event                *event.Event
	}
	// ResetStart takes back the mark of a suspended job's earlier run, without which its pod templates may not be changed.
	ResetStart struct{ Job *unstructured.Unstructured }
	// Tell records an event without a write; it is told once for each text.
	Tell struct{ Event *event.Event }
)

func (PlanLater) action()       {}
func (LookAtPods) action()      {}
func (LookAtRefusals) action()  {}
func (ReadUnit) action()        {}
func (ReadJob) action()         {}
func (CreateUnit) action()      {}
func (PatchUnit) action()       {}
func (PatchUnitStatus) action() {}
func (Report) action()          {}
func (DeleteUnit) action()      {}
func (PatchJob) action()        {}
func (ResetStart) action()      {}
func (Tell) action()            {}

// cannotResume tells, once for each admission, that a job cannot be let go: events are kept for an hour or so.
func cannotResume(u *v1alpha1.QueueUnit, err error) *event.Event {
	e := event.Warning("CannotResume", "Resume", event.Short(err.Error()))
	if u != nil {
		e.Of = fmt.Sprintf("%s/%d", u.UID, u.Status.Attempts)
	}
	return e
}
