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

// Package counted computes the use of pods that Koordinator counts at each level of a quota tree.
package counted

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// At returns the use of assigned pods that Koordinator counts at each level and below. Koordinator counts only those
// resources of a pod that the max of its own quota names, even at the levels above. So the root does not count the cpu
// of a pod whose quota names GPUs only. The order of quotas does not matter.
func At(quotas []admission.Quota, assigned func(level string) resources.List) map[string]resources.List {
	all := make(map[string]resources.List, len(quotas))
	own := make(map[string]resources.List, len(quotas))
	parents := make(map[string]string, len(quotas))
	for i := range quotas {
		name := quotas[i].Name
		all[name] = assigned(name)
		own[name] = all[name]
		parents[name] = quotas[i].Parent
	}
	for name, parent := range parents {
		own[parent] = own[parent].Sub(all[name])
	}
	counted := make(map[string]resources.List, len(quotas))
	for i := range quotas {
		q := &quotas[i]
		pods := own[q.Name]
		if q.Parent != "" {
			pods = pods.Mask(q.Max)
		}
		steps := 0
		for at := q.Name; at != "" && steps <= len(quotas); at = parents[at] {
			counted[at] = counted[at].Add(pods)
			steps++
		}
	}
	return counted
}
