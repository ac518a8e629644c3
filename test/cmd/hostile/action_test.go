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

package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const rate = 12

func TestTheSameSeedGivesTheSameObjects(t *testing.T) {
	require.Equal(t, plan(7, time.Minute, rate), plan(7, time.Minute, rate))
	require.NotEqual(t, plan(7, time.Minute, rate), plan(8, time.Minute, rate))
}

func TestAPlanKeepsItsRateAndItsBounds(t *testing.T) {
	const length = 5 * time.Minute
	actions := plan(1, length, rate)
	require.InEpsilon(t, rate*length.Seconds(), len(actions), 0.15)
	var last time.Duration
	var size int
	live := 0
	for i, a := range actions {
		require.Less(t, a.at, length)
		require.GreaterOrEqual(t, a.at, last, "in order")
		last = a.at
		size += len(a.body)
		require.Less(t, len(a.body), 2<<20, "the API server takes no more than 3 MB, and etcd 1.5")
		if !a.creates() {
			continue
		}
		require.NotEmpty(t, a.name)
		live = 0
		for _, earlier := range actions[:i+1] {
			if earlier.creates() && earlier.at+earlier.lives > a.at {
				live++
			}
		}
		require.Less(t, live, rate*int(longest/time.Second), "objects at once")
	}
	require.Less(t, size, 100<<20)
}

// Every place of every table, each kind and each way to write is in a run of ten minutes.
func TestAPlanReachesEverything(t *testing.T) {
	seen := map[string]bool{}
	var all bytes.Buffer
	for _, a := range plan(1, 10*time.Minute, rate) {
		seen[a.method+" "+a.kind] = true
		all.Write(a.body)
	}
	for _, what := range []string{
		"POST jobs", "PATCH jobs", "DELETE jobs", "POST pods", "PATCH pods", "POST queueunits", "PATCH queueunits",
		"DELETE queueunits", "POST queues", "PATCH queues", "POST elasticquotas", "PATCH elasticquotas", "POST cronjobs",
		"PATCH configmaps", "DELETE pods",
	} {
		require.True(t, seen[what], what)
	}
	text := all.String()
	for _, table := range [][]field{jobFields, jobChanges, podFields, unitFields} {
		for _, f := range table {
			key := f.path[len(f.path)-1]
			require.Contains(t, text, `"`+key+`":`)
		}
	}
	require.Contains(t, text, victimUID)
	require.Contains(t, text, uidMark)
	require.Contains(t, text, long(1<<20))
	for _, attack := range []string{
		`"fill":"` + long(mostAnnotations-800) + `"`, `"finalizers":["example.com/kept"]`, `"controller":true`,
		`"koord-queue/hold":"true"`, `"active":false`, `"terminationGracePeriodSeconds":31536000`,
		`gang.scheduling.koordinator.sh/groups`,
	} {
		require.Contains(t, text, attack)
	}
}

// Values from a table are copied into an object.
func TestTablesStayAsTheyAre(t *testing.T) {
	before, err := json.Marshal(worstPodSets())
	require.NoError(t, err)
	value := clone(object{"a": []any{object{"b": "c"}}}).(object)
	put(value["a"].([]any)[0].(object), "d", "b")
	o := object{}
	put(o, clone(worstStatuses[0]), "status")
	put(o, "x", "status", "phase")
	require.Equal(t, "Dequeued", worstStatuses[0].(object)["phase"])
	after, err := json.Marshal(worstPodSets())
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestPut(t *testing.T) {
	o := object{"a": "in the way"}
	put(o, 1, "a", "b", "c")
	put(o, 2, "a", "d")
	require.Equal(t, object{"a": object{"b": object{"c": 1}, "d": 2}}, o)
}
