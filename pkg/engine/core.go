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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/labeltext"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// maxBackoffDoublings bounds the time without decisions after a panic of the core: 64 s.
const maxBackoffDoublings = 6

// Why the core's state is rebuilt; labels of a metric.
const (
	rebuildPanic      = "Panic"
	rebuildDifference = "Difference"
)

// core is the state of admission. After a panic in it the state is not sound: nothing is decided before the engine has
// rebuilt it from the objects.
type core struct {
	*env
	config admission.Config
	state  *admission.State
	// discarded: the state is not sound; cause says why.
	discarded bool
	cause     string
	built     time.Time // the last rebuild; zero before the first
	// quarantined units made the core panic: they are parked, with this message. suspects were looked at in one panic.
	quarantined map[string]string
	suspects    map[string]bool
	// panics in a row that nobody was to blame for. Nothing is decided for longer and longer after each.
	panics int
}

func newCore(v *env) *core {
	c := &core{env: v, quarantined: map[string]string{}, suspects: map[string]bool{}}
	c.config = admission.Config{
		ExplainAfter: v.opts.Config.ReportAfter, ExplainEvery: v.opts.Config.ReportEvery,
		RefusedBackoff: v.opts.Config.RefusedBackoff,
		Rules: life.Config{
			Timeouts: v.opts.Config.Timeouts, Selects: labeltext.Selects, Begun: v.opts.Clock.Now(),
		},
		ClaimAfter: v.opts.Config.ClaimAfter, ClaimTimeout: v.opts.Config.ClaimTimeout,
		PartialAdmission: v.opts.Config.PartialAdmission,
		Policies:         v.opts.Policies, Checks: v.opts.Checks, Order: v.opts.Order,
	}
	c.state = admission.New(c.config)
	return c
}

// call runs f on the state; if it is about one unit, key names it.
func (c *core) call(key string, f func(*admission.State)) {
	if !c.guard("core", func() { f(c.state) }) {
		c.panicked(key)
	}
}

// standsFor is the unit that stands for a job: the core alone elects it.
func (c *core) standsFor(job unit.Consumer, managed bool) (key string) {
	c.call("", func(s *admission.State) { key = s.StandsFor(job, managed) })
	return key
}

// extend takes what extensions give to the core, and begins with an empty state.
func (c *core) extend(policies map[string]queue.Factory, checks []queue.Check) {
	c.config.Policies, c.config.Checks = policies, checks
	c.state = admission.New(c.config)
}

// knowsPolicy says whether the policy is built in, or was registered.
func (c *core) knowsPolicy(name string) bool {
	if _, registered := c.config.Policies[name]; registered {
		return true
	}
	_, builtin := queue.Builtin()[name]
	return builtin
}

// read is for questions whose panics somebody else recovers, and which leave the state as it is.
func (c *core) read() *admission.State { return c.state }

// decide says also whether the core came to a decision.
func (c *core) decide(now time.Time) (plan writes.Plan, ok bool) {
	if !c.guard("core", func() { plan = c.state.Decide(now) }) {
		c.panicked("")
		return writes.Plan{}, false
	}
	c.recovered()
	return plan, true
}

// sound says whether the state can be trusted.
func (c *core) sound() bool { return !c.discarded }

// discard has the state rebuilt.
func (c *core) discard(cause string) { c.discarded, c.cause = true, cause }

// waits says how long the state must not be rebuilt yet: it is rebuilt at most once a second, and less and less often
// while it panics again.
func (c *core) waits(now time.Time) time.Duration {
	if c.built.IsZero() {
		return 0
	}
	return max(c.built.Add(c.rebuildDelay()).Sub(now), 0)
}

// renew begins with an empty state, which is sound, and says why it was time.
func (c *core) renew(now time.Time) (cause string) {
	c.discarded, c.built, c.state = false, now, admission.New(c.config)
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
func (c *core) panicked(key string) {
	suspect := c.state.Suspect()
	if c.discarded {
		return
	}
	c.discard(rebuildPanic)
	if suspect != "" && suspect != key && !c.suspects[suspect] {
		c.suspects[suspect] = true
		suspect = ""
	} else if suspect == "" {
		suspect = key
	}
	if _, again := c.quarantined[suspect]; suspect == "" || again {
		c.panics++
		c.opts.Metrics.Set(metrics.DecisionBackoff, c.rebuildDelay().Seconds())
		c.log.Error(nil, "Nothing is decided before the state of admission is rebuilt",
			"in", c.rebuildDelay(), "panicsInARow", c.panics)
		return
	}
	c.panics = 1
	c.opts.Metrics.Set(metrics.DecisionBackoff, c.rebuildDelay().Seconds())
	c.quarantined[suspect] = "the admission of this unit panicked; see the log of the scheduler"
	c.log.Error(nil, "Parked a unit that made the core panic, until its spec is changed", "queueUnit", suspect)
}

// rebuildDelay is the least time between two rebuilds of the state.
func (c *core) rebuildDelay() time.Duration {
	return time.Second << min(max(c.panics-1, 0), maxBackoffDoublings)
}

// recovered: a whole decision went well.
func (c *core) recovered() {
	if c.panics > 0 {
		c.panics = 0
		c.opts.Metrics.Set(metrics.DecisionBackoff, 0)
	}
}

// quarantine says whether a unit is in it, and why.
func (c *core) quarantine(key string) (message string, ok bool) {
	message, ok = c.quarantined[key]
	return message, ok
}

// acquit forgets that a unit made the core panic: it is another one now.
func (c *core) acquit(key string) {
	delete(c.quarantined, key)
	delete(c.suspects, key)
}
