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

package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// Calibration compares past bounds with real waits, and stretches later bounds by that. Only bounds count that rest on
// past runs. The zero value stretches nothing.
//
// It is split conformal prediction (Papadopoulos et al. 2002): a score is the real wait over the foreseen one, and the
// stretch is a quantile of the scores. Each namespace has scores of its own, since its users decide when its jobs
// arrive, and for how long they run.
type Calibration struct {
	of map[string]*scores
	// learned counts the scores of all namespaces.
	learned int
}

// scores of a namespace, the oldest first. learned is the number of the last one.
type scores struct {
	last    []float64
	learned int
}

const (
	mostScores     = 150
	mostNamespaces = 1000
	// covered is the part of waits that stretched bounds should hold for.
	covered = 0.95
	// fewestScores is the smallest number of which the largest score covers that part.
	fewestScores = 19
	// mostStretch bounds what a single wait does that was expected to be a moment.
	mostStretch = 20
	// spare is added to foreseen waits, so that those of a moment can be stretched.
	spare = time.Minute
)

// Learn that a unit of a namespace was admitted. The answer about it is that to a question at a time.
func (c *Calibration) Learn(namespace string, a *Answer, asked, admitted time.Time) {
	if a.Raw.IsZero() {
		return
	}
	s := c.of[namespace]
	if s == nil {
		if c.of == nil {
			c.of = map[string]*scores{}
		} else if len(c.of) >= mostNamespaces {
			c.forget()
		}
		s = &scores{}
		c.of[namespace] = s
	}
	c.learned++
	s.learned = c.learned
	if len(s.last) == mostScores {
		s.last = slices.Delete(s.last, 0, 1)
	}
	s.last = append(s.last, admitted.Sub(asked).Seconds()/(a.Raw.Sub(asked)+spare).Seconds())
}

// forget the namespace that has learned nothing for longest.
func (c *Calibration) forget() {
	oldest := ""
	for namespace, s := range c.of {
		if oldest == "" || s.learned < c.of[oldest].learned {
			oldest = namespace
		}
	}
	delete(c.of, oldest)
}

// Stretch of the bounds of a namespace; zero is none.
func (c *Calibration) Stretch(namespace string) float64 {
	s := c.of[namespace]
	if s == nil || len(s.last) < fewestScores {
		return 0
	}
	n := int(math.Ceil(covered * float64(len(s.last)+1)))
	return min(slices.Sorted(slices.Values(s.last))[n-1], mostStretch)
}

// stretched bound of an answer to a question at a time, no earlier than it was.
func stretched(bound, asked time.Time, by float64) time.Time {
	return ordered.Later(bound, asked.Add(time.Duration(by*float64(min(bound.Sub(asked)+spare, longest)))))
}

// longest wait that is stretched: a time has no room for all of a longer one.
const longest = 10 * 365 * 24 * time.Hour
