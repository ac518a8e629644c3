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

package event

import (
	"hash/maphash"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Begun is when this process began: what is older was told by an earlier one.
type Begun time.Time

// overlap is for how long nobody tells anything while a process takes over from another, or starts slowly. An object
// of that time may be told twice. Otherwise it would never be.
const overlap = time.Minute

// BegunAt is a process that began at this time. The API server has times in seconds.
func BegunAt(now time.Time) Begun { return Begun(now.Truncate(time.Second)) }

// After says whether the state of the unit was written before this process began.
func (b Begun) After(u *v1alpha1.QueueUnit) bool {
	at := u.Status.LastUpdateTime
	return at != nil && at.Time.Before(time.Time(b))
}

// Found says whether an earlier process told of the object.
func (b Begun) Found(object metav1.Object) bool {
	return object.GetCreationTimestamp().Time.Before(time.Time(b).Add(-overlap))
}

// Said is the last event of one object, so that nothing is recorded twice. The zero value is no event.
type Said struct {
	// seen: it was told something, or is known to wait for nothing.
	seen bool
	// text told without a write.
	text string
	// wait is a hash of the last recorded reason of waiting, zero for none. at is the time of that event.
	wait uint64
	at   time.Time
	// slot is when it will be told something else; zero if it will not.
	slot time.Time
}

// seed of hashes of texts.
var seed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(seed, text) | 1 }

// Once returns the event unless the same was said last.
func (s *Said) Once(e *Event) *Event {
	s.seen = true
	text := e.Of + " " + e.Reason + ": " + e.Note
	if s.text == text {
		return nil
	}
	s.text = text
	return e
}
