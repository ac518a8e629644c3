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

package standin

import "time"

// condition is one of status.conditions. Operators differ in the times that they write.
type condition struct {
	kind, reason, message string
	status                bool
	// updateTime: written with lastUpdateTime, as Kubeflow's operators do.
	updateTime bool
	// noTimes: written without any time, as Argo does.
	noTimes bool
}

func (c condition) value() string {
	if c.status {
		return "True"
	}
	return "False"
}

// setCondition puts the condition into the status, at its place or at the end. It says whether its status changed.
func setCondition(status map[string]any, c condition, now time.Time) bool {
	next := map[string]any{"type": c.kind, "status": c.value()}
	set(next, "reason", c.reason)
	list, _ := status["conditions"].([]any)
	for i := range list {
		old, _ := list[i].(map[string]any)
		if text(old, "type") != c.kind {
			continue
		}
		changed := text(old, "status") != c.value()
		if !changed && text(old, "reason") == c.reason {
			return false
		}
		c.stamp(next, now)
		if !changed {
			set(next, "lastTransitionTime", text(old, "lastTransitionTime"))
		}
		list[i] = next
		return changed
	}
	c.stamp(next, now)
	status["conditions"] = append(list, next)
	return true
}

func (c condition) stamp(next map[string]any, now time.Time) {
	if !c.noTimes {
		next["message"] = c.message // the CRDs require it, empty or not
		next["lastTransitionTime"] = timestamp(now)
	}
	if c.updateTime {
		next["lastUpdateTime"] = timestamp(now)
	}
}

// conditionOf is "True", "False" or, when there is no such condition, "".
func conditionOf(status map[string]any, kind string) string {
	for _, c := range parts(status, "conditions") {
		if text(c, "type") == kind {
			return text(c, "status")
		}
	}
	return ""
}
