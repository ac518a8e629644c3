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

package jobs

import (
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

	suspend           Path
	suspendAnnotation string
	keepsPods         bool
	valid             []validRule
	sets              []podSetRule
	podMetadata       []Path
	gang              *gangRule
	priorityClass     []Path
	managedBy         Path
	ownControllers    []string
	startTime         Path
	pods              podsRule

	succeeded, failed, message, suspensionSeen, started, running *expression
	ready, readyBySet, active, completed, all, reclaimable       *expression
}

// Object is a kind of object and its resource.
type Object struct {
	GVK schema.GroupVersionKind
	GVR schema.GroupVersionResource
}

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

// CanBeSuspended says whether jobs of this kind can be suspended. Pods of others wait in the scheduler.
func (k *Kind) CanBeSuspended() bool { return len(k.suspend) > 0 || k.suspendAnnotation != "" }

// SuspendField is where the job says that it is suspended; empty if it does so in no field.
func (k *Kind) SuspendField() Path { return k.suspend }

// SuspendAnnotation is the annotation that suspends with the value "true"; empty if none does.
func (k *Kind) SuspendAnnotation() string { return k.suspendAnnotation }

// KeepsPods says whether pods of a job run on when it is suspended.
func (k *Kind) KeepsPods() bool { return k.keepsPods || !k.CanBeSuspended() }

// CountsPods says whether a job says how many pods it has; then Active is that number.
func (k *Kind) CountsPods() bool { return k.active != nil }

// OfPods says whether jobs of the kind are groups of pods that nobody owns, and not objects.
func (k *Kind) OfPods() bool { return k.GVK == podKind }

// podKind is followed by everybody who asks.
var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

//go:embed kinds/*.yaml
var descriptors embed.FS

// builtin are the kinds of the files below kinds, in the order of the files.
var builtin = sync.OnceValue(func() []Kind {
	names, err := fs.Glob(descriptors, "kinds/*.yaml")
	if err != nil {
		panic(err) // the pattern is well formed
	}
	kinds := make([]Kind, 0, len(names))
	for _, name := range names {
		text, err := descriptors.ReadFile(name)
		if err != nil {
			panic(err) // it was found just now
		}
		kind, err := ParseDescriptor(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err)) // a test reads them all
		}
		kind.text = text
		kind.file = strings.TrimSuffix(filepath.Base(name), ".yaml")
		kinds = append(kinds, *kind)
	}
	return kinds
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
