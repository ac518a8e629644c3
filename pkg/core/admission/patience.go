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

import "time"

// claims says whether a unit may claim now. atOnce: it need not wait for that.
func (p *pass) claims(now time.Time, u *record, atOnce bool) bool {
	may, noted := p.watch.Claims(now, u.front, atOnce)
	u.waitsAs(noted)
	return may
}

// noteClaims begins the time of those that claim, or will. It says whether the order of queues may be another one now.
func (p *pass) noteClaims(now time.Time) (moved bool) {
	p.watch.Next = time.Time{}
	for i := range p.asks.Claims() {
		of := p.asks.Claims()[i].Of
		of.unit.waitsAs(p.watch.Note(now, of.unit.front, of.group.Notes.ask.Blocking || of.group.Notes.takes))
	}
	for i := range p.asks.Heads() {
		if h := &p.asks.Heads()[i]; h.Waits() && !h.Of.group.Notes.ask.Blocking {
			h.Of.unit.waitsAs(p.watch.Note(now, h.Of.unit.front, false))
		}
	}
	moved, p.watch.Moved = p.watch.Moved, false
	for _, q := range p.lines.ranking.Queues() {
		moved = q.noteFirst(p.lines.rights) || moved
	}
	return moved
}
