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

// Package admissioncheck is for authors of admission checks: of whatever jobs have to pass after quota was reserved
// for them and before their pods may go, such as a budget, a licence, data that has to be there, or nodes that have to
// be made.
//
// An author writes one function from a QueueUnit and its AdmissionCheck to an Answer and hands it to a Controller:
//
//	c := &admissioncheck.Controller{ControllerName: "example.com/budget", Check: budget}
//	err := c.SetupWithManager(manager)
//
// The function is called for units that are Reserved and wait for a check of that controllerName, again when the unit,
// the check or an object that the unit owns changes, and after Answer.RequeueAfter. It has to be idempotent: the
// answer may be lost, or be refused because the unit has changed, and is asked for again then. An answer is written on
// the very state of the unit that it is about, so it never counts for another reservation.
//
// With Withdraws it is also called for units that were let go, and may take back what it said while they hold quota.
//
// The account of the controller needs the role jobqueue-admission-check of manifests/components/admission-checks, and
// the verb answer on the AdmissionChecks that it answers.
package admissioncheck
