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

import (
	"fmt"
	"slices"
	"strings"
)

// Jobs whose gangs belong together are small enough for any quota, in one quota or in two, and come some seconds apart:
// what the plan does to processes and quotas meanwhile must leave none of them behind.

// gangGroups of a plan: half of them have one, of two or three jobs.
func (g *generator) gangGroups(seed uint64) {
	d := generator{dice: newDice(seed, "gang groups"), plan: Plan{Length: g.plan.Length}}
	few := func(s Step) bool { return s.Args["max-jobs"] != "" } // which may be fewer than the group has
	if !d.chance(50) || slices.ContainsFunc(g.plan.Steps, few) {
		return
	}
	names := []string{"g0", "g1", "g2"}[:2+d.IntN(2)]
	for _, name := range names {
		d.add(d.when(), "job", name, "quota", pick(d.dice, leaves), "cpu", "500", "run", d.run(),
			"priority", fmt.Sprint(d.IntN(3)), "gang", name, "group", strings.Join(names, ","))
	}
	g.plan.Steps = append(g.plan.Steps, d.plan.Steps...)
}

// joinGang has the pods of a job say to which gang and group they belong.
func joinGang(s Step, annotations map[string]any) {
	if s.Args["gang"] == "" {
		return
	}
	group := fmt.Sprintf("%s/%s", team, strings.ReplaceAll(s.Args["group"], ",", `","`+team+`/`))
	annotations["gang.scheduling.koordinator.sh/name"] = s.Args["gang"]
	annotations["gang.scheduling.koordinator.sh/min-available"] = "1"
	annotations["gang.scheduling.koordinator.sh/groups"] = `["` + group + `"]`
}
