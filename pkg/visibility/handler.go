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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine"
)

const (
	// defaultLimit and maxLimit bound the units of one queue in an answer; maxOffset bounds the work of making it.
	defaultLimit = 100
	maxLimit     = 1000
	maxOffset    = 100000
	// overviewItems is how many units of each queue the list of queues shows.
	overviewItems = 3
	timeout       = 5 * time.Second
)

// Source is where the answers come from.
type Source interface {
	// Ask runs f where the view is consistent, and waits for it.
	Ask(ctx context.Context, f func(engine.View)) error
}

// Queue is one queue in an answer.
type Queue struct {
	Name string `json:"name"`
	// Exists is false for a queue that units name and that nobody made.
	Exists   bool   `json:"exists"`
	Policy   string `json:"policy,omitempty"`
	Priority int32  `json:"priority"`
	Held     bool   `json:"held,omitempty"`
	Pending  int    `json:"pending"`
	Parked   int    `json:"parked"`
	Admitted int    `json:"admitted"`
	// Units that wait, in the order of the queue.
	Units []Waiting `json:"units"`
}

// Waiting is one waiting unit of a queue.
type Waiting struct {
	Position  int               `json:"position"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Quota     string            `json:"quota"`
	Priority  int32             `json:"priority"`
	Reason    string            `json:"reason,omitempty"`
	Message   string            `json:"message,omitempty"`
	Requested map[string]string `json:"requested,omitempty"`
}

// Unit is one unit, waiting or not.
type Unit struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Queue     string `json:"queue"`
	Quota     string `json:"quota"`
	Priority  int32  `json:"priority"`
	// Position in the queue from 1, out of Waiting; absent for a unit that is not in line. First is the unit at the
	// front, as namespace/name, if that is another one.
	Position int    `json:"position,omitempty"`
	Waiting  int    `json:"waiting,omitempty"`
	First    string `json:"first,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
	// NotBefore is when a unit that backs off is tried again.
	NotBefore string `json:"notBefore,omitempty"`
	// Shortages are all that a waiting unit lacks, its own quota first.
	Shortages []Shortage `json:"shortages,omitempty"`
	// Writing: a decision about the unit is on its way to the API server.
	Writing   bool              `json:"writing,omitempty"`
	Requested map[string]string `json:"requested,omitempty"`
	Held      map[string]string `json:"held,omitempty"`
	// Outstanding is the part of Held that no assigned pod uses yet.
	Outstanding map[string]string `json:"outstanding,omitempty"`
}

// Shortage is one resource on one level of the quota tree of which there is too little for a unit. Where bound is min,
// all amounts are of what is non-preemptible.
type Shortage struct {
	Level    string `json:"level"`
	Resource string `json:"resource"`
	// Bound says what Limit is: max or min of the quota, runtime (its fair share, below max), or the total that there is.
	Bound string `json:"bound"`
	// Binds marks the shortage that reason and message are about; NeverFits one that waiting does not help.
	Binds     bool   `json:"binds,omitempty"`
	NeverFits bool   `json:"neverFits,omitempty"`
	Limit     string `json:"limit"`
	Max       string `json:"max,omitempty"`
	Min       string `json:"min,omitempty"`
	// Used by pods on nodes: UsedByJobs are those of queued jobs, UsedByOthers the rest.
	Used         string `json:"used"`
	UsedByJobs   string `json:"usedByJobs"`
	UsedByOthers string `json:"usedByOthers"`
	// Reserved for admitted jobs beyond their pods that are on nodes.
	Reserved string `json:"reserved"`
	// ClaimedAhead is what blocking units ahead wait for here, ClaimedBy the first of them, as namespace/name.
	ClaimedAhead string `json:"claimedAhead,omitempty"`
	ClaimedBy    string `json:"claimedBy,omitempty"`
	Request      string `json:"request"`
	// Free is limit - used - reserved; below zero where more is in use than the limit allows.
	Free string `json:"free"`
	// Missing is what has to be freed here before the unit fits.
	Missing string `json:"missing"`
}

// Overview lists all queues.
type Overview struct {
	// Leading says whether this process decides; a standby shows the same queues.
	Leading bool    `json:"leading"`
	Queues  []Queue `json:"queues"`
}

// NewHandler serves
//
//	GET /queues                          all queues, each with its first units
//	GET /queues/NAME?limit=100&offset=0  one queue
//	GET /units/NAMESPACE/NAME            one unit
//	GET /audit                           the last comparison of the engine's state with the API
//	POST /audit                          makes another one soon
//
// Paths are relative; whoever mounts it strips what comes before.
func NewHandler(source Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /queues", func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, source, func(v engine.View) (any, error) { return overview(v), nil })
	})
	mux.HandleFunc("GET /queues/{name}", func(w http.ResponseWriter, r *http.Request) {
		limit, errLimit := number(r, "limit", defaultLimit, maxLimit)
		offset, errOffset := number(r, "offset", 0, maxOffset)
		if err := errors.Join(errLimit, errOffset); err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		respond(w, r, source, func(v engine.View) (any, error) { return oneQueue(v, r.PathValue("name"), limit, offset) })
	})
	mux.HandleFunc("GET /units/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, source, func(v engine.View) (any, error) {
			return oneUnit(v, r.PathValue("namespace"), r.PathValue("name"))
		})
	})
	mux.HandleFunc("GET /audit", func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, source, func(v engine.View) (any, error) { return lastAudit(v) })
	})
	mux.HandleFunc("POST /audit", func(w http.ResponseWriter, r *http.Request) {
		respondWith(http.StatusAccepted, w, r, source, requestAudit)
	})
	return mux
}

var (
	errNotFound = errors.New("not found")
	errTooSoon  = errors.New("too soon")
)

func overview(v engine.View) Overview {
	answer := Overview{Leading: v.Leading(), Queues: []Queue{}}
	for _, info := range v.Queues() {
		answer.Queues = append(answer.Queues, queueOf(v, info, 0, overviewItems))
	}
	return answer
}

func oneQueue(v engine.View, name string, limit, offset int) (any, error) {
	for _, info := range v.Queues() {
		if info.Name == name {
			return queueOf(v, info, offset, limit), nil
		}
	}
	return nil, fmt.Errorf("queue %q: %w", name, errNotFound)
}

func queueOf(v engine.View, info engine.QueueInfo, offset, limit int) Queue {
	q := Queue{
		Name: info.Name, Exists: info.Exists, Policy: info.Policy, Priority: info.Priority, Held: info.Held,
		Pending: info.Pending, Parked: info.Parked, Admitted: info.Admitted, Units: []Waiting{},
	}
	for _, w := range v.Waiting(info.Name, offset, limit) {
		q.Units = append(q.Units, waitingOf(w))
	}
	return q
}

func waitingOf(w admission.Waiting) Waiting {
	namespace, name, _ := strings.Cut(w.Unit.Key, "/")
	return Waiting{
		Position: w.Position, Namespace: namespace, Name: name, Quota: w.Unit.Quota, Priority: w.Unit.Priority,
		Reason: string(w.Reason), Message: w.Message, Requested: amounts(w.Unit.Request),
	}
}

func oneUnit(v engine.View, namespace, name string) (any, error) {
	info, ok := v.Unit(namespace + "/" + name)
	if !ok {
		return nil, fmt.Errorf("unit %q in namespace %q: %w", name, namespace, errNotFound)
	}
	unit := Unit{
		Namespace: namespace, Name: name, Phase: string(info.Phase), Queue: info.Queue, Quota: info.Quota,
		Priority: info.Priority, Position: info.Position, Waiting: info.Waiting, First: info.First,
		Reason: string(info.Reason), Message: info.Message,
		Writing: info.Writing, Requested: amounts(info.Requested), Held: amounts(info.Held),
		Outstanding: amounts(info.Outstanding),
	}
	if !info.Until.IsZero() {
		unit.NotBefore = info.Until.UTC().Format(time.RFC3339)
	}
	for i := range info.Shortages {
		unit.Shortages = append(unit.Shortages, shortageOf(&info.Shortages[i]))
	}
	return unit, nil
}

func shortageOf(s *admission.Shortage) Shortage {
	format := func(amount int64) string { return resources.Format(s.Resource, amount) }
	out := Shortage{
		Level: s.Level, Resource: s.Resource, Bound: string(s.Bound), Binds: s.Binds, NeverFits: s.Never,
		Limit: format(s.Limit), Used: format(s.Used), UsedByJobs: format(s.UsedByUnits), UsedByOthers: format(s.UsedByOthers),
		Reserved: format(s.Outstanding), ClaimedBy: s.ClaimedBy,
		Request: format(s.Request), Free: format(s.Free), Missing: format(s.Missing),
	}
	if s.HasMax {
		out.Max = format(s.Max)
	}
	if s.HasMin {
		out.Min = format(s.Min)
	}
	if s.Claimed > 0 {
		out.ClaimedAhead = format(s.Claimed)
	}
	return out
}

func amounts(list resources.List) map[string]string {
	if list.Len() == 0 {
		return nil
	}
	out := make(map[string]string, list.Len())
	for _, item := range list.Items() {
		out[item.Name] = resources.Format(item.Name, item.Amount)
	}
	return out
}

// number reads a query parameter; more than the greatest value is cut to it.
func number(r *http.Request, name string, absent, greatest int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a number from 0", name, text)
	}
	return min(n, greatest), nil
}

// respond encodes outside of the engine's goroutine: a slow reader must not hold up decisions.
func respond(w http.ResponseWriter, r *http.Request, source Source, question func(engine.View) (any, error)) {
	respondWith(http.StatusOK, w, r, source, question)
}

// respondWith answers with this status if there is an answer.
func respondWith(
	ok int, w http.ResponseWriter, r *http.Request, source Source, question func(engine.View) (any, error),
) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	answers := make(chan any, 1)
	problems := make(chan error, 1)
	err := source.Ask(ctx, func(v engine.View) {
		answer, err := question(v)
		if err != nil {
			problems <- err
			return
		}
		answers <- answer
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		fail(w, http.StatusServiceUnavailable, errors.New("the admission loop did not answer in time"))
		return
	case err != nil:
		fail(w, http.StatusInternalServerError, err)
		return
	}
	select {
	case err := <-problems:
		status := http.StatusInternalServerError
		switch {
		case errors.Is(err, errNotFound):
			status = http.StatusNotFound
		case errors.Is(err, errTooSoon):
			status = http.StatusTooManyRequests
		}
		fail(w, status, err)
	case answer := <-answers:
		write(w, ok, answer)
	default:
		fail(w, http.StatusInternalServerError, errors.New("no answer"))
	}
}

func fail(w http.ResponseWriter, status int, err error) {
	write(w, status, map[string]string{"error": err.Error()})
}

func write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "the answer cannot be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// What a reader who went away does not read is nobody's loss.
	_, _ = w.Write(append(data, '\n'))
}
