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

// Package owner elects the unit that stands for a job. Admission, the gate and the ledger all use this election.
//
// A unit names its job by UID, and anybody may create a unit that names any job. So at most one unit stands for a job,
// and a unit concerns only jobs of its own namespace (I3).
package owner
