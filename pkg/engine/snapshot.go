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
	"time"

	"github.com/benbjohnson/immutable"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is what the scheduler's gate reads. It never changes; every method is O(1) and takes no
// lock. Until it is loaded it admits nothing.
type Snapshot interface {
	// Loaded says whether all units that existed at start are in it.
	Loaded() bool
	// AdmittedConsumer says whether the unit of this job is admitted and its status write is confirmed (I3). The job is of
	// a managed kind, and its unit the one of the name that follows from the job's.
	AdmittedConsumer(uid types.UID) bool
	// UnitOfConsumer says whether that unit is known.
	UnitOfConsumer(uid types.UID) bool
	// AdmittedUnit says whether the unit (namespace/name) is admitted, and which job it stands for; "" for a unit
	// without consumer. Pods of other namespaces must not pass by it.
	AdmittedUnit(key string) (consumer types.UID, ok bool)
	// Granted says whether a pod of an admitted unit may go: together they ask for at most what their unit holds.
	Granted(pod types.UID) bool
	// Lacking says in words what a pod of an admitted unit lacks of what admission checks asked for. Then it may not go.
	Lacking(pod types.UID) string
	// RunsUntil says when the unit of a granted pod has run for as long as it may; zero for never.
	RunsUntil(pod types.UID) time.Time
}

// grant of a pod that its unit holds quota for.
type grant struct {
	// lacking is what it lacks of what admission checks asked for. Then it may not go.
	lacking string
	// until is when its unit has run for as long as it may.
	until time.Time
}

// snapshot shares all that did not change with its predecessor.
type snapshot struct {
	loaded bool
	// units are those that are admitted, with their consumers; consumers says of each managed job that has a unit whether
	// it is.
	units     *immutable.Map[string, types.UID]
	consumers *immutable.Map[string, bool]
	// pods are those that are granted and not on a node.
	pods *immutable.Map[string, grant]
}

func newSnapshot() *snapshot {
	hasher := immutable.NewHasher("")
	return &snapshot{
		units:     immutable.NewMap[string, types.UID](hasher),
		consumers: immutable.NewMap[string, bool](hasher),
		pods:      immutable.NewMap[string, grant](hasher),
	}
}

func (s *snapshot) Loaded() bool { return s.loaded }

func (s *snapshot) AdmittedConsumer(uid types.UID) bool {
	admitted, _ := s.consumers.Get(string(uid))
	return s.loaded && admitted
}

func (s *snapshot) UnitOfConsumer(uid types.UID) bool {
	_, ok := s.consumers.Get(string(uid))
	return ok
}

func (s *snapshot) AdmittedUnit(key string) (types.UID, bool) {
	consumer, ok := s.units.Get(key)
	return consumer, ok && s.loaded
}

func (s *snapshot) Granted(pod types.UID) bool {
	g, ok := s.pods.Get(string(pod))
	return ok && g.lacking == "" && s.loaded
}

func (s *snapshot) Lacking(pod types.UID) string {
	g, _ := s.pods.Get(string(pod))
	return g.lacking
}

func (s *snapshot) RunsUntil(pod types.UID) time.Time {
	g, _ := s.pods.Get(string(pod))
	return g.until
}
