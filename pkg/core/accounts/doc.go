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

// Package accounts counts units by queue and quota, and sums the demand of units beyond that of their pods.
//
// Look here for the number of pending, admitted or parked units. Each unit has one Contribution, and a change replaces
// it in O(1). Units of one group can share a Pool, which counts as a whole. The sums of demand are in the tree of
// package capacity.
package accounts
