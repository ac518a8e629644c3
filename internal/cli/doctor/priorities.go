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

package doctor

import (
	"fmt"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/priority"
)

// unallowedPriorities are those by which jobs of queues cannot preempt, since no namespace allows any.
func (i *Installation) unallowedPriorities() []Finding {
	var names []string
	for n := range i.Queues {
		if priority.Compared(i.Queues[n].Spec.Preemption) {
			names = append(names, i.Queues[n].Name)
		}
	}
	if len(names) == 0 || i.PrioritiesAllowed || i.couldNotRead("namespaces") {
		return nil
	}
	return []Finding{{Warning, "PrioritiesNotAllowed", fmt.Sprintf("Jobs of these queues preempt by priority, and "+
		"no namespace allows a priority above 0: %s.", named(names)),
		"kubectl annotate namespace NAME " + v1alpha1.AnnotationMaxPriority + "=NUMBER"}}
}

// named are the first of many names.
func named(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
