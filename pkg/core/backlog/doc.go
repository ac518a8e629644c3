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

// Package backlog keeps pending units. Each queue has one Line in the order of its policy. A Line has groups of units
// that are decided alike.
//
// Look here for positions, groups and their heads. The caller decides on heads only, so the cost of a decision does not
// depend on the number of pending units. The package knows order only: quotas, times and reasons are for the caller,
// who can attach notes to a group.
package backlog
