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
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// jobCheck judges what controllers do to jobs.
type jobCheck struct {
	w     *world
	facts *facts
	// wholes are the numbers of pods that their owners gave to jobs.
	wholes map[types.UID]int64
}

// queued: a controller makes no unit for a part of a job (I3).
func (c *jobCheck) queued(ch *change) {
	if ch.before != nil || ch.by.role != roleController {
		return
	}
	if job := c.facts.consumer(ch.after); job != nil && owner(job) != nil {
		c.w.violate("I3", "%s queued job %s, which is a part of %s", ch.by.process, job.key, owner(job).Name)
	}
}

// onChange: the controller resumes a job only with an admitted unit of its own (I3), at most with the held size (I1).
func (c *jobCheck) onChange(ch *change) {
	c.onSize(ch)
	if ch.before == nil || ch.after == nil || ch.by.role != roleController {
		return
	}
	if ref := owner(ch.after); ref != nil {
		c.w.violate("I3", "%s wrote to job %s, which is a part of %s", ch.by.process, ch.key, ref.Name)
	}
	was, _ := nested(ch.before, "spec")["suspend"].(bool)
	is, _ := nested(ch.after, "spec")["suspend"].(bool)
	outside := ch.after.kind == jobKind && quotaLabel(ch.after) == "" // the job left its queue
	if m := c.w.managers[ch.by.process]; m != nil && was && !is && !outside {
		c.resumed(ch, m.caches[units].seen)
	}
}

// resumed: a controller that knows the units until a version resumes only jobs with an admission of their whole request
// (I1). Only controllers may have suspended such a job (I3).
func (c *jobCheck) resumed(ch *change, since int64) {
	key := c.w.unitKeyOf(ch.after)
	before, after := ch.before.u.GetAnnotations(), ch.after.u.GetAnnotations()
	if stamp := after[v1alpha1.AnnotationResumed]; stamp != "" && stamp == before[v1alpha1.AnnotationResumed] &&
		before[v1alpha1.AnnotationSuspendedBy] == "" {
		c.w.violate("I3", "%s resumed job %s, which its owner had suspended", ch.by.process, ch.key)
	}
	if !c.facts.released(key, ch.after.uid(), since, holds) {
		c.w.violate("I3", "%s resumed job %s, and no unit of it is admitted", ch.by.process, ch.key)
		return
	}
	asked := c.asksFor(ch.after)
	enough := func(o *object) bool { return unrecorded(o) || asked.within(heldOf(o)) }
	if !c.facts.released(key, ch.after.uid(), since, enough) {
		c.w.violate("I1", "%s resumed job %s, which asks for %s, and its unit holds less", ch.by.process, ch.key, asked)
	}
}
