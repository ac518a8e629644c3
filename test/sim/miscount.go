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

package sim

import "fmt"

// Koordinator can count pods of a quota that was deleted and created again twice, or forever: see the plans
// ended-before-it-was-moved and counted-and-moved. Then nobody can be admitted there, and that is no fault of the
// queue. Such a plan ends with a miscount in place of a violation.

// miscounted are the quotas of which the leader's ElasticQuota counts more as used than there are pods on nodes.
func (c *restCheck) miscounted() (found []string) {
	bound := map[string]amounts{}
	for _, o := range c.w.api.list(pods) {
		if pod := podOf(o); pod.Spec.NodeName != "" && !terminated(pod) {
			bound[quotaLabel(o)] = bound[quotaLabel(o)].plus(requestsOf(&pod.Spec), 1)
		}
	}
	for _, r := range c.w.schedulers {
		if !r.alive || !r.leading {
			continue
		}
		for _, o := range c.w.api.list(quotas) {
			name := o.u.GetName()
			info := r.live.GetGroupQuotaManagerForTree("").GetQuotaInfoByName(name)
			if info == nil || info.IsParent {
				continue
			}
			if used := amountsOf(info.GetUsed(), amounts{}); !used.within(bound[name]) {
				found = append(found, fmt.Sprintf("%s: used %s, on nodes %s", name, used, bound[name]))
			}
		}
	}
	return found
}
