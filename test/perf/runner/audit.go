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

package runner

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// auditPolicy has every request that may write.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

func auditLog(dir string) string { return filepath.Join(dir, "audit.log") }

// auditArgs are flags of an API server that writes an audit log into the work directory, which has to be empty before. The
// policy is to be removed once the API server has read it.
func auditArgs(dir string) (args []string, remove func(), err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	policy, err := os.CreateTemp("", "jobqueue-perf-audit-*.yaml")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.Remove(policy.Name()) }
	_, err = policy.WriteString(auditPolicy)
	if err = errors.Join(err, policy.Close()); err != nil {
		remove()
		return nil, nil, err
	}
	return []string{"--audit-policy-file=" + policy.Name(), "--audit-log-path=" + auditLog(dir)}, remove, nil
}

// Requester is how often somebody asked for a write.
type Requester struct {
	Who      string  `json:"who"`
	Resource string  `json:"resource"`
	Verb     string  `json:"verb"`
	Code     int     `json:"code"`
	Count    int     `json:"count"`
	PerJob   float64 `json:"perJob"`
}

// auditEvent is the part of an audit event that is counted.
type auditEvent struct {
	Verb                     string
	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Subresource string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// requesters counts who wrote what between two times, by the API server's clock.
func requesters(log io.Reader, from, to time.Time, jobs int) ([]Requester, error) {
	counts := map[Requester]int{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if at := e.RequestReceivedTimestamp; at.Before(from) || at.After(to) || !isWrite("POST", e.ObjectRef.Resource) {
			continue
		}
		who := e.User.Username[strings.LastIndexByte(e.User.Username, ':')+1:]
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		counts[Requester{Who: who, Resource: resource, Verb: e.Verb, Code: e.ResponseStatus.Code}]++
	}
	all := make([]Requester, 0, len(counts))
	for x, n := range counts {
		x.Count, x.PerJob = n, round(float64(n)/float64(jobs), 4)
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Requester) int {
		return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Code, b.Code))
	})
	return all, lines.Err()
}

// audited counts what the audit log says of the time between the first and the last reading; nothing without one.
func (r *run) audited(jobs int) ([]Requester, error) {
	if !r.Audit {
		return nil, nil
	}
	log, err := os.Open(auditLog(r.Dir))
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // read only
	return requesters(log, r.before.at, r.after.at, jobs)
}

func printRequesters(out io.Writer, all []Requester) {
	if len(all) == 0 {
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nwho\tverb\tresource\tcode\tcount\tper job\n")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.2f\n", x.Who, x.Verb, x.Resource, x.Code, x.Count, x.PerJob)
	}
	_ = t.Flush()
}
