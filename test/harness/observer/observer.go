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

// Package observer reads all changes of quotas, queues, units, pods and jobs from the store itself.
//
// A watch through the API server has gaps. A restarted API server refuses to continue it, and the client lists again.
// Watches of several kinds also have no common order. The store keeps its revisions over kill -9, counts all kinds with
// one number, and continues its watch at the next revision. So an observer sees every state of every object in one
// order, and notices a missing revision.
package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// Change is one change of one object.
type Change struct {
	// Object is the state after the change, or before it when Deleted. It is a Pod, Job, QueueUnit or Queue, or, as an
	// Unstructured, an ElasticQuota or an object of another resource.
	Object   any
	Revision int64
	Deleted  bool
}

// Event returns the change in the form of the checker. ok is false, and the event has no object, for a kind that the
// checker ignores.
func (c Change) Event() (e checker.Event, ok bool, err error) {
	e = checker.Event{Version: uint64(c.Revision), Deleted: c.Deleted}
	switch o := c.Object.(type) {
	case *corev1.Pod:
		e.Object = checker.PodOf(o)
	case *batchv1.Job:
		e.Object = checker.JobOf(o)
	case *v1alpha1.QueueUnit:
		e.Object = checker.UnitOf(o)
	case *unstructured.Unstructured:
		if o.GetKind() != "ElasticQuota" {
			return e, false, nil
		}
		e.Object, err = checker.QuotaOf(o)
	default:
		return e, false, nil
	}
	return e, err == nil, err
}

// Observer follows the store of a control plane from its first revision on. Safe for concurrent use.
type Observer struct {
	client *clientv3.Client
	take   func(Change) error
	kinds  map[string]decoder

	mu       sync.Mutex
	revision int64 // the last one taken
	missing  int64
	last     time.Time
	err      error
}

// New returns an observer of the etcd at the endpoint, also of other resources of CustomResourceDefinitions. It calls
// take with each change, one after the other in the order of the store, while Run runs.
func New(endpoint string, take func(Change) error, others ...schema.GroupResource) (*Observer, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		// An etcd that is paused for long is not worth a new connection, but a dead one is.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 60 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	o := &Observer{client: client, take: take, kinds: maps.Clone(kinds)}
	for _, other := range others {
		o.kinds["/registry/"+other.Group+"/"+other.Resource+"/"] = custom[unstructured.Unstructured]
	}
	return o, nil
}

// Run follows the store until ctx ends.
func (o *Observer) Run(ctx context.Context) {
	led := clientv3.WithRequireLeader(ctx)
	for ctx.Err() == nil {
		o.mu.Lock()
		next := o.revision + 1
		o.mu.Unlock()
		everything := []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithPrevKV(), clientv3.WithRev(next)}
		for response := range o.client.Watch(led, "\x00", everything...) {
			if err := response.Err(); err != nil {
				o.broken(ctx, err)
				break
			}
			o.apply(response.Events)
		}
		pause(ctx, time.Second)
	}
}

// Close ends the connection to the store.
func (o *Observer) Close() error { return o.client.Close() }

// broken notes what cannot be mended. Without a leader for a moment the watch is closed and opened again; what was
// compacted is lost.
func (o *Observer) broken(ctx context.Context, err error) {
	if ctx.Err() == nil && strings.Contains(err.Error(), "compacted") {
		o.fail(fmt.Errorf("the store forgot a part of its history: %w", err))
	}
}

func (o *Observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

func (o *Observer) apply(events []*clientv3.Event) {
	for _, e := range events {
		if err := o.deliver(e); err != nil {
			o.fail(fmt.Errorf("revision %d of %s: %w", e.Kv.ModRevision, e.Kv.Key, err))
		}
		o.count(e.Kv.ModRevision)
	}
}

// count comes after what happened in the revision was taken, so that CaughtUp waits for that, too.
func (o *Observer) count(revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Now()
	// One transaction may hold several events. The store begins with revision 1, which is empty.
	if o.revision > 0 && revision > o.revision+1 {
		o.missing += revision - o.revision - 1
	}
	o.revision = max(o.revision, revision)
}

// decoder makes an object of what the store holds.
type decoder func([]byte) (any, error)

// kinds are always observed, each under its prefix.
var kinds = map[string]decoder{
	"/registry/pods/": protobuf[corev1.Pod],
	"/registry/jobs/": protobuf[batchv1.Job],
	"/registry/scheduling.x-k8s.io/queueunits/":       custom[v1alpha1.QueueUnit],
	"/registry/scheduling.x-k8s.io/queues/":           custom[v1alpha1.Queue],
	"/registry/scheduling.sigs.k8s.io/elasticquotas/": custom[unstructured.Unstructured],
}

// protobuf decodes a built-in object.
func protobuf[T any, P interface {
	*T
	runtime.Object
}](value []byte) (any, error) {
	object := P(new(T))
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, object)
	return object, err
}

// custom decodes an object of a CustomResourceDefinition.
func custom[T any](value []byte) (any, error) {
	object := new(T)
	err := json.Unmarshal(value, object)
	return object, err
}

func (o *Observer) deliver(e *clientv3.Event) error {
	for prefix, decode := range o.kinds {
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
		object, err := decode(value)
		if err != nil {
			return err
		}
		return o.take(Change{Object: object, Revision: e.Kv.ModRevision, Deleted: deleted})
	}
	return nil
}

// Missing is how many revisions were left out; none unless the store or its watch is at fault.
func (o *Observer) Missing() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.missing
}

// Last is when the store was last seen at work.
func (o *Observer) Last() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// CaughtUp waits until all that the store has now was taken. It fails if something of it could not be.
func (o *Observer) CaughtUp(ctx context.Context) error {
	response, err := o.client.Get(ctx, "\x00")
	if err != nil {
		return fmt.Errorf("ask the store for its revision: %w", err)
	}
	for {
		o.mu.Lock()
		revision, missing, broken := o.revision, o.missing, o.err
		o.mu.Unlock()
		switch {
		case broken != nil:
			return broken
		case revision < response.Header.Revision:
		case missing > 0:
			return fmt.Errorf("%d revisions of the store were left out", missing)
		default:
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the observer is at revision %d, the store at %d: %w",
				revision, response.Header.Revision, context.Cause(ctx))
		}
	}
}

// pause is false if ctx ended before the time was over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
