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

package reclaim

import "slices"

// DryRun has the victims that a request would have if its queue had no dryRun.
type DryRun struct {
	// Units is the number of units that would lose what they hold. Holds are what they hold, of the first 100, as
	// unit.Unit.Hold names it.
	Units int
	Holds []string
}

const (
	// mostHoldsTold is the greatest number of holds that a DryRun names.
	mostHoldsTold = 100
	// mostHoldsCounted is the greatest number of holds that Victims looks at, and somewhat more.
	mostHoldsCounted = 10_000
)

// NewDryRun is about a request that would preempt these holds.
func NewDryRun(holds []string) DryRun {
	return DryRun{Units: len(holds), Holds: slices.Clone(holds[:min(len(holds), mostHoldsTold)])}
}

// Victims counts the units that lose what they hold in several dry runs, each unit once. The zero value counts none.
type Victims struct {
	looked int
	holds  map[string]struct{}
}

// Add counts those of another dry run, as far as it names them. It says whether there is room for more.
func (v *Victims) Add(d DryRun) bool {
	if v.holds == nil {
		v.holds = map[string]struct{}{}
	}
	for _, hold := range d.Holds {
		v.holds[hold] = struct{}{}
	}
	v.looked += len(d.Holds)
	return v.looked < mostHoldsCounted
}

// Len is the number of units.
func (v *Victims) Len() int { return len(v.holds) }
