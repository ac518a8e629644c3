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

package formerkey

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIgnored(t *testing.T) {
	type set = map[string]string
	const waits, available = "koord-queue/wait-for-pods-running", "koord-queue/available-quota"
	const active = "scheduling.x-k8s.io/active"
	for name, tc := range map[string]struct {
		of                  Object
		labels, annotations set
		except              []string
		want                []string
	}{
		"nothing":                {Queue, nil, nil, nil, nil},
		"another key":            {Queue, set{"a": "b"}, set{"koord-queue/x": "true"}, nil, nil},
		"asks for nothing":       {Queue, nil, set{waits: "false"}, nil, nil},
		"without effect":         {Queue, nil, set{waits: "true"}, nil, []string{waits}},
		"of another object":      {Job, nil, set{waits: "true"}, nil, nil},
		"honoured":               {Queue, nil, set{"koord-queue/max-depth": "5"}, nil, nil},
		"honoured, unreadable":   {Queue, nil, set{"koord-queue/max-depth": "many"}, nil, []string{"koord-queue/max-depth"}},
		"honoured elsewhere":     {Quota, nil, set{"koord-queue/max-depth": "5"}, nil, []string{"koord-queue/max-depth"}},
		"honoured on a queue":    {Queue, nil, set{available: "a"}, nil, nil},
		"told on a namespace":    {Namespace, nil, set{available: "a"}, nil, []string{available}},
		"a record":               {Job, nil, set{"koord-queue/job-has-enqueued": "true"}, nil, nil},
		"as a label":             {Quota, set{enable: "false"}, nil, nil, []string{enable}},
		"switched on":            {Quota, set{enable: "true"}, nil, nil, nil},
		"held":                   {Job, nil, set{active: "false"}, nil, nil},
		"active":                 {Job, nil, set{active: "true"}, nil, nil},
		"neither":                {Job, nil, set{active: "no"}, nil, []string{active}},
		"the kind knows no key":  {Job, nil, set{Suspend: "true"}, []string{""}, []string{Suspend}},
		"the kind knows the key": {Job, nil, set{Suspend: "true"}, []string{Suspend}, nil},
		"several, in the order of the table": {Job, nil, set{
			"koord-queue/job-enqueue-timestamp": "x", "scheduling.x-k8s.io/placement": strings.Repeat("x", 1<<20),
		}, nil, []string{"scheduling.x-k8s.io/placement", "koord-queue/job-enqueue-timestamp"}},
	} {
		t.Run(name, func(t *testing.T) {
			var keys []string
			if text := Ignored(tc.of, tc.labels, tc.annotations, tc.except...); text != "" {
				for _, words := range strings.Split(text, ". ") {
					key, use, _ := strings.Cut(words, " has no effect: ")
					require.NotEmpty(t, use)
					keys = append(keys, key)
				}
			}
			require.Equal(t, tc.want, keys)
		})
	}
}

// TestTable: each key of an object is listed once, and all that one object can be told fits an event.
func TestTable(t *testing.T) {
	seen, length := map[[2]string]bool{}, map[Object]int{}
	for _, r := range Table() {
		key := [2]string{string(r.Object), r.Key}
		require.False(t, seen[key], key)
		seen[key] = true
		if r.Fate == Told || r.Fate == ByKind {
			require.NotEmpty(t, r.Use, key)
			length[r.Object] += len(r.Key + " has no effect: " + r.Use + ". ")
		}
	}
	for of, bytes := range length {
		require.Less(t, bytes, 1024, of)
	}
}

func TestMaxPending(t *testing.T) {
	for text, want := range map[string]int32{
		"": 0, "7": 7, "2147483647": 2147483647, "2147483648": 0, "0": 0, "-1": 0, "1.5": 0, " 7": 0, "many": 0,
	} {
		got := MaxPending(map[string]string{"koord-queue/max-depth": text})
		if want == 0 {
			require.Nil(t, got, text)
			continue
		}
		require.Equal(t, want, *got, text)
	}
}
