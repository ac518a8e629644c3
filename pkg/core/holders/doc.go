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

// Package holders is an index of the units that hold quota, by leaf quota and in the order of what their eviction
// costs.
//
// An Index is kept up as units hold, change and release. So the cost of a question depends on the size of its answer
// alone, however many units hold quota. Holders of one leaf that differ only in their admission form a class. If a
// question looks at the first of a class, it has looked at all. A class is in the order of lost work, which is the
// order of admission.
//
// Of a gang group the unit of each gang that was admitted first is in its core. A core is one holder. A unit that gives
// its quota back is no holder, and neither is a unit that holds nothing and has pods that end. The amounts of both
// count as leaving. A promise is the amount that a preemptor gets from its victims and does not hold yet.
package holders
