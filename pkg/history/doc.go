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

// Package history keeps a bounded record of the transitions of units, in memory and, where a path is given, in a
// rotated file. The aggregated API serves it.
//
// # Format of the file
//
// A file has JSON objects, one per line, in UTF-8. The newest file has the configured path. Its predecessors have the
// time of their end before the extension: history.jsonl, history-2026-01-31T12-00-00.000.jsonl. A reader skips a line
// that is empty, torn or of a later version.
//
//	v              version of the format: 1. A new field does not change it.
//	time           time of the transition, RFC 3339, as the scheduler saw it
//	event          transition: RecordEvent of apis/visibility/v1alpha1
//	namespace      namespace of the QueueUnit
//	unit, uid      name and UID of the QueueUnit
//	kind, job      kind, as Job.v1.batch, and name of the job; absent for a unit without a job
//	queue, quota   queue and leaf quota
//	priority       priority by which the policy orders
//	attempt        count of admissions; 0 for a unit that was never admitted, or was adopted
//	created        time of creation of the unit, RFC 3339: its arrival in the queue
//	requested      amounts that the unit asks for, by resource: cores, bytes, devices
//	held           amounts that the unit holds; in a record that ends an admission, until then
//	heldBefore     amounts before a resize
//	reason         reason of an eviction, or of a deactivation by the controller
//	waitedSeconds  seconds until a reservation or admission, since the creation or the last eviction
//	ranSeconds     seconds since the admission, in a record that ends one
//
// One example, in one line in the file:
//
//	{"v":1,"time":"2026-01-01T12:01:30.5Z","event":"Admitted","namespace":"research","unit":"train","uid":"6d…",
//	 "kind":"Job.v1.batch","job":"train","queue":"shared","quota":"research","priority":10,"attempt":1,
//	 "created":"2026-01-01T12:00:00Z","requested":{"cpu":4},"held":{"cpu":4},"waitedSeconds":90.5}
//
// A replay takes created, priority, queue, quota and requested of each uid as its arrival, and ranSeconds of the last
// record of each attempt as its run time. Between two records the order of the file is the order of the scheduler.
package history
