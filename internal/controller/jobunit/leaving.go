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

package jobunit

import (
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
)

// CheckTermination finds pods that would keep their quota for longer than this after the suspension of the job. Zero
// disables it. The policies check this too, if they are installed. But resuming writes the label of the quota into
// pods, and policies learn late in which namespaces jobs without a quota are queued.
func (d *Demand) CheckTermination(most int64) {
	if d.Problem != nil || most == 0 {
		return
	}
	for i, template := range d.Templates() {
		wrong := ""
		switch seconds := template.Spec.TerminationGracePeriodSeconds; {
		case len(template.Finalizers) > 0:
			wrong = fmt.Sprintf("have the finalizer %q, which keeps their quota after they end: remove it",
				template.Finalizers[0])
		case seconds != nil && *seconds > most:
			wrong = fmt.Sprintf("may take %d seconds to end: terminationGracePeriodSeconds is at most %d", *seconds, most)
		default:
			continue
		}
		d.Problem = &Problem{Reason: unitcondition.ReasonSlowTermination,
			Message: event.Short(fmt.Sprintf("pods of %s %s", d.PodSets[i].Name, wrong))}
		return
	}
}
