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
// The runtime of a quota is a share that depends on the demand of others. A job is admitted whole or not at all, so a
// share can be too small for it while others have jobs. Therefore a head may go beyond the shares on its path under two
// conditions:
//
//   - Each level that goes beyond its share uses less than its share now. So each quota exceeds its share by one unit
//     at most, and its use over time stays within one unit of its share.
//   - On each level up to the total, the head fits together with everything in use and everything that is guaranteed to
//     other quotas. The guarantee of a quota is the lesser of its min and its demand (Book.Free).
//
// A blocking head that does not fit yet claims like any other (I6). If shares are the limits, units of other queues
// pass the claim as long as their quotas guarantee their requests. Use of other quotas beyond their guarantees ends
// with the jobs that run, and is not replaced. So the head starts after the longest of those jobs. A head claims
// nothing if it is larger than the rightful part of its quota (Book.Rightful).
package rightful
