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

// Package rightful says how far a unit may go beyond the shares of its quotas.
//
// A share orders; it is no wall.
//
// If the limit of a quota is its runtime, that is a share of what there is, and follows what others ask for. A job is
// admitted whole or not at all, so a share may be too small for it as long as others have jobs. Therefore a head may go
// beyond the shares on its path if all of this holds:
//
//   - Each level that goes beyond its share uses less than that now. So each quota goes beyond its share by one unit at
//     most, and its use over time stays within one unit of its share.
//   - On each level up to the total the head fits together with all that is in use and all that other quotas are
//     guaranteed: the min of each, or what it asks for if that is less (Book.Free).
//
// A blocking head that does not fit yet claims like any other (I6). Where shares are the limits, units of other
// queues that their quotas promise what they need pass a claim: nothing that others are guaranteed is taken. All that
// others use beyond that ends with the jobs that run, and is not filled again. So the head starts after the longest
// of those jobs. A head that is larger than what its quota can rightfully get (Book.Rightful) claims nothing.
package rightful
