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

package admission

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// The cost of operations of the core does not depend on the load of a machine: examined units, exactly, and
// allocations, at most. A change of cost on purpose changes the numbers here.
func TestCostOfATurn(t *testing.T) {
	for _, c := range []struct {
		scale benchScale
		// admitted and examined in 1,001 turns, each the end of one job, a new one, and what is decided then.
		admitted, examined int
		// allocations of one turn, rounded down: the trees grow now and then.
		allocations float64
	}{
		{scaleOf(1_000, 1, 1, "Priority"), 1001, 2002, 21},
		{scaleOf(1_000, 30, 8, "Priority"), 1011, 247_690, 21},
		{scaleOf(10_000, 30, 8, "Priority"), 1001, 247_531, 23},
		{scaleOf(10_000, 100, 8, "Priority"), 1001, 808_708, 23},
		{scaleOf(1_000, 30, 8, "Block"), 1003, 241_243, 27},
		{scaleOf(10_000, 30, 8, "Block"), 1023, 241_263, 26},
		{scaleOf(10_000, 100, 8, "Block"), 1095, 801_895, 30},
	} {
		t.Run(c.scale.String(), func(t *testing.T) {
			w := c.scale.world()
			for range 500 {
				w.turn()
			}
			allocations := testing.AllocsPerRun(500, w.turn)
			require.True(t, effort.Race || allocations <= c.allocations, "%v allocations, at most %v",
				allocations, c.allocations)
			require.Equal(t, c.admitted, w.admitted, "admitted")
			require.Equal(t, c.examined, w.examined, "examined")
		})
	}
}

// Where everybody borrows, a loan costs two passes: the one that admitted nobody, and the one after the loan.
func TestCostOfALoan(t *testing.T) {
	for _, queues := range []int{10, 100} {
		t.Run(fmt.Sprint("queues=", queues), func(t *testing.T) {
			w := lenders(queues, 10_000)
			w.forget()
			for range 300 {
				w.turn()
			}
			perAdmission := float64(w.examined) / float64(w.admitted)
			t.Logf("%.1f examined per admission, %d admitted", perAdmission, w.admitted)
			require.Greater(t, w.admitted, 240)
			require.LessOrEqual(t, perAdmission, float64(3*8*queues))
		})
	}
}

// Questions to the core in addition to decisions.
func TestCostOfAQuestion(t *testing.T) {
	scale := scaleOf(10_000, 30, 8, "Block")
	w := scale.world()
	key, level := scale.unit(9_000).Key, w.s.quota("dept")
	for name, c := range map[string]struct {
		allocations float64
		ask         func()
	}{
		"position":          {0, func() { w.s.Position(key) }},
		"counts of a queue": {0, func() { w.s.Accounts().CountsOf("q0") }},
		"first hundred units": {
			0, func() { w.s.Line("q0", func(position int, _ *unit.Unit, _ bool) bool { return position < 100 }) },
		},
		"page from the middle":  {12, func() { w.s.Page("q0", 150, 100) }},
		"observation, no news":  {0, func() { w.s.SetQuota(w.now, level) }},
		"unit, no news":         {1, func() { w.s.UpsertUnit(w.now, *w.s.roster.units[key].spec) }},
		"decision, no news":     {0, func() { w.s.Decide(w.now) }},
		"explanation of a unit": {92, func() { w.s.Explain(key) }},
	} {
		t.Run(name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(100, c.ask)
			require.True(t, effort.Race || allocations <= c.allocations, "%v allocations, at most %v",
				allocations, c.allocations)
		})
	}
}

// countedOrder is a policy without keys, so that it is asked for every comparison.
type countedOrder struct {
	queue.Policy
	compared *int
}

func (o countedOrder) Compare(a, b queue.Item) int {
	*o.compared++
	return o.Policy.Compare(a, b)
}

// The position of any unit takes a number of comparisons that grows with the logarithm of the length of its queue.
func TestCostOfAPosition(t *testing.T) {
	compared := 0
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		s := New(Config{Policies: map[string]queue.Factory{"Priority": func(threshold int32) queue.Policy {
			return countedOrder{queue.Builtin()["Priority"](threshold), &compared}
		}}})
		scale := scaleOf(n, 1, 8, "Priority")
		scale.fill(s)
		most := 0
		for i := 0; i < n; i += max(1, n/1000) {
			compared = 0
			_, waits := s.Position(scale.unit(i).Key)
			require.True(t, waits)
			most = max(most, compared)
		}
		require.LessOrEqual(t, most, int(2*math.Log2(float64(n))), "of %d", n)
	}
}
