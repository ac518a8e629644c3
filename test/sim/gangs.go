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

// Jobs whose gangs belong together are small enough for any quota, are in one quota or in two, and arrive some seconds
// apart. No action on processes and quotas in that time may leave one of them behind.

// gangGroups of a plan: one, of two or three jobs.
func (g *generator) gangGroups(d dice) {
	defer g.with(d)()
	few := func(s Step) bool { return s.Args["max-jobs"] != "" } // which may be fewer than the group has
	if slices.ContainsFunc(g.plan.Steps, few) {
		return
	}
	names := []string{"g0", "g1", "g2"}[:2+g.IntN(2)]
	for _, name := range names {
		g.add(g.when(), "job", name, "quota", pick(d, leaves), "cpu", "500", "run", g.run(),
			"priority", fmt.Sprint(g.IntN(3)), "gang", name, "group", strings.Join(names, ","))
	}
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

// gangsThere plays Koordinator's Coscheduling. The first pods of a gang group get nodes when each gang has an admitted
// pod. From then on all pods of the group do (match policy once-satisfied), even after others have ended. The real one
// forgets that with the last running pod of the group.
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
