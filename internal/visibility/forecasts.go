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

package visibility

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

const (
	// patience with the world in which runs take their limits, and as long again with all others.
	patience = 150 * time.Millisecond
	// keptFor is for how long all readers get the same answer.
	keptFor = 5 * time.Second
	// mostKept is the number of units whose last answer is remembered.
	mostKept = 1000
	// mostAsked at a time, so that other questions find a place.
	mostAsked = limiter.MaxAtATime / 2
	// mostRuns and mostWaits are read of the history.
	mostRuns  = 2000
	mostWaits = 50
	// mostNamed is the number of jobs that an answer names.
	mostNamed = 5
	// tolerance within which a bound has neither moved nor been missed.
	tolerance = time.Minute
	// judgedEvery is the time between two looks at which units were admitted.
	judgedEvery = time.Minute
)

// forecasts says when units will be admitted, one at a time: an answer takes a processor for some tenths of a second.
type forecasts struct {
	clock  clock.PassiveClock
	reader *Reader
	// places are taken by those who ask, and turn while an answer is made.
	places, turn chan struct{}

	mu sync.Mutex
	// kept answers by the keys of their units.
	kept map[string]*kept
	// judged is when the kept answers were compared with the history.
	judged time.Time
}

// kept is the last answer about a unit, and a part of earlier ones.
type kept struct {
	uid    string
	at     time.Time
	answer *v1alpha1.Forecast
	// first answer.
	first         time.Time
	about, latest time.Time
	// bound is what latest is compared with, and grounds are its own.
	bound   time.Time
	grounds *forecast.Grounds
}

func newForecasts(c clock.PassiveClock, r *Reader) *forecasts {
	return &forecasts{
		clock: c, reader: r, places: make(chan struct{}, mostAsked), turn: make(chan struct{}, 1), kept: map[string]*kept{},
		judged: c.Now(),
	}
}

// asked is what the engine knows for an answer. Without facts there is none, or the last one is new enough.
type asked struct {
	unit  questions.UnitInfo
	facts *virtual.Facts
}

// get answers when a unit will be admitted, in turn.
func (f *forecasts) get(ctx context.Context, namespace, name string) (runtime.Object, error) {
	leave, err := f.reader.limiter.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	default:
		return nil, apierrors.NewTooManyRequests("too many forecasts at a time", limiter.ComeBack)
	}
	ctx, cancel := context.WithTimeout(ctx, limiter.Timeout)
	defer cancel()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, apierrors.NewTimeoutError("other forecasts took too long", limiter.ComeBack)
	}
	return f.answer(ctx, namespace, name)
}

func (f *forecasts) answer(ctx context.Context, namespace, name string) (runtime.Object, error) {
	key := namespace + "/" + name
	last := f.last(key)
	a, err := answered(ctx, f.reader.source, func(v questions.View) (asked, bool) {
		info, found := v.Unit(key)
		if !found || last.fresh(&info, v.Now()) || info.Phase.Holds() || info.Phase.Terminal() {
			return asked{unit: info}, found
		}
		return asked{info, v.Facts()}, true
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("units", name)
	case a.value.facts == nil && last.fresh(&a.value.unit, a.at):
		return last.answer.DeepCopy(), nil
	}
	out := &v1alpha1.Forecast{ObjectMeta: named(namespace, name), Observation: a.observation()}
	s := &out.Status
	waits := waitsIn(a.value.facts, key)
	if waits == nil {
		s.Reason, s.Message = withoutForecast(&a.value.unit)
		return out, nil
	}
	answer, grounds := f.make(ctx, &a, waits, s)
	if s.About == nil && s.Latest == nil && s.NotBefore == nil {
		s.Reason, s.Message = string(a.value.unit.Reason), a.value.unit.Message
	}
	if ctx.Err() != nil {
		return nil, apierrors.NewTimeoutError("the forecast took too long", limiter.ComeBack)
	}
	f.keep(&a, last, out, answer, grounds)
	return out, nil
}

// waitsIn is the unit of the facts, if it holds nothing yet.
func waitsIn(facts *virtual.Facts, key string) *unit.Unit {
	if facts == nil {
		return nil
	}
	for _, u := range facts.Units {
		if u.Key == key && transition.StageOf(u) != transition.Admitted {
			return u
		}
	}
	return nil
}

// withoutForecast says why a unit has none.
func withoutForecast(u *questions.UnitInfo) (reason, message string) {
	switch {
	case u.Phase.Terminal():
		return "Over", "the job has ended"
	case u.Observed:
		return "Observed", "the queue does nothing about the job"
	case u.Phase.Holds() || u.Reason == "":
		return "HoldsQuota", "the unit holds quota already"
	default:
		return string(u.Reason), u.Message
	}
}

// make an answer.
func (f *forecasts) make(
	ctx context.Context, a *answer[asked], u *unit.Unit, s *v1alpha1.ForecastStatus,
) (*forecast.Answer, *forecast.Grounds) {
	facts, position := a.value.facts, a.value.unit.Explanation.Position
	runs, waits := pastOf(f.reader.History, u.Queue)
	begun := f.clock.Now()
	answer := forecast.Ask(&forecast.Question{
		Facts: facts, Now: a.at, Key: u.Key, Runs: forecast.NewRuns(runs),
		Stop: func(worlds int) bool {
			return ctx.Err() != nil || f.clock.Since(begun) > patience*time.Duration(min(worlds+1, 2))
		},
	})
	s.About, s.Latest, s.NotBefore = timeOf(answer.About), timeOf(answer.Latest), timeOf(answer.NotBefore)
	s.Draws, s.Limits, s.Past = count(answer.Draws), count(answer.Limits), count(answer.Past)
	if position > 0 {
		ahead := count(position - 1)
		s.Ahead = &ahead
	}
	s.Endless, s.EndlessJobs = count(len(answer.Endless)), jobsOf(facts, answer.Endless, u.Namespace())
	if s.Waits = count(len(waits)); s.Waits > 0 {
		slices.Sort(waits)
		s.MedianWait = &metav1.Duration{Duration: waits[(len(waits)-1)/2].Round(time.Second)}
	}
	return &answer, forecast.GroundsOf(facts, a.at, u, position)
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t)
	return &out
}

// jobsOf names the first units of a namespace by their jobs.
func jobsOf(facts *virtual.Facts, keys []string, namespace string) (names []string) {
	for _, u := range facts.Units {
		if _, found := slices.BinarySearch(keys, u.Key); found && u.Namespace() == namespace {
			_, name, _ := strings.Cut(u.Key, "/")
			names = append(names, cmp.Or(u.Consumer.Name, name))
		}
	}
	slices.Sort(names)
	return names[:min(len(names), mostNamed)]
}

// pastOf are the last runs, and the last waits of a queue.
func pastOf(h *history.Recorder, queue string) (runs []forecast.Ended, waits []time.Duration) {
	h.Newest(func(n *history.Numbered) bool {
		switch r := n.Record; {
		case r.Observed:
		case (r.Event == v1alpha1.RecordSucceeded || r.Event == v1alpha1.RecordFailed) && r.Ran > 0 && len(runs) < mostRuns:
			runs = append(runs, forecast.Ended{
				User: r.Namespace, Queue: r.Queue, Size: r.Requested.Key(), Limit: durationIn(r.Limit), Ran: durationIn(r.Ran),
			})
		case r.Event == v1alpha1.RecordAdmitted && r.Queue == queue && len(waits) < mostWaits:
			waits = append(waits, durationIn(r.Waited))
		}
		return len(runs) < mostRuns || len(waits) < mostWaits
	})
	return runs, waits
}

func durationIn(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// last answer about a unit, if any.
func (f *forecasts) last(key string) *kept {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept[key]
}

// fresh says that the answer is about this unit, and new enough.
func (k *kept) fresh(u *questions.UnitInfo, now time.Time) bool {
	return k != nil && k.uid == u.UID && u.Phase.Waits() && now.Sub(k.at) < keptFor
}

// keep an answer, and say why its bound is later than before.
func (f *forecasts) keep(
	a *answer[asked], last *kept, out *v1alpha1.Forecast, answer *forecast.Answer, grounds *forecast.Grounds,
) {
	u := &a.value.unit
	next := &kept{
		uid: u.UID, at: a.at, first: a.at, about: answer.About, latest: answer.Latest, bound: answer.Latest, grounds: grounds,
	}
	if last != nil && last.uid == u.UID {
		next.first, next.about, next.latest = last.first, last.about, last.latest
		moved := last.answer.Status.Moved
		switch {
		case answer.Latest.IsZero():
			next.bound, next.grounds, out.Status.Moved = last.bound, last.grounds, moved
		case last.bound.IsZero():
		case answer.Latest.After(last.bound.Add(tolerance)):
			out.Status.Moved = &v1alpha1.ForecastMoved{
				From: metav1.NewTime(last.bound), Cause: string(grounds.Cause(last.grounds)),
			}
		case answer.Latest.After(last.bound):
			next.bound, next.grounds, out.Status.Moved = last.bound, last.grounds, moved
		case moved != nil && answer.Latest.After(moved.From.Time):
			out.Status.Moved = moved
		}
	}
	next.answer = out.DeepCopy()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept[u.Key] == nil && len(f.kept) >= mostKept {
		oldest := ""
		for key, k := range f.kept {
			if oldest == "" || k.at.Before(f.kept[oldest].at) {
				oldest = key
			}
		}
		delete(f.kept, oldest)
	}
	f.kept[u.Key] = next
}

// judgeAgain judges until the context ends.
func (f *forecasts) judgeAgain(ctx context.Context, c clock.WithTicker) {
	ticker := c.NewTicker(judgedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f.judge()
		}
	}
}

// judge compares the first answers about units that were admitted since it was called last with what became true.
func (f *forecasts) judge() {
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	of := make(map[string]string, len(f.kept))
	for key, k := range f.kept {
		of[k.uid] = key
	}
	since := f.judged.Add(-tolerance)
	f.judged = now
	admitted := map[string]time.Time{} // the first time of each
	f.reader.History.Newest(func(n *history.Numbered) bool {
		r := n.Record
		key, asked := of[r.UID]
		holds := r.Event == v1alpha1.RecordReserved || r.Event == v1alpha1.RecordAdmitted
		if asked && holds && !r.Time.Before(f.kept[key].first) {
			admitted[key] = r.Time
		}
		return r.Time.After(since)
	})
	for key, at := range admitted {
		f.count(f.kept[key], at)
		delete(f.kept, key)
	}
}

// count how right the first answer was about a unit that was admitted at a time.
func (f *forecasts) count(k *kept, admitted time.Time) {
	if !k.about.IsZero() {
		f.reader.Metrics.Observe(metrics.ForecastErrorSeconds, admitted.Sub(k.about).Abs().Seconds())
	}
	if !k.latest.IsZero() {
		missed := admitted.After(k.latest.Add(tolerance))
		f.reader.Metrics.CountIf(!missed, metrics.ForecastBoundsTotal, "Kept")
		f.reader.Metrics.CountIf(missed, metrics.ForecastBoundsTotal, "Missed")
	}
}
