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

// Package reservation answers AdmissionChecks by Reservations of Koordinator: once quota is reserved for a unit, it
// creates one Reservation for each pod. The job is released when koord-scheduler has found a node for all of them.
//
// A Reservation has no namespace, so the unit cannot own it. Its label and annotation name the unit, and a Reservation
// of a unit that is gone, or that holds no quota, is deleted. So nothing is left after a crash. The plan follows from
// unit, Reservations and time alone.
//
// The pod of a Reservation passes the scheduler's gate, and ElasticQuota does not count it in used: its handler sees
// pods of the API server only (ReservePod in group_quota_manager.go of Koordinator v1.8.0). ElasticQuota's PreFilter
// does compare it with the runtime of its quota, which is bounded by what pods ask for. Before the pods of the job
// exist, the runtime of its quota may be zero, and the Reservation would be refused. So the pod of a Reservation names
// the default quota, and the unit holds its own.
package reservation
