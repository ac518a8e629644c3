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

package jobunit

import (
	"fmt"

	"k8s.io/utils/ptr"
)

// Priorities are those that a job may have.
type Priorities struct {
	// Class is the value of the job's priority class, or else of the cluster's default class. It is nil if neither exists.
	Class *int32
	// Most is what the job's namespace allows; nil when it does not say.
	Most *int32
}

// Of is the priority of the unit of a job: the number that it gives itself, or that of its class. Any tenant
// may write any number and name any class, so it is no greater than it may be.
func (p Priorities) Of(d *Demand) *int32 {
	asked := p.asked(d)
	if asked == nil || d.priorityFromProfile {
		return asked
	}
	return ptr.To(min(*asked, p.most()))
}

func (p Priorities) asked(d *Demand) *int32 {
	if d.Priority.Value != nil {
		return d.Priority.Value
	}
	return p.Class
}

// most is the bound of the namespace, or else the priority of the class. Pods without a class have priority 0. System
// classes are above all classes that an administrator can define, and count only if a namespace allows them.
func (p Priorities) most() int32 {
	class := ptr.Deref(p.Class, 0)
	if class > highestDefinable {
		class = 0
	}
	return ptr.Deref(p.Most, class)
}

// highestDefinable is the greatest value that the API server lets a class have that is not the system's.
const highestDefinable = 1_000_000_000

// Capped says that a job asks for a greater priority than it may have; "" if it does not.
func (p Priorities) Capped(d *Demand) string {
	asked := p.asked(d)
	if asked == nil || d.priorityFromProfile || *asked <= p.most() {
		return ""
	}
	return fmt.Sprintf("its priority %d is more than it may give itself; it has %d", *asked, p.most())
}
