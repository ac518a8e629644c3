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

// Package gang has the rules of gang groups: which units are decided together, and which of them may be let go.
//
// Koordinator binds the gangs of a gang group together, or not at all. So their units are admitted together, or not
// at all: a part of them would hold quota for pods that wait for the others. A gang group is of one namespace.
//
//   - A gang group is whole if each of its gangs has a unit that waits in line or holds quota. If several units wait
//     for a gang, the first that was made stands for it.
//   - The members are the units that stand for gangs of which no unit holds quota. They are decided together. A gang
//     group that is not whole has none.
//   - Members that have all been admitted before wait for no gang without units. That gang is over, and they are to
//     end as well.
//   - An admitted unit stays admitted. If its write fails, or it loses its admission, it is decided without the gangs
//     that hold quota.
//   - A reserved unit that has passed its admission checks is let go once each other gang has a unit that was let go
//     or has passed its own. Until then it keeps its quota, for as long as a check may take. A unit that was admitted
//     before waits for no gang without units.
//
// Package admission decides with the following rules:
//
//   - A gang group is decided where the pass meets its last member. The sum of what the members ask for, together with
//     the claims ahead, is compared with every limit of all of them. If it fits, all are admitted. If not, those that
//     block claim there, each as it would alone.
//   - A gang group waits and claims nothing if it is not whole or if the pass does not meet all members: a member is
//     in a full or held queue, or a check stops it. It neither borrows nor keeps others from borrowing.
//   - A member is admitted whole, whatever sizes it may have.
package gang
