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

package shares

// column is one resource of what siblings share.
type column struct {
	// total to share. named is false if the parent gets nothing because no total is known: then min is not scaled either.
	total int64
	named bool
	// shared: the parent names the resource. If not, nothing is shared out; what is asked for is passed on all the same.
	shared bool
	// mins is the sum of what siblings have as min.
	mins  int64
	dirty bool
	slots []slot
}

// slot is one resource of one quota.
type slot struct {
	request, min, weight, guarantee int64
	// keeps: it does not lend what it does not use. scales: its min shrinks where the total is less than all mins.
	keeps, scales bool
	// promise is what it gets at least if it asks for that much: its min, but nothing where that is scaled down.
	promise int64
	// owed is its min, scaled down where that shrinks.
	owed          int64
	runtime, next int64
}

// distribute sets the next amount of every sibling. Each first gets its min, or its request if that is less and it
// lends the rest. The remainder is divided by weight among the siblings that ask for more, and again while any gets
// more than its request. needy is scratch space. moved is set if an owed amount moves.
func (c *column) distribute(needy []int, moved bool) (scratch []int, owedMoved bool) {
	short := c.named && c.total < c.mins
	left, weights := c.total, int64(0)
	needy = needy[:0]
	for i := range c.slots {
		sl := &c.slots[i]
		least := sl.min
		if short && sl.scales {
			least = scaledMin(c.total, sl.min, c.mins)
		}
		moved = moved || sl.owed != least
		sl.owed = least
		least = max(least, sl.guarantee)
		sl.promise = least
		if short && sl.scales {
			sl.promise = 0 // moves with the total
		}
		switch {
		case sl.request > least:
			needy = append(needy, i)
			weights += sl.weight
			sl.next = least
		case sl.keeps:
			sl.next = least
		default:
			sl.next = sl.request
		}
		left -= sl.next
	}
	rest := needy
	for left > 0 && len(rest) > 0 && weights > 0 {
		rest, left, weights = c.pass(rest, left, weights)
	}
	return needy[:0], moved
}

func scaledMin(total, min, mins int64) int64 {
	if total <= 0 || mins <= 0 {
		return 0
	}
	return int64(float64(total) * float64(min) / float64(mins))
}

// pass gives the needy ones their part. It returns those that still need more, with the amount that the others left.
func (c *column) pass(needy []int, total, weights int64) (rest []int, left, weightsLeft int64) {
	rest = needy[:0]
	for _, i := range needy {
		sl := &c.slots[i]
		sl.next += int64(float64(sl.weight)*float64(total)/float64(weights) + 0.5)
		if sl.next < sl.request {
			rest = append(rest, i)
			weightsLeft += sl.weight
		} else {
			left += sl.next - sl.request
			sl.next = sl.request
		}
	}
	return rest, left, weightsLeft
}
