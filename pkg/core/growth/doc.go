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

// Package growth says how much an admitted unit is to hold, and what it asks for beyond that.
//
// A unit holds what it asked for when it was admitted. An adopted unit holds what was bound then. The job may ask for
// more while it runs, and so may its pods: the unit waits for that in its line, behind those that came before it asked.
// While it waits, it goes on with what it holds, which it never loses over a growth. If the job asks for less, the unit
// gives the rest back without waiting. Until a write of an amount is confirmed, the unit holds the greater of both
// amounts. A unit with several sizes asks for at most what it was admitted with. To let it grow, give it one size.
package growth
