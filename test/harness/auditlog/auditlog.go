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

// Package auditlog has the audit policies of test API servers, and reads their audit logs: who wrote what.
package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// Writes is a policy that notes every request that may write, without what was written.
const Writes = header + `
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// Watch is the verb of a request that watches; its event is written when it ends.
const Watch = "watch"

// WritesAndWatches is a policy that also notes each watch that ends.
const WritesAndWatches = header + `
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection, ` + Watch + `]
- level: None
`

// Decisions is a policy that notes, with what was written, bindings of pods and writes to jobs, units and their status;
// and deletes of units.
const Decisions = header + `
- level: Request
  verbs: [create]
  resources: [{group: "", resources: [pods/binding]}]
- level: Request
  verbs: [update, patch]
  resources:
  - {group: scheduling.x-k8s.io, resources: [queueunits, queueunits/status]}
  - {group: batch, resources: [jobs]}
- level: Metadata
  verbs: [delete, deletecollection]
  resources: [{group: scheduling.x-k8s.io, resources: [queueunits]}]
- level: None
`

const header = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:`

// Event is the part of an audit event that is read.
type Event struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	// RequestReceivedTimestamp is by the API server's clock.
	RequestReceivedTimestamp time.Time
	// RequestObject is what was written, by policy Decisions.
	RequestObject struct {
		Spec   struct{ Suspend *bool }
		Status struct {
			Phase    *string
			Attempts int64
		}
	}
}

// Succeeded is false for a request that the server refused, by conflict or time-out for example: it wrote nothing.
func (e *Event) Succeeded() bool {
	const firstFailure = 300
	return e.ResponseStatus.Code != 0 && e.ResponseStatus.Code < firstFailure
}

// Object is namespace/name of what was written.
func (e *Event) Object() string { return e.ObjectRef.Namespace + "/" + e.ObjectRef.Name }

// Kind is the resource that was written, with its subresource if there is one.
func (e *Event) Kind() string {
	if e.ObjectRef.Subresource == "" {
		return e.ObjectRef.Resource
	}
	return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
}

// Read visits the events of a log. torn counts the lines that the sudden end of an API server cut off: a request that
// was carried out may be missing then. So the log can show that something happened twice, and not that it did not
// happen.
func Read(log io.Reader, visit func(*Event)) (torn int, err error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		e, whole := parse(lines.Bytes())
		if !whole {
			torn++
		}
		if e != nil {
			visit(e)
		}
	}
	return torn, lines.Err()
}

// parse returns what can be read of a line, and whether that is all of it.
func parse(line []byte) (e *Event, whole bool) {
	e = &Event{}
	if json.Unmarshal(line, e) == nil {
		return e, true
	}
	// The line that the next API server began with is behind what was cut off.
	e = &Event{}
	rest := bytes.LastIndex(line, []byte(`{"kind":"Event"`))
	if rest <= 0 || json.Unmarshal(line[rest:], e) != nil {
		return nil, false
	}
	return e, false
}
