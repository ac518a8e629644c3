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

package intern

import (
	"hash/maphash"
	"sync/atomic"
)

// maxText is the length of the longest text that Texts remembers.
const maxText = 1 << 10

// Texts remembers the values of a fixed number of texts. It is safe for concurrent use. A forgotten value is made
// again, so the same text can give two values.
type Texts[T any] struct {
	seed  maphash.Seed
	make  func(text string) (T, error)
	slots [4096]atomic.Pointer[made[T]]
}

type made[T any] struct {
	text  string
	value T
}

// NewTexts takes what makes a value of a text. An error is not remembered.
func NewTexts[T any](f func(text string) (T, error)) *Texts[T] {
	return &Texts[T]{seed: maphash.MakeSeed(), make: f}
}

// Of returns the value of the text, which may be overwritten afterwards.
func (t *Texts[T]) Of(text []byte) (T, error) {
	if len(text) > maxText {
		return t.make(string(text))
	}
	slot := &t.slots[maphash.Bytes(t.seed, text)%uint64(len(t.slots))]
	if have := slot.Load(); have != nil && have.text == string(text) {
		return have.value, nil
	}
	fresh := &made[T]{text: string(text)}
	var err error
	if fresh.value, err = t.make(fresh.text); err == nil {
		slot.Store(fresh)
	}
	return fresh.value, err
}
