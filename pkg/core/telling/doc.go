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

// Package telling plans which unit is told why it waits, and when.
//
// It knows the schedule and nothing of what is said: the caller that decides has the sayings. Namespaces take turns:
// the units of one, however many, delay what units of another are told by one unit each. Of one namespace the unit that
// waits longest is told first:
//   - a unit that has come into line, or was parked, is due by itself, some seconds later, the oldest first;
//   - when the reason of a group changes a round of its units begins, each such group in its turn. It finds those that
//     are to be told something else: first who was told nothing for longest. Every second unit that is told is one of
//     these.
//
// Nobody is told what its object says already (I12), and nobody more often than once in a while. What a unit costs here
// when something happens does not depend on how many wait: a round goes on only as units are told.
package telling
