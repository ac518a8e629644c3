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

// Package controller keeps jobs and their QueueUnits in step.
//
// Reconcilers are thin. That of jobs has an observer, which gathers the Situation of a job, asks jobplan.Decide what to
// do about it, and has a writer do it. Every write carries the resourceVersion of what was decided on, so that a
// decision on stale state is refused (I3).
package controller
