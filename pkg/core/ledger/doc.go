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

// Package ledger sums held quota on the quota tree.
//
// A unit holds the amount of its admission. As its pods are assigned, their part moves to Koordinator's used, and the
// rest is outstanding: max(0, held - assigned), per unit and resource. The ledger keeps the exact sum of outstanding
// amounts at every level. Reserve and Release, SetPod and DeletePod are reversible, and cost O(depth x resources).
// Events in any order lead to the same sums (I7, I8). Read returns the sums of a level.
package ledger
