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

// Package event has the events that the controller records about jobs, and remembers which were recorded already. It
// has no client: the caller passes a Recorder.
package event

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Event on a job, or on what has events in its place.
type Event struct {
	Type, Reason, Action, Note string
	// Of is what the event tells of, where that is less than the job: the same is told again of another.
	Of string
}

// Normal is an event of a transition.
func Normal(reason, action, note string) *Event {
	return &Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note}
}

// Warning is an event of what somebody may have to do something about.
func Warning(reason, action, note string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note}
}

// Recorder is what Record needs of one of client-go.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Record hands an event to the recorder; nil is no event.
func Record(recorder Recorder, regarding runtime.Object, e *Event) {
	if e != nil {
		recorder.Eventf(regarding, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
}

// Short bounds text that users have a part in.
func Short(text string) string {
	const most = 512
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
