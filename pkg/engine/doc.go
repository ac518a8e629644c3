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

// Package engine is the one goroutine that owns the state of the core.
//
// Informers, the quota hook and status writers only append to a mailbox; the engine drains it, feeds admission.State,
// observes the quotas that are dirty and lets the core decide. What comes out goes to status writers, to the snapshot
// that the scheduler's gate reads, and to the scheduler's queue as pods to activate. Engine.step has the order of it
// all, and is where to begin to read.
//
// Engine joins parts that know little of each other:
//
//	sources    informers and lists: what reaches the mailbox
//	core       admission.State, and what is done about a panic in it
//	records    the record of every unit, and which unit stands for a job
//	pods       which pods belong to which unit, what the core was told of them, which to activate
//	observer   asks the quotas; trails say what to ask for again
//	pace       when the next decision may be made
//	publisher  the snapshots
//	writers    status patches on their way, with their pool
//	reasons    how many reasons may be written now; reports are those whose writing failed. queueStatuses and gauges are
//	           the same for queues and metrics
//	audits     comparisons of all of this with the API
//
// The engine has no lock but the one of the mailbox, under which nothing is done but appending. No wait, no call of
// the API and no call of Koordinator happens under it, so it may be taken under any other lock.
//
// A step does work for what changed since the last one and none when nothing did (I12). Everything that a step does
// is determined by the mailbox, the answers of Quotas, the clock and how long decisions took (I13), so a Driver may
// make the steps in place of Run.
package engine
