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

	"github.com/koordinator-sh/koordinator/apis/extension"
	corev1 "k8s.io/api/core/v1"
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
	annotations[extension.AnnotationGangName] = s.Args["gang"]
	annotations[extension.AnnotationGangMinNum] = "1"
	annotations[extension.AnnotationGangGroups] = `["` + group + `"]`
}

// gangsThere is Koordinator's Coscheduling: the first pods of a gang group get nodes once each gang has one that may
// go. From then on all do (match policy once-satisfied), also those that come when others of the group have ended: the
// real one forgets that with the last pod of the group that runs.
func (r *replica) gangsThere(pod *corev1.Pod) bool {
	group := pod.Annotations[extension.AnnotationGangGroups]
	if group == "" || r.world.placed[group] {
		return true
	}
	there := map[string]bool{}
	for _, o := range r.world.api.objects[pods] {
		other := podOf(o)
		if other.Annotations[extension.AnnotationGangGroups] == group && other.DeletionTimestamp == nil && r.passes(other) {
			there[other.Annotations[extension.AnnotationGangName]] = true
		}
	}
	return len(there) == strings.Count(group, ",")+1
}
