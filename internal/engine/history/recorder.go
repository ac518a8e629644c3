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

package history

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

const (
	// bytesOfRecord is what the records may take on average.
	bytesOfRecord = 640
	// unwritten is the number of records that wait for the disk.
	unwritten = 4096
	// mostExamined bounds the records that one page looks at.
	mostExamined = 20_000
	// chunk is the number of records that are copied under the lock.
	chunk = 500
	// overlap is for how long two leaders may write of the same transitions, by different clocks.
	overlap = time.Minute
)

// Options of a Recorder.
type Options struct {
	// Records bounds the records in memory.
	Records int
	// Path of the file; empty writes none. MaxSizeMB bounds each file, MaxFiles their number.
	Path                string
	MaxSizeMB, MaxFiles int
	// Metrics counts records that are lost; nil counts nothing.
	Metrics *metrics.Set
}

// Recorder records transitions of units. A nil Recorder records nothing.
//
// Every process observes the transitions in its own copy of the objects and keeps them in memory. So each process can
// answer, and a new leader knows the record of its predecessor. Only the leader writes the file.
//
// Begin, Lead and Changed are for one goroutine and never wait for a disk. Other methods are for any goroutine.
type Recorder struct {
	o       Options
	journal *journal // nil without a path; of the goroutine of Run, as failing
	failing bool     // the last write did
	begun   bool
	// begins and leads are closed by Begin and Lead.
	begins, leads chan struct{}
	lines         chan Record

	mu   sync.Mutex
	ring *ring
	// fromFile is the number of the last entry that was read from the file.
	fromFile uint64
	// follows: records go to the file.
	follows bool
}

// New returns a Recorder that records nothing before Begin; nil if no record should be kept.
func New(o Options) *Recorder {
	if o.Records <= 0 {
		return nil
	}
	r := &Recorder{
		o: o, begins: make(chan struct{}), leads: make(chan struct{}), lines: make(chan Record, unwritten),
		ring: newRing(o.Records, o.Records*bytesOfRecord, time.Time{}),
	}
	if o.Path != "" {
		r.journal = newJournal(o.Path, o.MaxSizeMB, o.MaxFiles)
	}
	return r
}

// Begin says that all units that exist are known: changes of them are transitions from now on.
func (r *Recorder) Begin(now time.Time) {
	if r == nil || r.begun {
		return
	}
	r.begun = true
	r.mu.Lock()
	r.ring.begun = now
	r.mu.Unlock()
	close(r.begins)
}

// Lead says that this process decides: its records go to the file from now on. It is called once, after Begin.
func (r *Recorder) Lead() {
	if r != nil {
		close(r.leads)
	}
}

// Changed tells of another state of a unit: of a new one if before is none, of one that is gone if after is none.
func (r *Recorder) Changed(now time.Time, before, after State) {
	if r == nil || !r.begun {
		return
	}
	records := between(now, &before, &after)
	if len(records) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range records {
		r.ring.add(&records[i])
		if !r.follows {
			continue
		}
		select {
		case r.lines <- records[i]:
		default:
			r.o.Metrics.Inc(metrics.HistoryLostTotal, "Overflow")
		}
	}
}

// Run reads and writes the file until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	if r == nil || r.journal == nil {
		return
	}
	log := klog.FromContext(ctx).WithName("history").WithValues("path", r.o.Path)
	begins, leads := r.begins, r.leads
	for {
		select {
		case <-ctx.Done():
			for len(r.lines) > 0 {
				record := <-r.lines
				r.write(log, &record)
			}
			_ = r.journal.close()
			return
		case <-begins:
			begins = nil
			r.restore(log)
		case <-leads:
			leads = nil
			if begins != nil {
				begins = nil
				r.restore(log)
			}
			for _, e := range r.catchUp(log) {
				r.write(log, &e.Record)
			}
		case record := <-r.lines:
			r.write(log, &record)
		}
	}
}

func (r *Recorder) write(log klog.Logger, record *Record) {
	err := r.journal.write(record)
	switch {
	case err != nil && !r.failing:
		log.Error(err, "The history file cannot be written; its records are lost")
	case err == nil && r.failing:
		log.Info("The history file is written again")
	}
	if r.failing = err != nil; r.failing {
		r.o.Metrics.Inc(metrics.HistoryLostTotal, "Error")
	}
}

// restore puts the records of the file before those that this process has made.
func (r *Recorder) restore(log klog.Logger) {
	r.mu.Lock()
	begun := r.ring.begun
	r.mu.Unlock()
	restored, seen := newRing(r.o.Records, r.o.Records*bytesOfRecord, begun), map[identity]struct{}{}
	skipped, err := Read(r.o.Path, func(record *Record) {
		if restored.last == 0 && record.Time.Before(begun) {
			restored.begun = record.Time
		}
		restored.add(record)
		if record.Time.After(begun.Add(-overlap)) { // the leader writes while this process observes
			seen[record.identity()] = struct{}{}
		}
	})
	if err != nil {
		log.Error(err, "The history file cannot be read to its end")
		restored.begun = begun
	}
	log.Info("Read the history file", "records", restored.last, "linesSkipped", skipped)
	r.mu.Lock()
	defer r.mu.Unlock()
	own, _ := r.ring.page("", 0, r.ring.all.Len())
	r.fromFile = restored.last
	for _, e := range slices.Backward(own) {
		if _, ok := seen[e.identity()]; !ok {
			restored.add(&e.Record)
		}
	}
	r.ring = restored
}

// catchUp has records go to the file from now on. It returns those that this process has made and the leader before
// has not written, the oldest first.
func (r *Recorder) catchUp(log klog.Logger) []*entry {
	written, last := map[identity]struct{}{}, time.Time{}
	if _, err := readFile(r.o.Path, func(record *Record) {
		last = latest(last, record.Time)
		written[record.identity()] = struct{}{}
	}); err != nil {
		log.Error(err, "The history file cannot be read to its end")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follows = true
	all, _ := r.ring.page("", 0, r.ring.all.Len())
	var missing []*entry
	for _, e := range slices.Backward(all) {
		if _, ok := written[e.identity()]; !ok && e.number > r.fromFile && e.Time.After(last.Add(-overlap)) {
			missing = append(missing, e)
		}
	}
	return missing
}

// Query asks for a page of the record. Fields that are empty select all.
type Query struct {
	Namespace, Unit, UID, Job, Queue, Quota string
	Event                                   v1alpha1.RecordEvent
	// CreatedSince leaves units out that were created before.
	CreatedSince time.Time
	// Before is the Next of the page before; zero for the newest records.
	Before uint64
	Limit  int
}

// Page is a part of the record, the newest first.
type Page struct {
	Records []Numbered
	// Next is where the next page begins; zero if none follows.
	Next uint64
	// CompleteSince is the time from which on no record was dropped.
	CompleteSince time.Time
}

// Numbered is a record and its number, which is unique in a process.
type Numbered struct {
	*Record
	Number uint64
}

// Page answers a query. Its records are not to be changed. It examines a bounded number of records, so that it may
// list fewer than the limit although more follow.
func (r *Recorder) Page(q *Query) Page {
	page := Page{Next: q.Before}
	if r == nil {
		return page
	}
	for examined := 0; ; examined += chunk {
		r.mu.Lock()
		found, more := r.ring.page(q.Namespace, page.Next, chunk)
		page.CompleteSince = r.ring.completeSince(q.Namespace)
		r.mu.Unlock()
		for i, e := range found {
			if q.selects(&e.Record) {
				page.Records = append(page.Records, Numbered{&e.Record, e.number})
			}
			page.Next = e.number
			if len(page.Records) >= q.Limit {
				if i == len(found)-1 && !more {
					page.Next = 0
				}
				return page
			}
		}
		if !more {
			page.Next = 0
			return page
		}
		if examined+chunk >= mostExamined {
			return page
		}
	}
}

// Newest visits the records of all namespaces, the newest first, as long as visit says so. The records are not to be
// changed. Like a page it examines a bounded number.
func (r *Recorder) Newest(visit func(*Numbered) bool) {
	if r == nil {
		return
	}
	var before uint64
	for examined := 0; examined < mostExamined; examined += chunk {
		r.mu.Lock()
		found, more := r.ring.page("", before, chunk)
		r.mu.Unlock()
		for _, e := range found {
			if before = e.number; !visit(&Numbered{&e.Record, e.number}) {
				return
			}
		}
		if !more {
			return
		}
	}
}

// selects says whether a record is asked for. A unit without a job is found by its own name.
func (q *Query) selects(r *Record) bool {
	for _, field := range [][2]string{
		{q.Unit, r.Unit}, {q.UID, r.UID}, {q.Queue, r.Queue}, {q.Quota, r.Quota}, {string(q.Event), string(r.Event)},
	} {
		if field[0] != "" && field[0] != field[1] {
			return false
		}
	}
	return !r.Created.Before(q.CreatedSince) && (q.Job == "" || q.Job == r.Job || r.Job == "" && q.Job == r.Unit)
}
