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

// Package reservation answers AdmissionChecks with Reservations of Koordinator. If quota is reserved for a unit, the
// package creates one Reservation for each pod. The job is released when koord-scheduler has found a node for all of
// them.
//
// A Reservation has no namespace, so a unit cannot own it. Its label and annotation name the unit. A Reservation is
// deleted if its unit is gone or holds no quota, so a crash leaves nothing behind. The plan follows from unit,
// Reservations and time alone.
//
// The pod of a Reservation passes the scheduler's gate. ElasticQuota does not count it in used, because its handler
// sees only pods of the API server (ReservePod in group_quota_manager.go of Koordinator v1.8.0). But ElasticQuota's
// PreFilter compares the pod with the runtime of its quota, which is bounded by the requests of pods. Before the pods
// of the job exist that runtime can be zero, and the Reservation would be refused. So the pod of a Reservation names
// the default quota, while the unit holds quota of its own.
package reservation
