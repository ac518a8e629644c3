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

package placementcheck

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Twenty namespaces ask questions without end, each of which takes all the time that a search may. After the first
// round, the short question of another namespace waits for one search at most.
func TestLongSearchesDelayTheirOwnNamespaces(t *testing.T) {
	const slow = 20
	w := newWorld(t, 0)
	add := func(namespace string, n int) {
		qu := reserved(fmt.Sprint(n), 1, 1)
		qu.Namespace, qu.UID = namespace, types.UID(namespace+qu.Name)
		require.NoError(t, w.objects.Create(t.Context(), qu))
		w.Unit(namespace+"/"+qu.Name, qu.UID, unit.PhaseReserved)
	}
	answered := time.Time{}
	w.nodes.search = func(of *corev1.Pod) {
		if of.Namespace == "short" {
			w.clock.Step(10 * time.Millisecond)
			answered = w.clock.Now()
			return
		}
		w.clock.Step(searchTime)
	}
	for n := range 5 {
		for i := range slow {
			add(fmt.Sprint("slow", i), n)
		}
	}
	for range slow {
		w.answer(t.Context())
	}
	for n := range 4 {
		asked := w.clock.Now()
		add("short", n)
		for range slow + 1 {
			w.answer(t.Context())
		}
		require.LessOrEqual(t, answered.Sub(asked), searchTime)
	}
}

// step of a test of turns: namespaces that get questions, then the namespace of the next turn, if any, and the time of
// its search.
type step struct {
	pause  time.Duration
	wait   string
	next   string
	search time.Duration
}

func TestTurns(t *testing.T) {
	for name, steps := range map[string][]step{
		"in the order in which they came": {
			{wait: "bca", next: "b"}, {next: "c"}, {next: "a"},
		},
		"the second of one after the first of all": {
			{wait: "aaabc", next: "a"}, {next: "b"}, {next: "c"}, {next: "a"}, {next: "a"},
		},
		"by the time that each used": {
			{wait: "abaaabb", next: "a", search: 4 * time.Second},
			{next: "b", search: 3 * time.Second}, {next: "b", search: 3 * time.Second},
			{next: "a", search: 3 * time.Second}, {next: "b"}, {next: "a"}, {next: "a"},
		},
		"one that did not wait in between": {
			{wait: "a", next: "a", search: 2 * time.Second}, {pause: time.Minute, wait: "ab", next: "b"}, {next: "a"},
		},
		"one that comes late is ahead by little": {
			{wait: "aaaa", next: "a", search: time.Hour}, {next: "a"},
			{wait: "bbb", next: "b", search: mostAhead - 1}, {next: "b", search: 2},
			{next: "a"}, {next: "a"}, {next: "b"},
		},
		"forgotten after an hour": {
			{wait: "a", next: "a", search: time.Second}, {pause: forgetAfter, wait: "c", next: "c"},
			{wait: "ab", next: "a"}, {next: "b"},
		},
		"not before": {
			{wait: "a", next: "a", search: time.Second}, {pause: forgetAfter - 1, wait: "c", next: "c"},
			{wait: "ab", next: "b"}, {next: "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
			turns := newTurns(now)
			for i, s := range steps {
				now.Step(s.pause)
				for _, namespace := range s.wait {
					turns.Push(item{namespace: string(namespace), name: fmt.Sprint(i)})
				}
				taken := now.Now()
				require.Equal(t, s.next, turns.Pop().namespace, "step %d", i)
				now.Step(s.search)
				turns.used(s.next, taken)
			}
			require.Zero(t, turns.Len())
		})
	}
}

// Namespaces that come and go are forgotten.
func TestTurnsAreBounded(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	turns := newTurns(now)
	for i := range 20_000 {
		turns.Push(item{namespace: fmt.Sprint(i)})
		taken := now.Now()
		next := turns.Pop()
		now.Step(time.Second)
		turns.used(next.namespace, taken)
		require.LessOrEqual(t, len(turns.of), int(2*forgetAfter/time.Second)+1)
	}
}
