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
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
)

// lists asks for the forecasts of a namespace, or of all.
func (f *foreseen) lists(path string) *v1alpha1.ForecastList {
	f.t.Helper()
	got := &v1alpha1.ForecastList{}
	answer := call(f.t, f.h, http.MethodGet, base+path, "u", got)
	require.Equal(f.t, http.StatusOK, answer.Code, answer.Body)
	return got
}

// A list says of each unit what its own forecast says, and of a namespace nothing about others.
func TestAListOfForecasts(t *testing.T) {
	f := foresee(t, true, 60)
	f.unit("a", "later", "Enqueued", 30, 1)
	f.unit("a", "other", "Enqueued", 30, 7)
	f.engine.Step()
	names := func(list *v1alpha1.ForecastList) (names []string) {
		for i := range list.Items {
			names = append(names, list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
		return names
	}
	list := f.lists("/namespaces/a/forecasts")
	require.Equal(t, []string{"a/other", "a/mine", "a/later"}, names(list))
	for i := range list.Items {
		item := &list.Items[i].Status
		alone := f.ask("a", list.Items[i].Name).Status
		require.Equal(t, []any{alone.About, alone.Latest, alone.Draws, alone.Limits},
			[]any{item.About, item.Latest, item.Draws, item.Limits})
	}
	require.Equal(t, []string{"b/before", "a/other", "a/mine", "a/later"}, names(f.lists("/forecasts")))
	require.Equal(t, []string{"b/before", "a/other"}, names(f.lists("/forecasts?limit=2")))
	require.Len(t, f.lists("/forecasts?fieldSelector=queue%3Dshared").Items, 4)
	require.Empty(t, f.lists("/forecasts?fieldSelector=queue%3Dnone").Items)
	for _, query := range []string{"fieldSelector=quota%3Da", "fieldSelector=queue%21%3Da", "labelSelector=a"} {
		answer := call(t, f.h, http.MethodGet, base+"/forecasts?"+query, "u", nil)
		require.Equal(t, http.StatusBadRequest, answer.Code, query)
	}
}

// A tenant with many units gets the first ones, for the price of one forecast.
func TestAListIsBounded(t *testing.T) {
	f := foresee(t, true, 60)
	for i := range 3 * mostListed {
		f.unit("a", fmt.Sprint("many", i), "Enqueued", 1, 8)
	}
	f.engine.Step()
	require.Len(t, f.lists("/namespaces/a/forecasts").Items, mostListed)
	lists := newForecastLists(f.reader.forecasts)
	asks := 0
	f.reader.source = counted{stepped{f.engine}, &asks}
	for i := range 3 * mostLists {
		_, err := lists.list(t.Context(), narrowed{queue: fmt.Sprint(i)}, 1)
		require.NoError(t, err)
	}
	require.Equal(t, 1, asks, "facts of a second are copied once")
	require.LessOrEqual(t, len(lists.kept), mostLists)
	f.clock.Step(factsFor)
	f.reader.forecasts.clock = slow{f.clock}
	require.Empty(t, f.lists("/namespaces/b/forecasts").Items, "it takes too long")
	for range mostAsked {
		f.reader.forecasts.places <- struct{}{}
	}
	answer := call(t, f.h, http.MethodGet, base+"/forecasts", "u", nil)
	require.Equal(t, http.StatusTooManyRequests, answer.Code)
}

// counted counts the questions to the engine.
type counted struct {
	Source
	asks *int
}

func (c counted) Ask(ctx context.Context, f func(questions.View)) error {
	*c.asks++
	return c.Source.Ask(ctx, f)
}
