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

// Package controller keeps jobs and their QueueUnits in step. Start at the reconciler of jobs.
//
// Reconcilers are thin. The reconciler of jobs has an observer and a writer. The observer gathers the Situation of a
// job, jobplan.Decide plans writes for it, and the writer makes them. Every write carries the resourceVersion of the
// object that the plan saw, so that the API server refuses a decision on stale state (I3).
//
// The rules of jobplan read the request of a job from jobask. From ownerhold they read whether its owner holds it, and
// from resumption how it is resumed. They write the status of its unit with unitstatus, podreport and stall. None of
// these packages has a client or a clock.
package controller
