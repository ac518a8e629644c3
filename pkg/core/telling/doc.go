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

// Package telling schedules which pending unit has its reason written to its object, and when.
//
// Namespaces take turns, so many units of one namespace delay a unit of another namespace by one write each. Within a
// namespace the unit that has waited longest for a write is first:
//   - A unit that came into line or was parked is due some seconds later.
//   - A change of the reason of a group begins a round over its units. The round finds the units whose written reason
//     is old. Every second write goes to a unit of a round.
//
// A unit whose object has the reason already gets no write (I12), and no unit gets writes in quick succession. The cost
// of an event does not depend on the number of pending units, because a round only advances with the writes. The
// package does not know the reasons themselves: the caller has them.
package telling
