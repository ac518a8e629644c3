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
	"github.com/benbjohnson/immutable"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is what the scheduler's gate and queue order read. It never changes; every method is O(1) and takes no
// lock. Until it is loaded it admits nothing.
type Snapshot interface {
	// Loaded says whether all units that existed at start are in it.
	Loaded() bool
	// AdmittedConsumer says whether a unit of this job is admitted and its status write is confirmed (I3).
	AdmittedConsumer(uid types.UID) bool
	// UnitOfConsumer says whether any unit of this job is known.
	UnitOfConsumer(uid types.UID) bool
	// AdmittedUnit says whether the unit (namespace/name) is admitted, and which job it stands for; "" for a unit
	// without consumer. Pods of other namespaces must not pass by it.
	AdmittedUnit(key string) (consumer types.UID, ok bool)
	// OrderKey is the place of an admitted job in the order of admissions. It is fixed when the job is admitted.
	OrderKey(uid types.UID) (int64, bool)
	// UnitOrderKey is OrderKey for a unit (namespace/name), with or without consumer.
	UnitOrderKey(key string) (int64, bool)
}

type admittedUnit struct {
	consumer types.UID
	seq      int64
}

type consumerState struct {
	admitted bool
	seq      int64
}

// snapshot shares all that did not change with its predecessor.
type snapshot struct {
	loaded    bool
	units     *immutable.Map[string, admittedUnit]
	consumers *immutable.Map[string, consumerState]
}

func newSnapshot() *snapshot {
	hasher := immutable.NewHasher("")
	return &snapshot{
		units:     immutable.NewMap[string, admittedUnit](hasher),
		consumers: immutable.NewMap[string, consumerState](hasher),
	}
}

func (s *snapshot) Loaded() bool { return s.loaded }

func (s *snapshot) AdmittedConsumer(uid types.UID) bool {
	c, _ := s.consumers.Get(string(uid))
	return s.loaded && c.admitted
}

func (s *snapshot) UnitOfConsumer(uid types.UID) bool {
	_, ok := s.consumers.Get(string(uid))
	return ok
}

func (s *snapshot) AdmittedUnit(key string) (types.UID, bool) {
	u, ok := s.units.Get(key)
	return u.consumer, ok && s.loaded
}

func (s *snapshot) OrderKey(uid types.UID) (int64, bool) {
	c, _ := s.consumers.Get(string(uid))
	return c.seq, c.admitted
}

func (s *snapshot) UnitOrderKey(key string) (int64, bool) {
	u, ok := s.units.Get(key)
	return u.seq, ok
}
