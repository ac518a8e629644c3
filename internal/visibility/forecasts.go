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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/memory"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

const (
	// patience with the world in which runs take their limits, and as long again with all others.
	patience = 150 * time.Millisecond
	// mostAsked at a time, so that other questions find a place.
	mostAsked = limiter.MaxAtATime / 2
	// mostNamed is the number of jobs that an answer names.
	mostNamed = 5
)

// forecasts says when units will be admitted, one question at a time: an answer takes a processor for some tenths of a
// second.
type forecasts struct {
	clock  clock.PassiveClock
	reader *Reader
	// places are taken by those who ask, and turn while an answer is made.
	places, turn chan struct{}
	memory       *memory.Answers
}

func newForecasts(c clock.PassiveClock, r *Reader) *forecasts {
	return &forecasts{
		clock: c, reader: r, places: make(chan struct{}, mostAsked), turn: make(chan struct{}, 1),
		memory: memory.New(c.Now()),
	}
}

// asked is what the engine knows for an answer. Without facts there is none, or the last one is new enough.
type asked struct {
	unit  questions.UnitInfo
	facts *virtual.Facts
	fresh *v1alpha1.Forecast
}

// inTurn has a question answered within the bounds, after those that came before.
func (f *forecasts) inTurn(
	ctx context.Context, question func(context.Context) (runtime.Object, error),
) (runtime.Object, error) {
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
	return question(ctx)
}

// get answers when a unit will be admitted.
func (f *forecasts) get(ctx context.Context, namespace, name string) (runtime.Object, error) {
	return f.inTurn(ctx, func(ctx context.Context) (runtime.Object, error) { return f.answer(ctx, namespace, name) })
}

func (f *forecasts) answer(ctx context.Context, namespace, name string) (runtime.Object, error) {
	key := namespace + "/" + name
	a, err := answered(ctx, f.reader.source, func(v questions.View) (asked, bool) {
		info, found := v.Unit(key)
		switch {
		case !found || info.Phase.Holds() || info.Phase.Terminal():
			return asked{unit: info}, found
		case info.Phase.Waits():
			if fresh := f.memory.Fresh(key, info.UID, v.Now()); fresh != nil {
				return asked{fresh: fresh}, true
			}
		}
		return asked{unit: info, facts: v.Facts()}, true
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("units", name)
	case a.value.fresh != nil:
		return a.value.fresh, nil
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
	f.memory.Keep(a.at, out, answer, grounds)
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
	past := memory.PastOf(f.reader.History, u.Queue, facts.Queues)
	answer := forecast.Ask(f.question(ctx, facts, a.at, past), u)
	*s = statusOf(answer)
	if position > 0 {
		ahead := count(position - 1)
		s.Ahead = &ahead
	}
	s.EndlessJobs = jobsOf(facts, answer.Endless, u.Namespace())
	if s.Waits = count(len(past.Waits)); s.Waits > 0 {
		slices.Sort(past.Waits)
		s.MedianWait = &metav1.Duration{Duration: past.Waits[(len(past.Waits)-1)/2].Round(time.Second)}
	}
	return answer, forecast.GroundsOf(facts, a.at, u, position)
}

// question about facts that are true at a time.
func (f *forecasts) question(
	ctx context.Context, facts *virtual.Facts, at time.Time, past *memory.Past,
) *forecast.Question {
	begun := f.clock.Now()
	return &forecast.Question{
		Facts: facts, Now: at, Runs: past.Drawn(), Stretch: f.memory.Stretch,
		Stop: func(worlds int) bool {
			return ctx.Err() != nil || f.clock.Since(begun) > patience*time.Duration(min(worlds+1, 2))
		},
	}
}

func statusOf(a *forecast.Answer) v1alpha1.ForecastStatus {
	s := v1alpha1.ForecastStatus{
		About: timeOf(a.About), Latest: timeOf(a.Latest), NotBefore: timeOf(a.NotBefore), Draws: count(a.Draws),
		Limits: count(a.Limits), Past: count(a.Past), Endless: count(len(a.Endless)),
	}
	if a.Checks > 0 {
		s.Checks = &metav1.Duration{Duration: a.Checks.Round(time.Second)}
	}
	return s
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
	keys = slices.Sorted(slices.Values(keys))
	for _, u := range facts.Units {
		if _, found := slices.BinarySearch(keys, u.Key); found && u.Namespace() == namespace {
			_, name, _ := strings.Cut(u.Key, "/")
			names = append(names, cmp.Or(u.Consumer.Name, name))
		}
	}
	slices.Sort(names)
	return names[:min(len(names), mostNamed)]
}
