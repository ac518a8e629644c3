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

package main

import (
	"cmp"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// newestFirst serves the highest priority first and, of one priority, the newest job: for queues whose jobs are worth
// less the longer they wait. Units behind one that does not fit may pass it.
type newestFirst struct{}

// newNewestFirst needs no threshold, which is for policies such as Intelligent.
func newNewestFirst(int32) queue.Policy { return newestFirst{} }

// Compare implements queue.Policy. It is zero for the same unit only.
func (newestFirst) Compare(a, b queue.Item) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		b.Created.Compare(a.Created),
		strings.Compare(a.UID, b.UID),
		strings.Compare(a.Key, b.Key),
	)
}

// Blocks implements queue.Policy.
func (newestFirst) Blocks(int32) bool { return false }
