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
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubemetrics "k8s.io/component-base/metrics"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/memory"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// foreseen is a queue of a quota for one unit at a time. a/running holds it since half past eleven, and b/before and
// a/mine wait, which may run for half an hour.
type foreseen struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	engine  *engine.Driver
	reader  *Reader
	h       http.Handler
	version int
}

func foresee(t *testing.T, leads bool, minutes int64) *foreseen {
	t.Helper()
	f := &foreseen{t: t, clock: clocktesting.NewFakeClock(noon)}
	f.engine = driveBy(t, f.clock)
	f.engine.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shared"}, "spec": map[string]any{"queuePolicy": "Priority"},
	}}, false)
	f.unit("a", "running", "Running", minutes, 0)
	f.unit("b", "before", "Enqueued", 30, 9)
	f.unit("a", "mine", "Enqueued", 30, 5)
	if leads {
		require.NoError(t, f.engine.Lead(t.Context()))
	} else {
		f.engine.Loaded()
	}
	f.engine.Step()
	f.reader = NewReader(stepped{f.engine}, f.clock)
	f.reader.History = history.New(history.Options{Records: 100})
	f.reader.History.Begin(noon)
	f.h = served(t, f.reader, anybody)
	return f
}

// unit of so many minutes at most; zero is no limit.
func (f *foreseen) unit(namespace, name, phase string, minutes, priority int64) {
	u := madeUnit(namespace, name, phase, "shared")
	f.version++
	u.SetResourceVersion(fmt.Sprint(f.version))
	spec := u.Object["spec"].(map[string]any)
	spec["priority"] = priority
	if minutes > 0 {
		spec["maximumExecutionTimeSeconds"] = 60 * minutes
	}
	if phase == "Running" {
		u.Object["status"].(map[string]any)["lastAllocateTime"] = noon.Add(-30 * time.Minute).Format(time.RFC3339)
	}
	f.engine.FeedUnit(u, false)
}

func (f *foreseen) ask(namespace, name string) *v1alpha1.Forecast {
	f.t.Helper()
	got := &v1alpha1.Forecast{}
	answer := call(f.t, f.h, http.MethodGet, base+"/namespaces/"+namespace+"/units/"+name+"/forecast", "u", got)
	require.Equal(f.t, http.StatusOK, answer.Code, answer.Body)
	require.Equal(f.t, "Forecast", got.Kind)
	require.Equal(f.t, name, got.Name)
	return got
}

// ran notes that a unit of a namespace waited and ran.
func (f *foreseen) ran(uid string, waited, ran time.Duration) {
	pending := history.State{
		Key: "a/" + uid, UID: uid, Queue: "shared", Phase: unit.PhaseEnqueued, Created: noon.Add(-ran - waited),
		Requested: resources.FromMap(map[string]int64{"cpu": 4000}), Limit: time.Hour,
	}
	running := pending
	running.Phase, running.Attempts, running.Allocated = unit.PhaseRunning, 1, noon.Add(-ran)
	over := running
	over.Phase = unit.PhaseSucceed
	f.reader.History.Changed(noon.Add(-ran), pending, running)
	f.reader.History.Changed(noon, running, over)
}

func at(t *testing.T, want time.Duration, got interface{ Unix() int64 }) {
	t.Helper()
	require.Equal(t, want.Seconds(), float64(got.Unix()-noon.Unix()))
}

func TestForecast(t *testing.T) {
	for _, leads := range []bool{true, false} {
		f := foresee(t, leads, 60)
		for i := range 5 {
			f.ran(fmt.Sprint("past", i), time.Duration(i)*time.Minute, 45*time.Minute)
		}
		got := f.ask("a", "mine")
		require.Equal(t, leads, got.Leader)
		s := &got.Status
		at(t, 60*time.Minute, s.Latest)
		at(t, 15*time.Minute+30*time.Minute*3/4, s.About)
		require.Nil(t, s.NotBefore)
		require.EqualValues(t, []int32{1, 30, 2, 0, 0, 5}, []int32{*s.Ahead, s.Draws, s.Limits, s.Past, s.Endless, s.Waits})
		require.Equal(t, 2*time.Minute, s.MedianWait.Duration)
		require.Empty(t, s.Reason)
	}
}

// A unit that is not in line has the reason of that in place of a time.
func TestNoForecast(t *testing.T) {
	f := foresee(t, true, 60)
	s := f.ask("a", "running").Status
	require.Equal(t, v1alpha1.ForecastStatus{Reason: "HoldsQuota", Message: "the unit holds quota already"}, s)
	f.unit("a", "over", "Succeed", 0, 0)
	large := madeUnit("a", "large", "Enqueued", "shared")
	large.Object["spec"].(map[string]any)["request"] = map[string]any{"cpu": "11"}
	f.engine.FeedUnit(large, false)
	held := madeUnit("a", "held", "Enqueued", "shared")
	held.Object["spec"].(map[string]any)["active"] = false
	f.engine.FeedUnit(held, false)
	f.engine.Step()
	for name, reason := range map[string]unit.Reason{
		"over": "Over", "large": unit.ReasonExceedsMax, "held": unit.ReasonInactive,
	} {
		s := f.ask("a", name).Status
		require.Equal(t, string(reason), s.Reason, name)
		require.NotEmpty(t, s.Message, name)
		require.Nil(t, s.Latest, name)
	}
	require.Equal(t, http.StatusNotFound,
		call(t, f.h, http.MethodGet, base+"/namespaces/a/units/before/forecast", "u", nil).Code)
}

// A job without a limit and without past runs is named to its own namespace alone.
func TestAForecastNamesNoJobOfOthers(t *testing.T) {
	f := foresee(t, true, 0)
	mine := f.ask("a", "mine").Status
	require.Nil(t, mine.About)
	require.Nil(t, mine.Latest)
	require.Equal(t, string(unit.ReasonQuotaExceeded), mine.Reason)
	require.EqualValues(t, 1, mine.Endless)
	require.Equal(t, []string{"running"}, mine.EndlessJobs)
	theirs := f.ask("b", "before").Status
	require.EqualValues(t, 1, theirs.Endless)
	require.Empty(t, theirs.EndlessJobs)
}

// Readers of the next seconds get the same answer, unless the unit is another one.
func TestAForecastIsKept(t *testing.T) {
	f := foresee(t, true, 60)
	first := f.ask("a", "mine")
	f.unit("b", "urgent", "Enqueued", 30, 9)
	f.clock.Step(memory.FreshFor - time.Second)
	require.Equal(t, first, f.ask("a", "mine"))
	f.clock.Step(time.Second)
	at(t, 90*time.Minute, f.ask("a", "mine").Status.Latest)
}

func TestABoundThatMoves(t *testing.T) {
	f := foresee(t, true, 60)
	again := func() *v1alpha1.ForecastStatus {
		f.engine.Step()
		f.clock.Step(memory.FreshFor)
		return &f.ask("a", "mine").Status
	}
	require.Nil(t, again().Moved)
	f.unit("b", "urgent", "Enqueued", 10, 9)
	moved := again().Moved
	at(t, 60*time.Minute, &moved.From)
	require.Equal(t, "ArrivalAhead", moved.Cause)
	require.Equal(t, moved, again().Moved, "until it is back")
	f.reader.forecasts.clock = slow{f.clock}
	require.Equal(t, moved, again().Moved, "an answer without a bound changes nothing")
	f.reader.forecasts.clock = f.clock
	require.Equal(t, moved, again().Moved)
	f.unit("b", "urgent", "Enqueued", 10, 1)
	require.Nil(t, again().Moved)
	f.clock.SetTime(noon.Add(25 * time.Minute))
	require.Nil(t, again().Moved)
	f.clock.SetTime(noon.Add(32 * time.Minute)) // a/running is two minutes beyond its limit
	moved = again().Moved
	require.Equal(t, "HolderBeyondItsLimit", moved.Cause)
}

// The first answer about a unit is compared with its admission.
func TestForecastsAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		real   time.Duration
		result string
		off    float64
	}{
		"before":          {45 * time.Minute, "Kept", 900},
		"within a minute": {61 * time.Minute, "Kept", 60},
		"too late":        {62 * time.Minute, "Missed", 120},
	} {
		t.Run(name, func(t *testing.T) {
			f := foresee(t, true, 60)
			f.reader.Metrics = metrics.New(metrics.Scheduler)
			registry := kubemetrics.NewKubeRegistry()
			f.reader.Metrics.MustRegister(registry.MustRegister)
			f.ask("a", "mine")
			f.reader.forecasts.memory.Judge(f.clock.Now(), f.reader.History, f.reader.Metrics)
			pending := history.State{Key: "a/mine", UID: "minea", Queue: "shared", Phase: unit.PhaseEnqueued, Created: noon}
			reserved := pending
			reserved.Phase, reserved.Attempts = unit.PhaseReserved, 1
			admitted := reserved
			admitted.Phase = unit.PhaseDequeued
			f.reader.History.Changed(noon.Add(c.real), pending, reserved)
			f.reader.History.Changed(noon.Add(c.real+time.Second), reserved, admitted)
			for range 2 {
				f.clock.SetTime(noon.Add(c.real + 10*time.Second))
				f.reader.forecasts.memory.Judge(f.clock.Now(), f.reader.History, f.reader.Metrics)
			}
			families, err := registry.Gather()
			require.NoError(t, err)
			counted := map[string]float64{}
			for _, family := range families {
				for _, m := range family.GetMetric() {
					switch name := strings.TrimPrefix(family.GetName(), metrics.Prefix); name {
					case "forecast_error_seconds":
						counted[name] = m.GetHistogram().GetSampleSum()
						require.EqualValues(t, 1, m.GetHistogram().GetSampleCount())
					case "forecast_bounds_total":
						counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
					}
				}
			}
			want := map[string]float64{"forecast_error_seconds": c.off, "Kept": 0, "Missed": 0}
			want[c.result] = 1
			require.Equal(t, want, counted)
		})
	}
}

// slow is a clock by which everything takes too long.
type slow struct{ *clocktesting.FakeClock }

func (slow) Since(time.Time) time.Duration { return 2*patience + 1 }

func TestAForecastThatTakesTooLong(t *testing.T) {
	f := foresee(t, true, 60)
	f.reader.forecasts.clock = slow{f.clock}
	s := f.ask("a", "mine").Status
	require.Nil(t, s.About)
	require.Nil(t, s.Latest)
	at(t, 30*time.Minute, s.NotBefore)
	require.Empty(t, s.Reason)
}

// The source of these tests is for one question at a time.
func TestOneForecastAtATime(t *testing.T) {
	f := foresee(t, true, 60)
	codes := make(chan int)
	for i := range mostAsked {
		go func() {
			path := fmt.Sprintf("%s/namespaces/%s/forecast", base, []string{"a/units/mine", "b/units/before"}[i%2])
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			req.Header.Set("X-User", fmt.Sprint("user", i))
			recorder := httptest.NewRecorder()
			f.h.ServeHTTP(recorder, req)
			codes <- recorder.Code
		}()
	}
	for range mostAsked {
		require.Equal(t, http.StatusOK, <-codes)
	}
	for range mostAsked {
		f.reader.forecasts.places <- struct{}{}
	}
	answer := call(t, f.h, http.MethodGet, base+"/namespaces/a/units/mine/forecast", "u", nil)
	require.Equal(t, http.StatusTooManyRequests, answer.Code)
	require.Equal(t, "1", answer.Header().Get("Retry-After"))
}

// The time that checks took counts, and the first admission after them is what a forecast is compared with.
func TestChecksOfAQueueTakeTime(t *testing.T) {
	f := foresee(t, true, 60)
	f.engine.FeedCheck(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "nodes"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Active", "status": "True"}}},
	}}, false)
	f.engine.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shared", "resourceVersion": "2"}, "spec": map[string]any{
			"queuePolicy": "Priority", "admissionChecks": []any{map[string]any{"name": "nodes"}},
		},
	}}, false)
	f.engine.Step()
	for i := range 3 {
		waits := history.State{
			Key: "a/past", UID: fmt.Sprint("past", i), Queue: "shared", Phase: unit.PhaseEnqueued, Created: noon.Add(-time.Hour),
		}
		reserved := waits
		reserved.Phase, reserved.Attempts = unit.PhaseReserved, 1
		admitted := reserved
		admitted.Phase = unit.PhaseDequeued
		f.reader.History.Changed(noon.Add(-time.Hour), waits, reserved)
		f.reader.History.Changed(noon.Add(-time.Hour+10*time.Minute), reserved, admitted)
	}
	s := f.ask("b", "before").Status
	require.Equal(t, 10*time.Minute, s.Checks.Duration)
	at(t, 40*time.Minute, s.Latest)
}
