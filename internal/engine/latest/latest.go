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

// Package latest has maps that keep the order in which their keys came first.
package latest

// Map keeps the last value of every key, in the order in which the keys came first.
type Map[K comparable, V any] struct {
	index map[K]int
	// Items are in the order in which their keys came first.
	Items []Entry[K, V]
}

// Entry of a Map.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Put keeps the value, at the place of the first one of the key.
func (l *Map[K, V]) Put(key K, value V) {
	if i, ok := l.index[key]; ok {
		l.Items[i].Value = value
		return
	}
	if l.index == nil {
		l.index = map[K]int{}
	}
	l.index[key] = len(l.Items)
	l.Items = append(l.Items, Entry[K, V]{key, value})
}

// Get says also whether there is one.
func (l *Map[K, V]) Get(key K) (V, bool) {
	if i, ok := l.index[key]; ok {
		return l.Items[i].Value, true
	}
	var none V
	return none, false
}
