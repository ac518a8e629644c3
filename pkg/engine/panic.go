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

package engine

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// maxBackoffDoublings bounds the time without decisions after a panic of the core: 64 s.
const maxBackoffDoublings = 6

// corePanicked has the state built anew after a panic of the core, in a call about the unit of this key if it is not
// empty. The objects that it is built from are the same, so it would panic again for ever and nobody be admitted. So
// somebody is to blame, and parked:
//   - the unit that the call was about, at once;
//   - the unit that the core was looking at otherwise, the second time: once may be the fault of a state that was broken
//     before, and it is deciding for others that is at stake, not for this one;
//   - nobody: then decisions stop for a time that doubles, up to about a minute.
//
// Panics of a state that has to be built anew anyway say nothing about anybody.
func (e *Engine) corePanicked(key string) {
	suspect := e.state.Suspect()
	if e.rebuild {
		return
	}
	e.rebuildBecause(rebuildPanic)
	if suspect != "" && suspect != key && !e.suspects[suspect] {
		e.suspects[suspect] = true
		suspect = ""
	} else if suspect == "" {
		suspect = key
	}
	if _, again := e.poisoned[suspect]; suspect == "" || again {
		e.panics++
		e.opts.Metrics.Set(metrics.DecisionBackoff, e.rebuildDelay().Seconds())
		e.log.Error(nil, "Nothing is decided before the state of admission is built anew", "in", e.rebuildDelay(), "panicsInARow", e.panics)
		return
	}
	e.panics = 1
	e.opts.Metrics.Set(metrics.DecisionBackoff, e.rebuildDelay().Seconds())
	e.poisoned[suspect] = "the admission of this unit panicked; see the log of the scheduler"
	e.log.Error(nil, "Parked a unit that made the core panic, until its spec is changed", "queueUnit", suspect)
}

// rebuildDelay is the least time between two rebuilds of the state.
func (e *Engine) rebuildDelay() time.Duration {
	return time.Second << min(max(e.panics-1, 0), maxBackoffDoublings)
}

// recovered: a whole decision went well.
func (e *Engine) recovered() {
	if e.panics > 0 {
		e.panics = 0
		e.opts.Metrics.Set(metrics.DecisionBackoff, 0)
	}
}

// acquit forgets that a unit made the core panic: it is another one now.
func (e *Engine) acquit(key string) {
	delete(e.poisoned, key)
	delete(e.suspects, key)
}
