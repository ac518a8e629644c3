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

// Package jobkind is the language of kinds: descriptors, their expressions, and the compiler that makes a Kind of a
// descriptor. A Kind says how to read a job. The values of one job are in jobs.Job.
package jobkind

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/kinds"
)

// Kind is a descriptor that was checked. It is immutable and safe for concurrent use.
type Kind struct {
	GVK schema.GroupVersionKind
	GVR schema.GroupVersionResource
	// UnitSuffix is put behind the job's name, after a dash, to name its unit; empty gives the job's name.
	UnitSuffix string

	// text of the file, and its name without an ending, for built-in kinds.
	text []byte
	file string

	// Children stand between the job and its pods. Child, nil for most kinds, is the one that is read with the job.
	Children []Object
	Child    *Object

	SuspendField      Path
	SuspendAnnotation string
	keepsPods         bool
	// SuspendUnless holds for a job that cannot be suspended, although others of its kind can.
	SuspendUnless  *Expression
	Valid          []Valid
	Sets           []Set
	podMetadata    []Path
	Gang           *Gang
	PriorityClass  []Path
	ManagedBy      Path
	OwnControllers []string
	StartTime      Path
	Pods           PodsBy

	Succeeded, Failed, Message, SuspensionSeen, Started, Running *Expression
	Ready, ReadyBySet, Active, Completed, All, Reclaimable       *Expression
}

// MaxGangs bounds the gangs of one group.
const MaxGangs = 16

// Object is a kind of object and its resource.
type Object struct {
	GVK schema.GroupVersionKind
	GVR schema.GroupVersionResource
}

// String is the name of its kind.
func (o Object) String() string { return KindString(o.GVK) }

// String is the form in which configuration and consumers name a kind: "Job.v1.batch".
func (k *Kind) String() string { return KindString(k.GVK) }

// KindString is "<Kind>.<version>.<group>", and "<Kind>.<version>." for the core group.
func KindString(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s.%s.%s", gvk.Kind, gvk.Version, gvk.Group)
}

// File is the name of the file that describes a built-in kind, without its ending; empty for others.
func (k *Kind) File() string { return k.file }

// Text is the file that describes a built-in kind; nil for others.
func (k *Kind) Text() []byte { return k.text }

// UnitName is the name of the unit of a job.
func (k *Kind) UnitName(job string) string {
	if k.UnitSuffix == "" {
		return job
	}
	return job + "-" + k.UnitSuffix
}

// JobName is the name of the job that would have a unit of this name.
func (k *Kind) JobName(unit string) string {
	if k.UnitSuffix == "" {
		return unit
	}
	return strings.TrimSuffix(unit, "-"+k.UnitSuffix)
}

// CanBeSuspended says whether jobs of this kind can be suspended, but for those that SuspendUnless holds for. Pods of
// others wait in the scheduler.
func (k *Kind) CanBeSuspended() bool { return len(k.SuspendField) > 0 || k.SuspendAnnotation != "" }

// KeepsPods says whether pods of a job run on when it is suspended.
func (k *Kind) KeepsPods() bool { return k.keepsPods || !k.CanBeSuspended() }

// LeavesParts says that the controller of a suspended job keeps the objects that it made unchanged, and does not resume
// them later.
func (k *Kind) LeavesParts() bool { return k.keepsPods }

// CountsPods says whether a job says how many pods it has; then Active is that number.
func (k *Kind) CountsPods() bool { return k.Active != nil }

// OfPods says whether jobs of the kind are groups of pods that nobody owns, and not objects.
func (k *Kind) OfPods() bool { return k.GVK == PodKind }

// PodKind is followed by everybody who asks.
var PodKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// builtin are the kinds of the files below kinds, in the order of the files.
var builtin = sync.OnceValue(func() []Kind {
	names, err := fs.Glob(kinds.Files, "*.yaml")
	if err != nil {
		panic(err) // the pattern is well formed
	}
	found := make([]Kind, 0, len(names))
	for _, name := range names {
		text, err := kinds.Files.ReadFile(name)
		if err != nil {
			panic(err) // the file was listed just now
		}
		kind, err := ParseDescriptor(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err)) // a test reads them all
		}
		kind.text = text
		kind.file = strings.TrimSuffix(filepath.Base(name), ".yaml")
		found = append(found, *kind)
	}
	return found
})

// Builtin returns the kinds that are known.
func Builtin() []Kind { return slices.Clone(builtin()) }

// Find returns the built-in kind that String names so.
func Find(name string) (*Kind, bool) {
	kinds := Builtin()
	for i := range kinds {
		if kinds[i].String() == name {
			return &kinds[i], true
		}
	}
	return nil, false
}
