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

// Package capacity keeps the observed quota tree: the limits of each level, used amounts, and free amounts.
//
// A Limit is one bound for a unit: the limit of a level, or its min for non-preemptible units. Free is limit - used -
// outstanding (I1), and the ledger has the outstanding amounts. If the limit of a level is its runtime, package shares
// computes it and Refresh brings it up to date.
//
// A deleted quota is remembered while something is held there or below. Until then it counts on its former path.
//
// Amounts are vectors over all resources that a limit names, so comparing a request with a path compares integers.
//
// The package decides nothing. A pass writes its claims into a View, never into the Tree.
package capacity
