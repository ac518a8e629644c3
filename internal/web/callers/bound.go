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

package callers

import "sync"

// Bound limits what is open at the same time.
type Bound struct {
	// Each is the limit of one caller, and All that of all together.
	Each, All int
	lock      sync.Mutex
	open      map[string]int
	total     int
}

// Enter takes one for a caller. It is false at a limit. Otherwise leave gives it back, once.
func (b *Bound) Enter(name string) (leave func(), ok bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.total >= b.All || b.open[name] >= b.Each {
		return nil, false
	}
	if b.open == nil {
		b.open = map[string]int{}
	}
	b.open[name]++
	b.total++
	return sync.OnceFunc(func() {
		b.lock.Lock()
		defer b.lock.Unlock()
		b.total--
		if b.open[name]--; b.open[name] == 0 {
			delete(b.open, name)
		}
	}), true
}
