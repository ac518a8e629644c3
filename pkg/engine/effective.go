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

package engine

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"

// effective is what the columns of a unit show that its spec may not say: the queue and the quota that it came to, what
// it asks for in all and, while it holds anything, what. It is written along with whatever is written anyway.
func effective(rec *unitRecord, held resources.List) map[string]any {
	fields := map[string]any{"queue": rec.queue, "quota": rec.quota, "requested": shorten(rec.object.request.String())}
	if held.Len() > 0 {
		fields["held"] = shorten(held.String())
	} else if rec.object.attempts > 0 {
		fields["held"] = nil
	}
	return fields
}
