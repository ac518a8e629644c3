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

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/internal/checker"
)

// auditPolicy makes the API server note bindings, what is written to the status of units and to jobs, and deletes of units.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create]
  resources: [{group: "", resources: [pods/binding]}]
- level: Request
  verbs: [update, patch]
  resources: [{group: scheduling.x-k8s.io, resources: [queueunits/status]}, {group: batch, resources: [jobs]}]
- level: Metadata
  verbs: [delete, deletecollection]
  resources: [{group: scheduling.x-k8s.io, resources: [queueunits]}]
- level: None
`

const auditLog = "audit.log"

// auditArgs makes the API server write its audit log into dir.
func auditArgs(dir string) ([]string, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	const megabytes = 4096 // never begin a new one
	return []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, auditLog),
		fmt.Sprintf("--audit-log-maxsize=%d", megabytes),
	}, nil
}

// auditEvent is the part of an audit event that is read.
type auditEvent struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	RequestObject  struct {
		Spec   struct{ Suspend *bool }
		Status struct {
			Phase    string
			Attempts int64
		}
	}
}

// audited is what the audit log says. A request that was carried out is missing in it where the API server was killed
// in between, so it can show that something happened twice, and not that it did not happen.
type audited struct {
	Bindings, Dequeues, Resumptions int
	// Torn are lines that the end of the API server cut off.
	Torn       int
	violations []checker.Violation
}

// The rules of the audit log.
const (
	boundTwice   checker.Rule = "BoundTwice" // or released or resumed twice
	foreignWrite checker.Rule = "ForeignWrite"
)

// Who may do what.
const (
	schedulerUser  = "system:serviceaccount:koordinator-system:koord-scheduler"
	controllerUser = "system:serviceaccount:koord-queue:jobqueue-controller"
	garbageUser    = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// readAudit counts successful bindings of each pod, writes of Dequeued for each attempt of each unit, and resumptions of
// each job.
func readAudit(path string) (*audited, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	a := &audited{}
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		a.line(lines.Bytes(), counts)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if counts[what] > 1 {
			a.violations = append(a.violations, checker.Violation{Rule: boundTwice, Subject: what, Message: fmt.Sprintf("%d times, as the audit log says", counts[what])})
		}
	}
	return a, lines.Err()
}

func (a *audited) line(line []byte, counts map[string]int) {
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil {
		a.Torn++
		// The line that the next API server began with is behind what was cut off.
		rest := bytes.LastIndex(line, []byte(`{"kind":"Event"`))
		if rest <= 0 || json.Unmarshal(line[rest:], &e) != nil {
			return
		}
	}
	const firstFailure = 300
	if e.ResponseStatus.Code == 0 || e.ResponseStatus.Code >= firstFailure {
		return
	}
	object, by := e.ObjectRef.Namespace+"/"+e.ObjectRef.Name, []string(nil)
	switch suspend := e.RequestObject.Spec.Suspend; {
	case e.ObjectRef.Subresource == "binding":
		a.Bindings++
		counts["binding of "+object]++
		by = []string{schedulerUser}
	case e.RequestObject.Status.Phase == "Dequeued":
		a.Dequeues++
		counts[fmt.Sprintf("dequeue of %s in attempt %d", object, e.RequestObject.Status.Attempts)]++
		by = []string{schedulerUser}
	case e.ObjectRef.Resource == "jobs" && suspend != nil:
		if !*suspend {
			a.Resumptions++
			counts["resumption of "+object]++
		}
		by = []string{controllerUser}
	case e.ObjectRef.Resource == "queueunits" && e.Verb != "patch":
		by = []string{controllerUser, garbageUser} // after their jobs; who comes first
	default:
		return
	}
	if !slices.Contains(by, e.User.Username) {
		a.violations = append(a.violations, checker.Violation{Rule: foreignWrite, Subject: object, Message: fmt.Sprintf(
			"%s of %s %s by %s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.User.Username)})
	}
}
