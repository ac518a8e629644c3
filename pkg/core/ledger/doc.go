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

// Package ledger knows who holds what on the quota tree.
//
// A unit holds what it was admitted with. As its pods are assigned, their part moves to Koordinator's used
// and what is left is outstanding: per unit and resource max(0, held - assigned). The ledger keeps the sum
// of what is outstanding at every level, exactly, under reversible operations: Reserve and Release, SetPod and
// DeletePod, each O(depth x resources). Facts may come in any order and lead to the same sums (I7, I8). Read
// tells the sums of a level.
package ledger
