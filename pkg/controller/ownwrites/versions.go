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

// Package ownwrites knows objects that a cache has not brought up to what this process has written itself.
package ownwrites

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions are those that this process wrote last, so that no decision is made on a cached state from before the own
// write. What a watch catches up with is forgotten. The zero value has none.
type Versions struct{ last map[types.UID]string }

// Note a write that was confirmed.
func (v *Versions) Note(o client.Object) {
	if v.last == nil {
		v.last = map[types.UID]string{}
	}
	v.last[o.GetUID()] = o.GetResourceVersion()
}

// Forget an object that was deleted.
func (v *Versions) Forget(uid types.UID) { delete(v.last, uid) }

// Behind says whether what was observed is older than the own last write; the event that brings the newer state is
// still to come.
func (v *Versions) Behind(o client.Object) bool {
	last, ok := v.last[o.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last)
	if err == nil && order < 0 {
		return true
	}
	v.Forget(o.GetUID())
	return false
}
