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

package memory

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	// FreshFor is for how long all readers get the same answer.
	FreshFor = 5 * time.Second
	// mostKept is the number of units whose last answer is remembered.
	mostKept = 1000
	// tolerance within which a bound has neither moved nor been missed.
	tolerance = time.Minute
)

// Answers are the last ones about units.
type Answers struct {
	mu sync.Mutex
	// of units by their keys.
	of map[string]*Answer
	// judged is when they were compared with the history.
	judged time.Time
	past   forecast.Calibration
}

// Answer is the last one about a unit, and a part of the first one.
type Answer struct {
	uid string
	at  time.Time
	// forecast is nil for a unit that was only part of a list.
	forecast *v1alpha1.Forecast
	// asked first, with this answer.
	asked time.Time
	first forecast.Answer
	// stretch of all bounds of the unit: another one would have them move.
	stretch float64
	// bound is what the next one is compared with, and grounds are its own.
	bound   time.Time
	grounds *forecast.Grounds
	// disturbed: the unit was changed since, so the first answer says nothing.
	disturbed bool
}

// New remembers nothing.
func New(now time.Time) *Answers { return &Answers{of: map[string]*Answer{}, judged: now} }

// Fresh is the last answer about a unit, if it is new enough.
func (m *Answers) Fresh(key, uid string, now time.Time) *v1alpha1.Forecast {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.about(key, uid); a != nil && a.forecast != nil && now.Sub(a.at) < FreshFor {
		return a.forecast.DeepCopy()
	}
	return nil
}

func (m *Answers) about(key, uid string) *Answer {
	if a := m.of[key]; a != nil && a.uid == uid {
		return a
	}
	return nil
}

// Stretch of the bounds of a unit.
func (m *Answers) Stretch(u *unit.Unit) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.about(u.Key, u.UID); a != nil {
		return a.stretch
	}
	return m.past.Stretch(u.Namespace())
}

// Keep an answer of now about one unit, and say in it why its bound is later than before.
func (m *Answers) Keep(now time.Time, out *v1alpha1.Forecast, answer *forecast.Answer, grounds *forecast.Grounds) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.note(now, answer)
	a.at = now
	var moved *v1alpha1.ForecastMoved
	if a.forecast != nil {
		moved = a.forecast.Status.Moved
	}
	latest := answer.Latest
	switch {
	case latest.IsZero():
		out.Status.Moved = moved
	case !a.bound.IsZero() && latest.After(a.bound.Add(tolerance)):
		out.Status.Moved = &v1alpha1.ForecastMoved{From: metav1.NewTime(a.bound), Cause: string(grounds.Cause(a.grounds))}
		a.bound, a.grounds = latest, grounds
	case !a.bound.IsZero() && latest.After(a.bound):
		out.Status.Moved = moved
	default:
		if moved != nil && latest.After(moved.From.Time) {
			out.Status.Moved = moved
		}
		a.bound, a.grounds = latest, grounds
	}
	a.forecast = out.DeepCopy()
}

// Note that units were part of a list now. They are judged as well.
func (m *Answers) Note(now time.Time, answers []forecast.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range answers {
		m.note(now, &answers[i])
	}
}

// note a unit that is not known, or not as this one.
func (m *Answers) note(now time.Time, answer *forecast.Answer) *Answer {
	u := answer.Unit
	if a := m.about(u.Key, u.UID); a != nil {
		return a
	}
	if m.of[u.Key] == nil && len(m.of) >= mostKept {
		m.forget()
	}
	a := &Answer{uid: u.UID, asked: now, first: *answer, stretch: m.past.Stretch(u.Namespace())}
	a.first.Unit, a.first.Endless = nil, nil
	m.of[u.Key] = a
	return a
}

// forget the oldest answer. Those of lists are first.
func (m *Answers) forget() {
	oldest := ""
	for key, a := range m.of {
		last := m.of[oldest]
		if last == nil || a.at.Before(last.at) || a.at.Equal(last.at) && a.asked.Before(last.asked) {
			oldest = key
		}
	}
	delete(m.of, oldest)
}

// JudgeAgain judges each minute until the context ends.
func (m *Answers) JudgeAgain(ctx context.Context, c clock.WithTicker, h *history.Recorder, count *metrics.Set) {
	ticker := c.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			m.Judge(c.Now(), h, count)
		}
	}
}

// Judge compares the first answers about units that were admitted since it was called last with what became true.
func (m *Answers) Judge(now time.Time, h *history.Recorder, count *metrics.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := make(map[string]string, len(m.of))
	for key, a := range m.of {
		of[a.uid] = key
	}
	since := m.judged.Add(-tolerance)
	m.judged = now
	admitted := map[string]time.Time{} // the first time of each
	h.Newest(func(n *history.Numbered) bool {
		r := n.Record
		key, asked := of[r.UID]
		if a := m.of[key]; asked && !r.Time.Before(a.asked) {
			switch r.Event {
			case v1alpha1.RecordAdmitted:
				admitted[key] = r.Time
			case v1alpha1.RecordReserved:
				if a.first.Checks == 0 {
					admitted[key] = r.Time
				}
			case v1alpha1.RecordChanged, v1alpha1.RecordDeactivated:
				a.disturbed = true
			default:
			}
		}
		return r.Time.After(since)
	})
	for key, at := range admitted {
		if a := m.of[key]; !a.disturbed {
			a.judge(at, count)
			namespace, _, _ := strings.Cut(key, "/")
			m.past.Learn(namespace, &a.first, a.asked, at)
		}
		delete(m.of, key)
	}
}

// judge how right the first answer was about a unit that was admitted at a time.
func (a *Answer) judge(admitted time.Time, count *metrics.Set) {
	if about := a.first.About; !about.IsZero() {
		count.Observe(metrics.ForecastErrorSeconds, admitted.Sub(about).Abs().Seconds())
	}
	if latest := a.first.Latest; !latest.IsZero() {
		missed := admitted.After(latest.Add(tolerance))
		count.CountIf(!missed, metrics.ForecastBoundsTotal, "Kept")
		count.CountIf(missed, metrics.ForecastBoundsTotal, "Missed")
	}
}
