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

import "time"

// foreseenFor is for how long an answer is true, and for how long one is waited for.
const foreseenFor = 30 * time.Second

// Prospect is what is known of nodes for the pods of a taker, with those gone from whom it takes.
type Prospect uint8

// The prospects.
const (
	Unasked Prospect = iota // it is time to ask
	Awaited
	NodesFound
	NoNodes
)

// Foresight is what was asked about one set of holds, as Join joins them, and answered.
type Foresight struct {
	takes string
	asked time.Time
	says  Prospect
	// Why is why the pods would find no nodes, by the last answer about any set. It is empty if they would.
	Why string
}

// Of is what is known about a set.
func (f *Foresight) Of(now time.Time, takes string) Prospect {
	if f.takes != takes || !now.Before(f.Ends()) {
		return Unasked
	}
	return f.says
}

// Ask notes that it was asked about a set.
func (f *Foresight) Ask(now time.Time, takes string) {
	f.takes, f.asked, f.says = takes, now, Awaited
}

// Answer takes the answer about a set; false if nobody waits for it any more.
func (f *Foresight) Answer(takes string, found bool, why string) bool {
	if f.says != Awaited || f.takes != takes {
		return false
	}
	if f.says, f.Why = NoNodes, why; found {
		f.says, f.Why = NodesFound, ""
	}
	return true
}

// Ends is when it is asked again.
func (f *Foresight) Ends() time.Time { return f.asked.Add(foreseenFor) }
