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

package checker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Left reports everything that must be gone when all jobs are complete or deleted. These are units that wait or hold
// quota, and amounts that Koordinator counts as used (I2, I7).
func (c *Checker) Left() (found []Violation) {
	report := func(subject, format string, args ...any) {
		found = append(found, Violation{LeftBehind, subject, fmt.Sprintf(format, args...)})
	}
	for _, uid := range slices.Sorted(maps.Keys(c.jobs)) {
		job := c.jobs[uid]
		if c.gone[uid] || job.Part {
			continue
		}
		if c.unitOf[uid] == "" {
			report("job "+job.Name, "has no unit")
		}
		if !job.Complete {
			report("job "+job.Name, "is not complete")
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.units)) {
		qu := c.units[uid]
		if _, known := c.jobs[qu.Job]; !known || c.gone[qu.Job] {
			report("unit "+qu.Key, "has no job")
		}
		if qu.Phase != unit.PhaseSucceed || qu.Admitted {
			report("unit "+qu.Key, "is %q; admitted: %t", qu.Phase, qu.Admitted)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		if pod := c.pods[uid]; !pod.Terminal {
			report("pod "+pod.Name, "has not ended; on a node: %t", pod.Bound)
		}
	}
	return append(found, c.stillUsed()...)
}

// stillUsed is what Koordinator counts as used.
func (c *Checker) stillUsed() (found []Violation) {
	for _, name := range slices.Sorted(maps.Keys(c.quotas)) {
		for resource, amount := range c.quotas[name].Used {
			if amount != 0 {
				found = append(found, Violation{
					LeftBehind, "quota " + name, fmt.Sprintf("%s used: %s", resource, milli(amount)),
				})
			}
		}
	}
	return found
}

// Written says of events that came after all was over what they wrote (I12). The status of quotas is Koordinator's, and
// comes late.
func Written(events []Event) (found []Violation) {
	for _, e := range events {
		subject := ""
		switch o := e.Object.(type) {
		case Unit:
			subject = "unit " + o.Key
		case Pod:
			subject = "pod " + o.Name
		case Job:
			subject = "job " + o.Name
		default:
			continue
		}
		found = append(found, Violation{Restless, subject, fmt.Sprintf("was written after all was over: %+v", e)})
	}
	return found
}
