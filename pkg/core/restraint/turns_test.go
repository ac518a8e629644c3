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

package restraint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One quota has new requests without end. Each other quota has its turn nevertheless.
func TestQuotasTakeTurns(t *testing.T) {
	var turns Turns
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	searched := map[string]time.Time{}
	served := map[string]int{}
	for range 10 {
		var requests []Request
		for range 20 {
			requests = append(requests, Request{Quota: "many"}) // each is new
		}
		for _, quota := range []string{"a", "b", "c"} {
			requests = append(requests, Request{quota, searched[quota]})
		}
		for _, i := range turns.Order(now, requests, 2) {
			quota := requests[i].Quota
			searched[quota] = now
			served[quota]++
		}
		now = now.Add(time.Second)
	}
	require.Equal(t, map[string]int{"many": 5, "a": 5, "b": 5, "c": 5}, served)
}

func TestOneQuotaHasAllTurns(t *testing.T) {
	var turns Turns
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	requests := []Request{{"a", at.Add(2)}, {"a", at}, {"b", at.Add(3)}, {"a", at.Add(1)}}
	require.Equal(t, []int{1, 2, 3, 0}, turns.Order(at, requests, 8))
}

// A quota that has no request any more is forgotten. When it has one again, its turn comes first.
func TestTurnsEndWithTheLastRequest(t *testing.T) {
	var turns Turns
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(requests ...Request) []int {
		now = now.Add(time.Second)
		return turns.Order(now, requests, 1)
	}
	a, b := Request{Quota: "a"}, Request{Quota: "b"}
	require.Equal(t, []int{0}, at(a, b))
	require.Equal(t, []int{1}, at(a, b))
	require.Equal(t, []int{0}, at(b))
	require.Len(t, turns.last, 1)
	require.Equal(t, []int{1}, at(b, a), "a had its turn before b, and nobody looked for it since")
	require.Equal(t, []int{0}, at(b, a))
	require.Empty(t, at())
	require.Empty(t, turns.last)
}
