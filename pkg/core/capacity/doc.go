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

// Package capacity is the quota tree as it was observed: what each level may use, what it uses, and what is free.
//
// A limit is one bound that a unit has to keep: the limit of a level, or its min, which non-preemptible units have to
// keep as well. What is free of a limit is limit - used - outstanding (I1); outstanding is the ledger's. A quota that
// is deleted is remembered as long as something is held there or below: it keeps counting on the path that it had.
//
// The limit of a level is observed. Where it is a share of what its parent has, pkg/core/shares computes it from what
// pods request and what units ask for beyond them, and Refresh brings it up to date.
//
// Amounts are vectors over the resources that any limit names, so that comparing a request with a path is a few
// comparisons of integers.
package capacity
