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
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
)

// Requester is how often somebody asked for a write.
type Requester struct {
	Who      string  `json:"who"`
	Resource string  `json:"resource"`
	Verb     string  `json:"verb"`
	Code     int     `json:"code"`
	Count    int     `json:"count"`
	PerJob   float64 `json:"perJob"`
}

// requesters counts who wrote what between two times, by the API server's clock.
func requesters(log io.Reader, from, to time.Time, jobs int) ([]Requester, error) {
	counts := map[Requester]int{}
	torn, err := auditlog.Read(log, func(e *auditlog.Event) {
		if at := e.RequestReceivedTimestamp; at.Before(from) || at.After(to) || !isWrite("POST", e.ObjectRef.Resource) {
			return
		}
		who := e.User.Username[strings.LastIndexByte(e.User.Username, ':')+1:]
		counts[Requester{Who: who, Resource: e.Kind(), Verb: e.Verb, Code: e.ResponseStatus.Code}]++
	})
	if err == nil && torn > 0 {
		err = fmt.Errorf("%d lines cannot be read", torn)
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
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
	return all, nil
}

// audited counts what the audit log says of the time between the first and the last reading; nothing without one.
func (r *run) audited(jobs int) ([]Requester, error) {
	if !r.Audit {
		return nil, nil
	}
	log, err := os.Open(r.cp.AuditLog())
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
