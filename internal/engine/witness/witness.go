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

// Package witness is the interface by which the engine reports to other parts of the scheduler, and asks them.
package witness

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Witness is told of what happens. The goroutine of the engine calls its methods: they must not block.
type Witness interface {
	// Unit is in a phase; without one it is gone. The key is namespace/name.
	Unit(key string, uid types.UID, phase unit.Phase)
	// Bound says that a pod of a unit is on a node.
	Bound(unit types.UID, node string)
	// Check was changed: an AdmissionCheck.
	Check(name string)
	// Foresee asks about a unit that waits.
	Foresee(Question)
}

// Question is whether all pods of a unit would find nodes if some others were gone.
type Question struct {
	Key  string
	UID  types.UID
	Gone []*corev1.Pod
	// Answer is called once, from any goroutine, or never if the same is asked again about the unit before that. why is
	// for a person; it says why the pods find no nodes, or why that is not known.
	Answer func(found bool, why string)
}

// Nobody witnesses nothing, and answers nothing.
type Nobody struct{}

// Unit implements Witness.
func (Nobody) Unit(string, types.UID, unit.Phase) {}

// Bound implements Witness.
func (Nobody) Bound(types.UID, string) {}

// Check implements Witness.
func (Nobody) Check(string) {}

// Foresee implements Witness.
func (Nobody) Foresee(Question) {}
