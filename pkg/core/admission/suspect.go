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

// A panic that is not recovered here leaves the state half changed. Whoever owns it builds another one from the objects,
// which say the same again, so that it panics again. What is needed to get out of that is who was being looked at.

// look notes that a unit is looked at from here on and returns the one that was before, which the caller puts back when
// he is done. He must not do so in a defer: after a panic the note is to stay.
func (s *State) look(u *unit) (before *unit) {
	before, s.looked = s.looked, u
	return before
}

// Suspect names, once, the unit that was being looked at when a call panicked; "" if none was.
func (s *State) Suspect() string {
	u := s.looked
	s.looked = nil
	if u == nil {
		return ""
	}
	return u.spec.Key
}
