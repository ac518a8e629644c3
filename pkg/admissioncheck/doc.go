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

// Package admissioncheck is for authors of admission checks. An admission check is a condition that jobs must meet
// after quota was reserved for them and before their pods start. Examples are a budget, a licence, staged data, or new
// nodes.
//
// An author writes a function from a QueueUnit and its AdmissionCheck to an Answer, and passes it to a Controller:
//
//	c := &admissioncheck.Controller{ControllerName: "example.com/budget", Check: budget}
//	err := c.SetupWithManager(manager)
//
// The Controller calls the function for each unit that is Reserved and waits for a check of that controllerName. It
// calls again after Answer.RequeueAfter, and when the unit, the check or an object owned by the unit changes. The
// function must be idempotent: an answer can be lost, or refused because the unit has changed, and then the Controller
// calls again. An answer is written with the resourceVersion that it is about, so it never counts for another
// reservation.
//
// With Withdraws the function is also called for admitted units. It can take back its answer while they hold quota.
//
// The account of the controller needs the role jobqueue-admission-check of manifests/components/admission-checks, and
// the verb answer on its AdmissionChecks.
package admissioncheck
