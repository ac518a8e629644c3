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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// observer watches the units and notes, by the clock of this process, when what was seen of each.
type observer struct {
	client *client
	w      *workload.Workload
	units  []workload.Unit
	index  map[string]int // by name

	// over delivers units whose run time is over; done is closed when the run is; warm when any other unit is admitted.
	over chan int
	done chan struct{}
	warm chan struct{}

	mu       sync.Mutex
	seen     []sight
	n        counts
	late     time.Duration
	evicted  int
	finished bool
}

// sight is when a unit was seen to exist, to be admitted and to have ended.
type sight struct{ created, admitted, ended time.Time }

type counts struct{ created, admitted, ended int }

func newObserver(c *client, w *workload.Workload, units []workload.Unit) (*observer, error) {
	o := &observer{
		client: c, w: w, units: units, index: make(map[string]int, len(units)), seen: make([]sight, len(units)),
		over: make(chan int, len(units)), done: make(chan struct{}), warm: make(chan struct{}),
	}
	for i := range units {
		o.index[o.name(i)] = i
	}
	if len(o.index) != len(units) {
		return nil, errors.New("two units have the same name")
	}
	return o, nil
}

// name of a unit: its class, its queue, and its number there.
func (o *observer) name(i int) string {
	u := &o.units[i]
	return fmt.Sprintf("%s-%05d-%06d", o.w.Classes[u.Class].Name, u.Queue, u.Index)
}

func (o *observer) counts() counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// sent notes how much later than planned a unit was sent.
func (o *observer) sent(_ int, late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late = max(o.late, late)
}

// event is the part of a watch event that is read.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Status struct {
			Phase v1alpha1.QueueUnitPhase `json:"phase"`
		} `json:"status"`
		Message string `json:"message"`
	} `json:"object"`
}

// run watches until the context ends. A watch that ends is taken up where it was.
func (o *observer) run(ctx context.Context) error {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	raw, err := o.client.get(ctx, unitsPath(unitNamespace))
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return fmt.Errorf("list units: %w", err)
	}
	version := list.Metadata.ResourceVersion
	for {
		version, err = o.stream(ctx, version)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch units: %w", err)
		}
	}
}

func (o *observer) stream(ctx context.Context, version string) (string, error) {
	body, err := o.client.streams.Get().AbsPath(unitsPath(unitNamespace)).Param("watch", "true").
		Param("resourceVersion", version).Param("allowWatchBookmarks", "true").Stream(ctx)
	if err != nil {
		return version, err
	}
	defer body.Close() //nolint:errcheck // read only
	const ahead = 1 << 20
	decoder := json.NewDecoder(bufio.NewReaderSize(body, ahead))
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return version, nil
			}
			return version, err
		}
		if e.Type == "ERROR" {
			return version, errors.New(e.Object.Message)
		}
		version = e.Object.Metadata.ResourceVersion
		if e.Type != "BOOKMARK" {
			o.take(&e)
		}
	}
}

func (o *observer) take(e *event) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	i, ok := o.index[e.Object.Metadata.Name]
	if !ok {
		if e.Object.Status.Phase == v1alpha1.PhaseDequeued {
			select {
			case <-o.warm:
			default:
				close(o.warm)
			}
		}
		return
	}
	s := &o.seen[i]
	if s.created.IsZero() {
		s.created = now
		o.n.created++
	}
	switch e.Object.Status.Phase {
	case v1alpha1.PhaseDequeued:
		if s.admitted.IsZero() {
			s.admitted = now
			o.n.admitted++
			runtime := time.Duration(o.w.Classes[o.units[i].Class].RuntimeMs) * time.Millisecond
			time.AfterFunc(runtime, func() { o.over <- i })
		}
	case v1alpha1.PhaseSucceed:
		if s.ended.IsZero() {
			s.ended = now
			o.n.ended++
		}
	default:
		if !s.admitted.IsZero() {
			o.evicted++
		}
	}
	enough := o.w.StopAfterAdmissions > 0 && o.n.admitted >= o.w.StopAfterAdmissions
	if (enough || o.n.ended == len(o.units)) && !o.finished {
		o.finished = true
		close(o.done)
	}
}

// result returns what was seen; nothing changes after it.
func (o *observer) result() ([]sight, time.Duration, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]sight(nil), o.seen...), o.late, o.evicted
}

// atoi reads what the kernel writes; 0 for anything else.
func atoi(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
