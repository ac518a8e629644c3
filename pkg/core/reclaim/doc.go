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

// Package reclaim selects the units that lose quota so that the owner of a min gets it back.
//
// A unit j of leaf q has a right to quota that a unit v of another leaf w holds, under two conditions. Victims that
// were found before count as gone.
//
//   - Each level of q strictly below the lowest common ancestor of q and w is within its min with j on top.
//   - At each level of w strictly below that ancestor, units hold more than its min of a resource that j lacks and v
//     holds.
//
// So a unit within min is never a victim, and a victim has no right against its preemptor. Pods without a unit count
// for j's own min. They do not count against v, because w has borrowed first for them. Otherwise bare pods in a shared
// quota would cost a colleague a job that is itself within the min. Levels from the common ancestor up do not matter:
// if they did, TestNoPromisedMinIsUnserved finds mins that stay unserved.
//
// If the policy of its queue says so, j also has a right to quota of units of lower priority in its queue and leaf. It
// gets at most the amount that they give back, unless its levels are within their mins with it. Otherwise others would
// take it back from j, the victims from those, and so on without end: TestNoPromisedMinIsUnserved finds that too.
//
// The core of a gang group is preempted together or not at all, see package holders. One right is enough for all: j has
// a right to what they hold in one quota. A unit that is non-preemptible, cannot be suspended or is kept by its queue
// stays by itself. Any other protection protects the core only if all its units have it. Otherwise a tenant could
// protect everything that a group has borrowed by adding a small unit.
//
// A gang group preempts as it is preempted. Its lowest priority counts, and it reclaims only if its core has not
// borrowed. Otherwise two groups could preempt each other without end: TestPreemptionOfGangGroupsEnds finds that.
//
// If the pods of j must find nodes, the placer is asked first, as if the pods of the set were gone. A Foresight is a
// question to the placer with its answer. Without a yes nobody is preempted.
//
// A set of units is all or nothing. It cures every limit at which j is short, and none of its units is dispensable.
package reclaim
