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

package jobplan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A plan reads what the job asks for only if one of its rules goes by it.
func TestWhoIsAsked(t *testing.T) {
	deleted := func(o *Situation) { now := epoch; o.Job.Object.SetDeletionTimestamp(&now) }
	observed := func(o *Situation) { o.Observed, o.Unit.Spec.Mode = true, v1alpha1.ModeObserve }
	earlier := func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.UID = "job-0" }
	for name, tc := range map[string]struct {
		scene *scene
		want  bool
	}{
		"there is no job":               {queued(t).with(gone), false},
		"ended without a unit":          {unqueued(t).condition("Complete"), false},
		"ended, and its unit runs":      {running(t).condition("Complete"), false},
		"ended, and its unit says so":   {running(t).condition("Failed").phase(v1alpha1.PhaseFailed), false},
		"ended, of Koord-Queue":         {foreign(running(t).condition("Complete")), false},
		"ended, observed":               {running(t).with(observed).condition("Complete"), false},
		"not managed":                   {unqueued(t).with(unmanage), false},
		"not managed any more":          {queued(t).with(unmanage).with(marked), false},
		"not managed, observed":         {queued(t).with(observed).with(unmanage), false},
		"is being deleted":              {queued(t).with(deleted), false},
		"is being deleted, and runs":    {running(t).with(deleted), false},
		"is being deleted, evicted":     {running(t).with(evictedFor("Reclaimed")).with(deleted), false},
		"is being deleted, observed":    {queued(t).with(observed).with(deleted), false},
		"waits for its child":           {trainJob(t, true, false), false},
		"its unit is of an earlier job": {queued(t).unit(earlier), false},
		"its unit had ended":            {queued(t).phase(v1alpha1.PhaseSucceed), false},
		"its owner lets it go on":       {queued(t).with(holdIs("false")), false},
		"runs again, and the unit may be old": {running(t).phase("").
			with(func(o *Situation) { o.FreshUnit = false }), false},
		"evicted, and not for others":           {taken(t).with(evictedFor("Unschedulable")).phase(""), false},
		"has pods that may be on nodes":         {unqueued(t).resumedByHand().started(), false},
		"is new":                                {unqueued(t), true},
		"has pods on nodes":                     {unqueued(t).resumedByHand().started().with(podsAre(BoundSome)), true},
		"waits":                                 {queued(t), true},
		"is let go":                             {queued(t).phase(v1alpha1.PhaseDequeued), true},
		"runs":                                  {running(t), true},
		"evicted for others":                    {taken(t).phase(""), true},
		"of Koord-Queue":                        {foreign(queued(t)), true},
		"waits, observed":                       {queued(t).with(observed), true},
		"not managed any more, but let go":      {running(t).with(unmanage), true},
		"not managed any more, and has to stop": {taken(t).with(unmanagedNow), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.scene.Situation
			decide(&s)
			require.Equal(t, tc.want, s.asked != nil)
		})
	}
}
