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

package backlog

import (
	"hash/fnv"
	"time"
)

// Back-off after a reservation that nothing used: base, doubled with each time in a row, up to most. Up to a tenth is
// added by the UID, so that units that failed together are not tried together.
const (
	requeueBase   = time.Minute
	requeueMost   = 30 * time.Minute
	mostDoublings = 5
)

// RequeueAt is when a unit may be tried again that lost its reservation for the nth time in a row.
func RequeueAt(now time.Time, uid string, n int64) time.Time {
	backoff := requeueBase << min(max(n-1, 0), mostDoublings)
	backoff = min(backoff, requeueMost)
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return now.Add(backoff + backoff*time.Duration(h.Sum32()%100)/1000)
}
