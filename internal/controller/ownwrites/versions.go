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

// Package ownwrites detects cached objects that are older than the last write of this process to them.
package ownwrites

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions are those of the last own writes, so that no decision uses a cached state from before them. A version is
// dropped when the watch reaches it. The zero value is empty.
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
