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

// Package engine is the one goroutine that owns the state of the core. Start at Engine.step, which has the order of all
// parts.
//
// Informers, the quota hook and status writers append to a mailbox. The engine drains it, feeds admission.State,
// observes the quotas that are dirty, and lets the core decide. Its writes go to the API, its snapshot to the
// scheduler's gate, and its freed pods to the scheduler's queue. Engine.step has the order of all this, and is the
// place to begin to read.
//
// Engine has the order of a step. A step has two halves. The first, facts, takes objects, quotas and pods, and gives
// them to the core. The second, decisions, turns plans of the core into writes, and takes their outcomes.
//
// The rooms of the engine are packages. None of them imports this one; each imports rooms that stand below it here:
//
//	audit        compares the state with the API, and has it built again
//	questions    what people ask
//	queuestatus  the status of Queues
//	measures     metrics and log lines
//	podbook      which pod belongs to which unit, and which pods to activate
//	gateview     the snapshots for the gate
//	unitbook     the record of each unit
//	intake       informers and lists, which fill the mailbox
//	mail         the mailbox
//	quotawatch   questions to the quotas, and their last answers
//	recovery     admission.State, and what is done about a panic in it
//	statuswrite  status patches under way, and those whose outcome is unknown
//	patch        the content of a patch, as a pure function of decision and object
//	checks       the AdmissionChecks that exist
//	managed      which owners and pods concern the queue
//	history      the record of transitions, in memory and in a file
//	env          clock, metrics, log and the recovery from panics
//
// queueStatuses and gauges are the same as reasons for queues and metrics.
//
// The mailbox has the only lock, and only appends happen under it: no wait, no call of the API, no call of Koordinator.
// So it may be taken under any other lock.
//
// The work of a step follows from the changes since the last one, and is none without changes (I12). It depends only on
// the mailbox, the answers of Quotas, the clock, and the time that decisions took (I13). So a Driver can make the steps
// in place of Run.
package engine
