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

// Package gang has the rules of gang groups: which units are decided together, and which of them may be released.
//
// Koordinator binds the gangs of a gang group together or not at all. So their units are admitted together or not at
// all: a part of them would hold quota for pods that wait for the others. All units of a gang group are in one
// namespace.
//
//   - A gang group is whole if each of its gangs has a unit that waits in line or holds quota. If several units wait
//     for a gang, the oldest stands for it.
//   - The members are the units that stand for gangs of which no unit holds quota. They are decided together. A gang
//     group that is not whole has no members.
//   - If all members were admitted before, they do not wait for a gang without units. That gang has ended, and the
//     others have to end as well.
//   - An admitted unit stays admitted. If its write fails, or it loses its admission, it is decided without the gangs
//     that hold quota.
//   - A reserved unit that has passed its checks waits until each other gang has a unit that was released or has passed
//     its checks. Until then the unit keeps its quota, for as long as a check may take. A unit that was admitted before
//     does not wait for a gang without units.
//
// Package admission decides by these rules:
//
//   - A gang group is decided where the pass meets its last member. The sum of the requests and the claims ahead is
//     compared with every limit of all members. If the sum fits, all are admitted. Otherwise each member that blocks
//     claims as it would alone.
//   - A gang group waits and claims nothing if it is not whole. The same holds if the pass does not meet a member,
//     because its queue is full or on hold, or a check stops it. Such a group neither borrows nor keeps others from
//     borrowing.
//   - A member is admitted whole, even if it has smaller sizes.
package gang
