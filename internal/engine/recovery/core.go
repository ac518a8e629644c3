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

// Package recovery keeps the state of the core usable. It recovers panics, parks the unit that caused one, and says
// when the state has to be built again from the objects.
package recovery

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// maxBackoffDoublings bounds the time without decisions after a panic of the core: 64 s.
const maxBackoffDoublings = 6

// Why the core's state is rebuilt; labels of a metric.
const (
	Panic      = "Panic"
	Difference = "Difference"
)

// Core is the state of admission. After a panic in it the state is not sound: nothing is decided before the engine has
// rebuilt it from the objects.
type Core struct {
	*env.Env
	Config admission.Config
	state  *admission.State
	// discarded: the state is not sound; cause says why.
	discarded bool
	cause     string
	Built     time.Time // the last rebuild; zero before the first
	// quarantined units made the core panic: they are parked, with this message. suspects were looked at in one panic.
	quarantined map[string]string
	suspects    map[string]bool
	// panics in a row that nobody was to blame for. Nothing is decided for longer and longer after each.
	panics int
}

func New(v *env.Env, config admission.Config) *Core {
	return &Core{
		Env: v, Config: config, state: admission.New(config), quarantined: map[string]string{}, suspects: map[string]bool{},
	}
}

// Call runs f on the state; if it is about one unit, key names it.
func (c *Core) Call(key string, f func(*admission.State)) {
	if !c.Guard("core", func() { f(c.state) }) {
		c.panicked(key)
	}
}

// StandsFor is the unit that stands for a job: the core alone elects it.
func (c *Core) StandsFor(job unit.Consumer, managed bool) (key string) {
	c.Call("", func(s *admission.State) { key = s.StandsFor(job, managed) })
	return key
}

// Extend takes what extensions give to the core, and begins with an empty state.
func (c *Core) Extend(policies map[string]queue.Factory, checks []queue.Check) {
	c.Config.Policies, c.Config.Checks = policies, checks
	c.state = admission.New(c.Config)
}

// KnowsPolicy says whether the policy is built in, or was registered.
func (c *Core) KnowsPolicy(name string) bool {
	if _, registered := c.Config.Policies[name]; registered {
		return true
	}
	_, builtin := queue.Builtin()[name]
	return builtin
}

// Read is for questions whose panics somebody else recovers, and which leave the state as it is.
func (c *Core) Read() *admission.State { return c.state }

// Decide says also whether the core came to a decision.
func (c *Core) Decide(now time.Time) (plan transition.Plan, ok bool) {
	if !c.Guard("core", func() { plan = c.state.Decide(now) }) {
		c.panicked("")
		return transition.Plan{}, false
	}
	c.Recovered()
	return plan, true
}

// Sound says whether the state can be trusted.
func (c *Core) Sound() bool { return !c.discarded }

// Discard has the state rebuilt.
func (c *Core) Discard(cause string) { c.discarded, c.cause = true, cause }

// Waits is the time until the state may be rebuilt: at most once a second, and more rarely while it panics again.
func (c *Core) Waits(now time.Time) time.Duration {
	if c.Built.IsZero() {
		return 0
	}
	return max(c.Built.Add(c.RebuildDelay()).Sub(now), 0)
}

// Renew begins with an empty state, which is sound, and says why it was time.
func (c *Core) Renew(now time.Time) (cause string) {
	c.discarded, c.Built, c.state = false, now, admission.New(c.Config)
	return c.cause
}

// panicked has the state rebuilt after a panic of the core, in a call about the unit of this key if it is not empty.
// The objects that the state is built from are the same, so it would panic again forever, and no unit would be
// admitted. So a unit is put in quarantine:
//   - If the core was looking at the unit of the call, or at none: the unit of the call, at once.
//   - If the core was looking at another unit: that one, the second time. Once may be the fault of a state that was
//     broken before.
//   - If there is no such unit, decisions stop for a time that doubles, up to about a minute.
//
// Panics of a state that has to be rebuilt anyway say nothing about any unit.
func (c *Core) panicked(key string) {
	suspect := c.state.Suspect()
	if c.discarded {
		return
	}
	c.Discard(Panic)
	if suspect != "" && suspect != key && !c.suspects[suspect] {
		c.suspects[suspect] = true
		suspect = ""
	} else if suspect == "" {
		suspect = key
	}
	if _, again := c.quarantined[suspect]; suspect == "" || again {
		c.panics++
		c.Metrics.Set(metrics.DecisionBackoff, c.RebuildDelay().Seconds())
		c.Log.Error(nil, "Nothing is decided before the state of admission is rebuilt",
			"in", c.RebuildDelay(), "panicsInARow", c.panics)
		return
	}
	c.panics = 1
	c.Metrics.Set(metrics.DecisionBackoff, c.RebuildDelay().Seconds())
	c.quarantined[suspect] = "the admission of this unit panicked; see the log of the scheduler"
	c.Log.Error(nil, "Parked a unit that made the core panic, until its spec is changed", "queueUnit", suspect)
}

// RebuildDelay is the least time between two rebuilds of the state.
func (c *Core) RebuildDelay() time.Duration {
	return time.Second << min(max(c.panics-1, 0), maxBackoffDoublings)
}

// Recovered: a whole decision went well.
func (c *Core) Recovered() {
	if c.panics > 0 {
		c.panics = 0
		c.Metrics.Set(metrics.DecisionBackoff, 0)
	}
}

// Quarantine says whether a unit is in it, and why.
func (c *Core) Quarantine(key string) (message string, ok bool) {
	message, ok = c.quarantined[key]
	return message, ok
}

// InQuarantine is the number of units in it.
func (c *Core) InQuarantine() int { return len(c.quarantined) }

// Acquit forgets that a unit made the core panic: it is another one now.
func (c *Core) Acquit(key string) {
	delete(c.quarantined, key)
	delete(c.suspects, key)
}
