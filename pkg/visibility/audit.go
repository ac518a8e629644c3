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

package visibility

import (
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine"
)

// Audit is the last comparison of ledger and queues with the API objects and Koordinator's used. To read it starts
// none.
type Audit struct {
	At   string `json:"at"`
	Took string `json:"took"`
	// Units, pods and levels of the quota tree that were compared.
	Units  int `json:"units"`
	Pods   int `json:"pods"`
	Levels int `json:"levels"`
	// Found is the number of differences; the first of them are listed. Rebuilt: the state was built anew because of them.
	Found       int          `json:"found"`
	Differences []Difference `json:"differences"`
	Rebuilt     bool         `json:"rebuilt"`
}

// Difference is one place where what the engine went by was not what it should be.
type Difference struct {
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Field  string `json:"field"`
	Engine string `json:"engine"`
	Source string `json:"source"`
}

// AuditRequested answers a request for an audit. It costs a list of all units, and the port has no authentication: so
// there is no more than one a minute.
type AuditRequested struct {
	// Last is when the last audit before this one began; what has another time in /audit is newer.
	Last string `json:"last,omitempty"`
}

func requestAudit(v engine.View) (any, error) {
	if wait := v.RequestAudit(); wait > 0 {
		return nil, fmt.Errorf("audit: %w: one was requested less than a minute ago; wait %s",
			errTooSoon, wait.Round(time.Second))
	}
	answer := AuditRequested{}
	if last := v.LastAudit(); last != nil {
		answer.Last = last.At.UTC().Format(time.RFC3339)
	}
	return answer, nil
}

func lastAudit(v engine.View) (any, error) {
	last := v.LastAudit()
	if last == nil {
		return nil, fmt.Errorf("audit: %w: none was made yet", errNotFound)
	}
	answer := Audit{
		At: last.At.UTC().Format(time.RFC3339), Took: last.Took.Round(time.Millisecond).String(),
		Units: last.Units, Pods: last.Pods, Levels: last.Levels,
		Found: last.Found, Rebuilt: last.Rebuilt, Differences: []Difference{},
	}
	for _, d := range last.Differences {
		answer.Differences = append(answer.Differences, Difference{string(d.Kind), d.Object, d.Field, d.Engine, d.Source})
	}
	return answer, nil
}
