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

package podupdate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// maxBytes bounds the keys and values that are kept of the updates of one unit.
const maxBytes = 16 << 10

// Asked is what the checks that a unit has passed ask to write into its pods, as the scheduler keeps it; nil asks for
// nothing. It does not change once it was read.
type Asked struct {
	// sets of the unit; the update of some may be empty.
	sets map[string]Update
	// fault says in words why these updates cannot be written, whatever checks may write; empty if they can.
	fault string
	// keys that not every check may write.
	keys []written
}

// Read keeps what was asked for about a unit with these pod sets.
func Read(checks []v1alpha1.AdmissionCheckState, sets []string) *Asked {
	a := &Asked{sets: Ready(checks)}
	if len(a.sets) == 0 {
		return nil
	}
	if a.fault = conflictOf(checks); a.fault == "" {
		if n := a.bytes(); n > maxBytes {
			a.fault = fmt.Sprintf("podSetUpdates of admission checks have %d bytes, at most %d are read", n, maxBytes)
		}
	}
	if a.fault != "" {
		a.sets = nil
		return a
	}
	a.keys = keysOf(checks)
	for _, set := range sets {
		if _, ok := a.sets[set]; !ok {
			a.sets[set] = Update{}
		}
	}
	return a
}

func (a *Asked) bytes() (n int) {
	for name := range a.sets {
		u := a.sets[name]
		for _, values := range u.values() {
			for key, value := range values.of {
				n += len(key) + len(value)
			}
		}
		for i := range u.Tolerations {
			n += len(u.Tolerations[i].Key) + len(u.Tolerations[i].Value)
		}
	}
	return n
}

// Same says whether both ask for the same.
func (a *Asked) Same(b *Asked) bool { return a == b || reflect.DeepEqual(a, b) }

// Lacking says in words which updates a pod lacks; empty if it has all. A pod that names none of the pod sets needs the
// updates of any one of them, because some operators make pods without our annotation.
func (a *Asked) Lacking(pod *corev1.Pod, listed Listed) (lacking string) {
	if fault := a.unwritable(listed); a == nil || fault != "" {
		return fault
	}
	names := []string{pod.Annotations[v1alpha1.AnnotationRelatedPodSet]}
	if _, ok := a.sets[names[0]]; !ok {
		names = slices.Sorted(maps.Keys(a.sets))
	}
	for _, name := range names {
		u := a.sets[name]
		lacks := u.Lacking(pod.Labels, pod.Annotations, &pod.Spec)
		if lacks == "" {
			return ""
		}
		if lacking == "" {
			lacking = fmt.Sprintf("%s of pod set %q", lacks, name)
		}
	}
	return lacking
}

// conflictOf says in words which answers ask for what cannot both be; empty if none do.
func conflictOf(checks []v1alpha1.AdmissionCheckState) string {
	type asked struct{ by, value string }
	all := map[string]asked{}
	for i := range checks {
		if !ready(&checks[i]) {
			continue
		}
		by := checks[i].Name
		for j := range checks[i].PodSetUpdates {
			set, u := checks[i].PodSetUpdates[j].Name, of(&checks[i].PodSetUpdates[j])
			for _, values := range u.values() {
				for _, key := range slices.Sorted(maps.Keys(values.of)) {
					at, value := set+" "+values.what+" "+key, values.of[key]
					if before, ok := all[at]; ok && before.value != value {
						return fmt.Sprintf("admission checks %q and %q ask for different values of %s %.300q in pod set %q",
							before.by, by, values.what, key, set)
					}
					all[at] = asked{by, value}
				}
			}
		}
	}
	return ""
}
