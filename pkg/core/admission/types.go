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

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// Quota is an observation of one level of the quota tree.
type Quota = capacity.Quota

// Pod is one existing, non-terminal pod of a unit.
type Pod = holding.Pod

// Config of the core. The zero value of a field that may be empty means the built-in behaviour.
type Config struct {
	// ExplainAfter is how long a unit must wait before its reason is worth a status write. ExplainEvery is the least time
	// between two such writes of one unit.
	ExplainAfter, ExplainEvery time.Duration
	// RefusedBackoff is how long a unit is parked after a definite refusal of its status write. It doubles
	// with every refusal in a row, up to 32 times.
	RefusedBackoff time.Duration
	// Rules of the life of a unit.
	Rules life.Config
	// ClaimTimeout is for how long the first unit of a blocking queue may claim what others would use during that time.
	// Zero means until it is admitted.
	ClaimTimeout time.Duration
	// ClaimAfter is how long a unit waits at the front of a queue that does not block until it claims like in a blocking
	// one. Zero means that it never does.
	ClaimAfter time.Duration
	// Policies adds to or replaces the built-in policies, by name.
	Policies map[string]queue.Factory
	// MostAdmissions of one Decide, with growth and preemptions; 256 unless set. It asks to be called again then.
	MostAdmissions int
	// PartialAdmission has units admitted in less than the whole where their Sizes allow it.
	PartialAdmission bool
	// Order of the queues; nil is queue.FairOrder.
	Order queue.Order
	// Checks are filters of extensions. A unit is admitted only when all of them pass.
	Checks []queue.Check
}
