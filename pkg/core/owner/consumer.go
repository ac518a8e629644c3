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

package owner

import (
	"cmp"
	"strings"
	"time"
	"unique"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Standing is how far a unit has come. The one that has come farthest stands for its job.
type Standing int8

// The standings, in ascending order.
const (
	// Unfit: it is over, or can never be admitted. It stands for no job.
	Unfit Standing = iota
	Waiting
	Admitting
	Admitted
)

// Candidate is what the election knows of a unit.
type Candidate struct {
	// Key is namespace/name of the unit, Namespace the first part of it, UID the UID of the unit itself.
	Key, Namespace, UID string
	// Created is when the unit was made.
	Created  time.Time
	Consumer unit.Consumer
	// Managed: its consumer is of a kind that the controller manages, so that it must be live.
	Managed bool
	// Owned: the unit's controller owner reference is its consumer.
	Owned    bool
	Standing Standing
}

// Unit can say what it is a candidate as. The caller that keeps the units in a Book says when the answer changes.
type Unit interface {
	comparable
	Candidate() Candidate
}

// scope is a kind of jobs in one namespace. A unit counts only in its own namespace, whatever it names.
type scope struct{ kind, namespace string }

// jobKey is a job by its UID, Name one by its name. There may be very many of few kinds in few namespaces.
type (
	jobKey struct {
		scope unique.Handle[scope]
		uid   string
	}
	// Name is that of a job of its kind, in its namespace.
	Name struct {
		scope unique.Handle[scope]
		name  string
	}
)

// NameOf a job, whatever its UID is.
func NameOf(c unit.Consumer) Name { return Name{unique.Make(scope{c.Kind, c.Namespace}), c.Name} }

// Consumer is the job of the name with this UID.
func (n Name) Consumer(uid string) unit.Consumer {
	of := n.scope.Value()
	return unit.Consumer{Kind: of.kind, Namespace: of.namespace, Name: n.name, UID: uid}
}

// Compare orders by kind, then by namespace, then by name.
func (n Name) Compare(o Name) int {
	a, b := n.scope.Value(), o.scope.Value()
	return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace),
		strings.Compare(n.name, o.name))
}

func (c *Candidate) scope() unique.Handle[scope] {
	return unique.Make(scope{c.Consumer.Kind, c.Namespace})
}

func (c *Candidate) job() jobKey { return jobKey{c.scope(), c.Consumer.UID} }

func (c *Candidate) name() Name { return Name{c.scope(), c.Consumer.Name} }

// jobName tells apart units that name the same UID and mean different jobs. Where the kind is managed names are
// checked, so a unit that names a UID under another name competes with nobody who names it right.
func (c *Candidate) jobName() string {
	if c.Managed {
		return c.Consumer.Name
	}
	return ""
}
