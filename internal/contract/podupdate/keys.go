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
	"slices"
	"strings"

	autoscaling "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Keys are the labels and annotations that a check may write, as its AdmissionCheck lists them: keys, or all of a
// domain. Every check may write the annotations of autoscalers, node selectors and tolerations.
type Keys []string

// ParseKeys reads v1alpha1.AnnotationPodUpdateKeys of an AdmissionCheck.
func ParseKeys(annotations map[string]string) (keys Keys) {
	for key := range strings.SplitSeq(annotations[v1alpha1.AnnotationPodUpdateKeys], ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func (k Keys) allow(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return slices.Contains(k, key) || prefixed && slices.Contains(k, domain+"/*")
}

// written is a key that not every check may write.
type written struct{ check, what, key string }

// always says that every check may write it.
func (w *written) always() bool {
	return w.what == "annotation" && (w.key == autoscaling.AnnotationConsume || w.key == autoscaling.AnnotationClass)
}

// keysOf are those that the checks that were passed ask to write.
func keysOf(checks []v1alpha1.AdmissionCheckState) (keys []written) {
	for i := range checks {
		if !ready(&checks[i]) {
			continue
		}
		for j := range checks[i].PodSetUpdates {
			u := of(&checks[i].PodSetUpdates[j])
			for _, values := range u.values() {
				if values.what == "nodeSelector" {
					continue
				}
				for _, key := range slices.Sorted(maps.Keys(values.of)) {
					w := written{checks[i].Name, values.what, key}
					if !w.always() && !slices.Contains(keys, w) {
						keys = append(keys, w)
					}
				}
			}
		}
	}
	return keys
}

// AskedBy says whether the check asks to write a key that not every check may write.
func (a *Asked) AskedBy(check string) bool {
	return a != nil && slices.ContainsFunc(a.keys, func(w written) bool { return w.check == check })
}

// Listed are the keys of a check; false for one that is not known. Then nobody says what it may write, and it may.
type Listed func(check string) (Keys, bool)

// Onto adds to the answers about a unit why what they ask to write cannot be written, if it cannot.
func (a *Asked) Onto(answers *unit.CheckAnswers, listed Listed) *unit.CheckAnswers {
	if fault := a.unwritable(listed); fault != "" && answers != nil {
		return &unit.CheckAnswers{Answers: answers.Answers, Conflict: fault}
	}
	return answers
}

// unwritable says in words why what was asked for cannot be written; empty if it can.
func (a *Asked) unwritable(listed Listed) string {
	switch {
	case a == nil:
		return ""
	case a.fault != "":
		return a.fault
	}
	for _, w := range a.keys {
		if keys, known := listed(w.check); known && !keys.allow(w.key) {
			return fmt.Sprintf("admission check %q asks to write %s %.300q into pods, which is not among the keys that it "+
				"lists in its annotation %s", w.check, w.what, w.key, v1alpha1.AnnotationPodUpdateKeys)
		}
	}
	return ""
}
