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

package engine

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// classes are the priority classes.
type classes map[string]*objects.Class

// set takes a class, nil for none, and says whether a priority may follow from the change, and whether even one that
// follows from no class by name.
func (c classes) set(name string, class *objects.Class) (changed, byDefault bool) {
	old := c[name]
	if class == nil {
		delete(c, name)
	} else {
		c[name] = class
	}
	if old != nil && class != nil && old.Value == class.Value && old.GlobalDefault == class.GlobalDefault {
		return false, false
	}
	return true, (old != nil && old.GlobalDefault) || (class != nil && class.GlobalDefault)
}

// priorityOf a class; the cluster's default for "" and for a class that does not exist.
func (c classes) priorityOf(name string) int32 {
	if class := c[name]; class != nil {
		return class.Value
	}
	var best *objects.Class
	for _, class := range c {
		// Kubernetes takes the lowest of several defaults.
		if class.GlobalDefault && (best == nil || class.Value < best.Value) {
			best = class
		}
	}
	if best == nil {
		return 0
	}
	return best.Value
}
