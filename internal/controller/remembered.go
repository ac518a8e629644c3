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

package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownwrites"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/turns"
)

// correctionDelay is for how long a unit that was created, or set right, is not again on cached news.
const correctionDelay = 5 * time.Second

// remembered is what a reconciler remembers of one job. A time is zero where there is nothing to remember.
type remembered struct {
	said event.Said
	// created is when its unit was created that has not been seen yet. None is created again before the watch has brought
	// it: the request would be refused, and delay the admission of the job.
	created time.Time
	// lastCreated is when a unit of the job was created last.
	lastCreated time.Time
	// started is when the job was seen to run, of which that is not written yet.
	started time.Time
	// patched is when its unit was set right last, if that was lately.
	patched time.Time
	// owing is the unit that lost its quota to others, while the job has not been suspended since.
	owing types.UID
	// refusal is why the API server refused the last suspension; empty if the job is suspended, or nobody tried.
	refusal string
	// stall is when somebody last looked why the job does not run.
	stall time.Time
	// notified is how many pods were told of the eviction at this time.
	evicted  time.Time
	notified int
	// turn in which the job is resumed.
	turn turns.Turn
	// written is what this process wrote last of the job and its unit.
	written ownwrites.Versions
}

// observe fills in remembered facts, and forgets outdated ones.
func (m *remembered) observe(s *jobplan.Situation) {
	now := s.Now.Time
	s.StallSeen = m.stall
	if s.Unit != nil {
		m.created = time.Time{}
	}
	if !jobplan.StartsToRun(s.Job, s.Unit) {
		m.started = time.Time{}
	} else {
		if m.started.IsZero() {
			m.started = now
		}
		since := metav1.NewTime(m.started)
		s.RunningSince = &since
	}
	switch {
	case s.Job.Suspended():
		m.owing, m.refusal = "", ""
	case jobplan.RunsWithoutQuota(s.Job, s.Unit):
		m.owing = s.Unit.UID
	case s.Unit != nil && s.Unit.UID == m.owing:
		m.owing = "" // the unit was admitted again
	}
	s.LostUnit = m.owing != "" && (s.Unit == nil || s.Unit.UID != m.owing)
	s.SuspensionRefused = m.refusal
	onItsWay := lately(m.created, now, conflictDelay) // and is not created again, whatever the job is
	s.CreatedLately = lately(m.lastCreated, now, correctionDelay) && !onItsWay
	if s.PatchedLately = lately(m.patched, now, correctionDelay); !s.PatchedLately {
		m.patched = time.Time{}
	}
}

// mayNotify one more pod.
func (m *remembered) mayNotify(a jobplan.Notify) bool {
	return !m.evicted.Equal(evictionOf(a)) || m.notified < a.Most
}

// noteNotice counts a write of a pod.
func (m *remembered) noteNotice(a jobplan.Notify) {
	if of := evictionOf(a); !m.evicted.Equal(of) {
		m.evicted, m.notified = of, 0
	}
	m.notified++
}

// evictionOf a notice; zero for one that is withdrawn.
func evictionOf(a jobplan.Notify) time.Time {
	if a.Notice == nil {
		return time.Time{}
	}
	return a.Notice.Evicted
}

// lately says whether that was less than d ago.
func lately(at, now time.Time, d time.Duration) bool { return !at.IsZero() && now.Sub(at) < d }

// behind says whether what was observed is older than the own last write.
func (m *remembered) behind(s jobplan.Situation) bool {
	return m != nil && (s.Job != nil && m.written.Behind(s.Job.Object) || s.Unit != nil && m.written.Behind(s.Unit))
}
