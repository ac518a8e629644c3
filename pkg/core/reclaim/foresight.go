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

// Foresight is a question to the placer about a preemptor: would its pods find nodes if its victims were gone?
type Foresight struct {
	// Holds of the victims, as victims.Join joins them.
	Holds string
	Asked time.Time
	// Found: they would. Until then nobody has answered.
	Found bool
}

// About says that it is about these holds, and not out of date.
func (f *Foresight) About(now time.Time, holds string) bool {
	return f.Holds == holds && now.Before(f.Ends())
}

// Ends is when it is out of date.
func (f *Foresight) Ends() time.Time { return f.Asked.Add(foreseenFor) }
