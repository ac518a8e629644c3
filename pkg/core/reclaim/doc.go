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

// Package reclaim says which units lose what they hold, so that the owner of a min gets it back.
//
// A unit j of leaf q has the right to what a unit v of another leaf w holds if, with the units that were taken before
// gone:
//
//   - each level of q strictly below the lowest common ancestor of q and w is within its min with j on top, and
//   - at each level of w strictly below that ancestor units hold more than its min of a resource of which j is short
//     and v holds some.
//
// Pods that no unit owns count for j's own min, and not against v: what they use is what w has borrowed first. If it
// were not so, bare pods in a shared quota would have a colleague's job taken that is itself within the min.
// So a unit within min is never taken, and a unit that was taken has no right against the one that took it. The levels
// from the common ancestor up do not matter for the right: with them, TestNoPromisedMinIsUnserved finds promised mins
// that stay unserved.
//
// Where its queue has it so, j has a right as well to what units of lower priority hold in its queue and leaf. It gets
// at most as much of a resource as they give back, unless its levels are within their mins with it. Otherwise others
// take it back from j, those that were taken take theirs back, and so on without end: TestNoPromisedMinIsUnserved finds
// that.
//
// The units of a gang group are taken together or not at all: from one quota in which they hold something j must have
// the right to take. A unit of it that is non-preemptible, cannot be suspended or is kept by its queue stays by itself.
// No other protection of a unit protects its group, unless all its units have it: a tenant who adds a small unit to a
// gang group would keep all that the group has borrowed.
//
// Where the pods of j have to find nodes, the placer is asked first, as if the pods of the set were gone. A Foresight
// is what it was asked, and has answered. Without a yes nobody is taken.
//
// A set of units is all or nothing. It cures every limit at which j is short, and no unit of it can stay.
package reclaim
