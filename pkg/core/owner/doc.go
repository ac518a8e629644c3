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

// Package owner knows which unit stands for which job: the one election that admission, the gate and the ledger go by.
//
// A unit names its job by UID, and anybody may make a unit that names any. So at most one unit stands for a job, and
// a unit concerns jobs of its own namespace only (I3).
package owner
