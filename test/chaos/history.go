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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/checker"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controlplane"
)

// history is every state that every quota, unit, pod and job was ever in, in the order of the store.
//
// A watch through the API server has gaps: a restarted one refuses to go on where the watch was, and the client lists
// anew. The store itself keeps its revisions over kill -9, and its watch goes on at the next one. So the history is
// taken from there, beginning with the first revision; as each revision of the store must be in it, a gap cannot go
// unnoticed.
type history struct {
	client *clientv3.Client

	mu       sync.Mutex
	events   []checker.Event
	seen     []time.Time // when each of the events was
	revision int64       // the last one seen
	missing  int64       // revisions that were left out
	last     time.Time
	broken   error

	jobs    map[string]checker.Job // by UID; those that exist
	pods    map[string]checker.Pod // by UID; those that exist
	names   map[string][]string    // namespace/name of a job -> its UIDs
	kubelet map[string]time.Time   // by UID: pods whose next step is the kubelet's, and since when
	lives   *lives
}

func newHistory(endpoint string) (*history, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		// An etcd that is paused for long is not worth a new connection, but a dead one is.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 60 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	return &history{
		client: client,
		jobs:   map[string]checker.Job{}, pods: map[string]checker.Pod{},
		names: map[string][]string{}, kubelet: map[string]time.Time{}, lives: newLives(),
	}, nil
}

// run takes down the history until ctx ends.
func (h *history) run(ctx context.Context) {
	everything := []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithPrevKV()}
	for ctx.Err() == nil {
		h.mu.Lock()
		next := h.revision + 1
		h.mu.Unlock()
		for response := range h.client.Watch(clientv3.WithRequireLeader(ctx), "\x00", append(everything, clientv3.WithRev(next))...) {
			if err := response.Err(); err != nil {
				h.fail(ctx, err)
				break
			}
			h.take(response.Events)
		}
		sleep(ctx, time.Second)
	}
}

func (h *history) fail(ctx context.Context, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Without a leader for a moment the watch is closed and opened again; what is compacted is lost.
	if ctx.Err() == nil && h.broken == nil && strings.Contains(err.Error(), "compacted") {
		h.broken = fmt.Errorf("the store forgot a part of its history: %w", err)
	}
}

func (h *history) take(events []*clientv3.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
	for _, e := range events {
		revision := e.Kv.ModRevision
		// One transaction may hold several events. The store begins with revision 1, which is empty.
		if h.revision > 0 && revision > h.revision+1 {
			h.missing += revision - h.revision - 1
		}
		h.revision = max(h.revision, revision)
		if err := h.event(e); err != nil && h.broken == nil {
			h.broken = fmt.Errorf("revision %d of %s: %w", revision, e.Kv.Key, err)
		}
	}
}

// readers decode what lies under a prefix.
var readers = map[string]func([]byte) (any, error){
	"/registry/pods/": func(value []byte) (any, error) {
		pod := &corev1.Pod{}
		if err := decode(value, pod); err != nil {
			return nil, err
		}
		return pod, nil
	},
	"/registry/jobs/": func(value []byte) (any, error) {
		job := &batchv1.Job{}
		if err := decode(value, job); err != nil {
			return nil, err
		}
		return job, nil
	},
	"/registry/scheduling.x-k8s.io/queueunits/": func(value []byte) (any, error) {
		unit := &v1alpha1.QueueUnit{}
		if err := json.Unmarshal(value, unit); err != nil {
			return nil, err
		}
		return unit, nil
	},
	"/registry/scheduling.sigs.k8s.io/elasticquotas/": func(value []byte) (any, error) {
		quota := &unstructured.Unstructured{}
		if err := quota.UnmarshalJSON(value); err != nil {
			return nil, err
		}
		return checker.QuotaOf(quota)
	},
}

func decode(value []byte, into runtime.Object) error {
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, into)
	return err
}

func (h *history) event(e *clientv3.Event) error {
	for prefix, read := range readers {
		if !bytes.HasPrefix(e.Kv.Key, []byte(prefix)) {
			continue
		}
		value, deleted := e.Kv.Value, e.Type == mvccpb.DELETE
		if deleted {
			if e.PrevKv == nil {
				return errors.New("deleted, and its last state is not known")
			}
			value = e.PrevKv.Value
		}
		object, err := read(value)
		if err != nil {
			return err
		}
		h.note(object, uint64(e.Kv.ModRevision), deleted)
		return nil
	}
	return nil
}

func (h *history) note(object any, version uint64, deleted bool) {
	now := time.Now()
	switch o := object.(type) {
	case *v1alpha1.QueueUnit:
		h.lives.unit(o, deleted)
		object = checker.UnitOf(o)
	case *batchv1.Job:
		h.lives.job(o, deleted)
		job := checker.JobOf(o)
		if _, known := h.jobs[job.UID]; !known && !deleted {
			h.names[job.Name] = append(h.names[job.Name], job.UID)
		}
		keep(h.jobs, job.UID, job, deleted)
		object = job
	case *corev1.Pod:
		pod := checker.PodOf(o)
		keep(h.pods, pod.UID, pod, deleted)
		ends := o.DeletionTimestamp != nil || (pod.Job != "" && !pod.Terminal)
		keep(h.kubelet, pod.UID, now, deleted || !pod.Bound || !ends)
		object = pod
	}
	h.seen = append(h.seen, now)
	h.events = append(h.events, checker.Event{Version: version, Deleted: deleted, Object: object})
}

// stuck says whether a pod has waited for its kubelet for so long, while the store was at work.
func (h *history) stuck(patience time.Duration) bool {
	const silence = 5 * time.Second // leases are written more often
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.last) > silence {
		return false
	}
	for _, since := range h.kubelet {
		if time.Since(since) > patience {
			return true
		}
	}
	return false
}

func keep[T any](all map[string]T, uid string, object T, deleted bool) {
	if deleted {
		delete(all, uid)
		return
	}
	all[uid] = object
}

// caughtUp waits until the history holds all that the store has.
func (h *history) caughtUp(ctx context.Context) error {
	for {
		response, err := h.client.Get(ctx, "\x00")
		if err != nil {
			return fmt.Errorf("ask the store for its revision: %w", err)
		}
		h.mu.Lock()
		revision, broken := h.revision, h.broken
		h.mu.Unlock()
		if broken != nil {
			return broken
		}
		if revision >= response.Header.Revision {
			return nil
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("the history is at revision %d, the store at %d: %w", revision, response.Header.Revision, ctx.Err())
		}
	}
}

// describe is one line of the written history.
func describe(e checker.Event) string {
	gone := ""
	if e.Deleted {
		gone = " deleted"
	}
	switch o := e.Object.(type) {
	case checker.Unit:
		return fmt.Sprintf("unit %s of %s request %v priority %d attempt %d admitted %t at %s parked %t%s",
			o.Key, o.Quota, o.Request, o.Priority, o.Attempts, o.Admitted, o.AdmittedAt.Format(time.TimeOnly), o.Parked, gone)
	case checker.Pod:
		return fmt.Sprintf("pod %s of %s request %v bound %t ended %t%s", o.Name, o.Quota, o.Request, o.Bound, o.Terminal, gone)
	case checker.Job:
		return fmt.Sprintf("job %s complete %t failed %t%s", o.Name, o.Complete, o.Failed, gone)
	default:
		return fmt.Sprintf("%+v%s", o, gone)
	}
}

// state is how far the jobs are, for the line of progress and to know when all is over.
type state struct {
	done, open int // of the jobs that exist
	waiting    int // pods without a node
	running    int // pods on one that have not ended
	events     int
}

func (h *history) state() state {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := state{events: len(h.events)}
	for _, job := range h.jobs {
		if job.Complete || job.Failed {
			s.done++
		} else {
			s.open++
		}
	}
	for _, pod := range h.pods {
		switch {
		case pod.Terminal:
		case pod.Bound:
			s.running++
		default:
			s.waiting++
		}
	}
	return s
}

// since returns the events after the first n.
func (h *history) since(n int) []checker.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events[n:])
}

// judged is what the history says about the promises.
type judged struct {
	done       int
	violations []checker.Violation
	attempts   map[int64]int // units by the number of their admissions
	ordered    int           // admissions in blocking queues at a time at which their order can be judged
	unordered  int           // and at other times
	events     int
	missing    int64
	deleted    int
}

// spare counts, by UID of their job, the pods that were created while the answer to that may have been lost. The job
// controller then takes it for failed and creates another one, once in a while before it sees the first. Kubernetes promises
// no more than that a pod is started at least once; it is no second admission.
func (h *history) spare(outages []outage) map[string]int {
	const lag = 5 * time.Second
	known, spare := map[string]bool{}, map[string]int{}
	for i, e := range h.events {
		pod, ok := e.Object.(checker.Pod)
		if !ok || known[pod.UID] {
			continue
		}
		known[pod.UID] = true
		if slices.ContainsFunc(outages, func(o outage) bool {
			return (o.component == controlplane.APIServer || o.component == controlplane.Etcd) &&
				h.seen[i].After(o.begin.Add(-lag)) && h.seen[i].Before(o.end.Add(lag))
		}) {
			spare[pod.Job]++
		}
	}
	return spare
}

// violationMark begins a line of the written history after the state that broke a promise.
const violationMark = "VIOLATION"

// judge replays the history and writes it down. submitted are the jobs by namespace/name, deleted those that their user
// deleted.
func (h *history) judge(submitted, deleted map[string]bool, outages []outage, log io.Writer) judged {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := judged{events: len(h.events), missing: h.missing, attempts: map[int64]int{}}
	c := checker.New(blockingQueues)
	c.Unsaid = func(_, by checker.Unit) bool { return disturbed(outages, by.AdmittedAt) }
	spare := h.spare(outages)
	c.Spare = func(job checker.Job) int { return spare[job.UID] }
	admitted := map[string]bool{}
	for i, e := range h.events {
		known := len(c.Violations())
		c.Apply(e)
		if _, quota := e.Object.(checker.Quota); !quota {
			fmt.Fprintf(log, "%s %d %s\n", h.seen[i].Format("15:04:05.000"), e.Version, describe(e))
		}
		for _, v := range c.Violations()[known:] {
			fmt.Fprintf(log, "%s %s\n", violationMark, v)
		}
		unit, ok := e.Object.(checker.Unit)
		if !ok || !unit.Admitted || admitted[unit.UID] {
			continue
		}
		admitted[unit.UID] = true
		if _, blocking := blockingQueues[unit.Queue]; !blocking {
			continue
		}
		if disturbed(outages, unit.AdmittedAt) {
			j.unordered++
		} else {
			j.ordered++
		}
	}
	wanted := map[string]string{}
	var found []checker.Violation
	for name := range submitted {
		uids := h.names[name]
		if len(uids) != 1 {
			found = append(found, checker.Violation{Rule: checker.Lost, Subject: name, Message: fmt.Sprintf("was created once and existed %d times", len(uids))})
			continue
		}
		if deleted[name] {
			j.deleted++
			continue
		}
		wanted[uids[0]] = name
	}
	j.done, j.violations = c.Finish(wanted)
	j.violations = append(append(j.violations, h.lives.violations...), found...)
	for _, p := range h.lives.units {
		j.attempts[p.attempts]++
	}
	return j
}
