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

package factstest

import (
	"time"

	"k8s.io/utils/clock"
)

// Clock begins at the time of the world, and goes on as other clocks do.
type Clock struct {
	clock.RealClock
	behind time.Duration
}

// NewClock begins now.
func NewClock() *Clock { return &Clock{behind: clock.RealClock{}.Since(Now)} }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time { return c.RealClock.Now().Add(-c.behind) }

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
