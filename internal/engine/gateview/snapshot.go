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

package gateview

import (
	"time"

	"github.com/benbjohnson/immutable"
	"k8s.io/apimachinery/pkg/types"
)

// grant of a pod that its unit holds quota for.
type grant struct {
	// lacking has the missing updates of admission checks. Such a pod may not be scheduled.
	lacking string
	// until is when its unit has run for as long as it may.
	until time.Time
}

// Snapshot is what the scheduler's gate reads. It never changes, and shares with its predecessor all that did not
// change. Every method is O(1) and takes no lock. Until it is loaded it admits nothing.
type Snapshot struct {
	loaded bool
	// units are those that are admitted, with their consumers; consumers says of each managed job that has a unit whether
	// it is.
	units     *immutable.Map[string, types.UID]
	consumers *immutable.Map[string, bool]
	// pods are those that are granted and not on a node.
	pods *immutable.Map[string, grant]
}

func newSnapshot() *Snapshot {
	hasher := immutable.NewHasher("")
	return &Snapshot{
		units:     immutable.NewMap[string, types.UID](hasher),
		consumers: immutable.NewMap[string, bool](hasher),
		pods:      immutable.NewMap[string, grant](hasher),
	}
}

// Loaded says whether all units that existed at start are in it.
func (s *Snapshot) Loaded() bool { return s.loaded }

// AdmittedConsumer says whether the unit of this job is admitted and its status write is confirmed (I3). The job is of
// a managed kind, and its unit the one of the name that follows from the job's.
func (s *Snapshot) AdmittedConsumer(uid types.UID) bool {
	admitted, _ := s.consumers.Get(string(uid))
	return s.loaded && admitted
}

// UnitOfConsumer says whether that unit is known.
func (s *Snapshot) UnitOfConsumer(uid types.UID) bool {
	_, ok := s.consumers.Get(string(uid))
	return ok
}

// AdmittedUnit says whether the unit (namespace/name) is admitted, and which job it stands for; "" for a unit without
// consumer. Pods of other namespaces must not pass by it.
func (s *Snapshot) AdmittedUnit(key string) (types.UID, bool) {
	consumer, ok := s.units.Get(key)
	return consumer, ok && s.loaded
}

// Granted says whether a pod of an admitted unit may go: together they ask for at most what their unit holds.
func (s *Snapshot) Granted(pod types.UID) bool {
	g, ok := s.pods.Get(string(pod))
	return ok && g.lacking == "" && s.loaded
}

// Lacking says in words which updates of admission checks a pod of an admitted unit lacks. Such a pod may not be
// scheduled.
func (s *Snapshot) Lacking(pod types.UID) string {
	g, _ := s.pods.Get(string(pod))
	return g.lacking
}

// RunsUntil says when the unit of a granted pod has run for as long as it may; zero for never.
func (s *Snapshot) RunsUntil(pod types.UID) time.Time {
	g, _ := s.pods.Get(string(pod))
	return g.until
}

// Pods is the number of granted pods that are not on a node.
func (s *Snapshot) Pods() int { return s.pods.Len() }
