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

package intake

import (
	"context"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned"
	typed "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned/typed/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
)

// Client is a client of ElasticQuota whose lists and watches of all namespaces have no quota that is withheld. One
// informer may use it. Everything else is as it was.
type Client struct {
	versioned.Interface

	mu     sync.Mutex
	sorter *sorter
	// told is called with all quotas that are withheld, when they have changed.
	told func(map[types.NamespacedName]ancestry.Reason)
	last map[types.NamespacedName]ancestry.Reason
}

// NewClient wraps a client. told gets all quotas that are withheld, whenever they change; it must not block.
func NewClient(client versioned.Interface, told func(map[types.NamespacedName]ancestry.Reason)) *Client {
	return &Client{Interface: client, sorter: newSorter(), told: told}
}

// SchedulingV1alpha1 implements versioned.Interface.
func (c *Client) SchedulingV1alpha1() typed.SchedulingV1alpha1Interface {
	return group{c.Interface.SchedulingV1alpha1(), c}
}

// tell is called with mu held.
func (c *Client) tell() {
	if !maps.Equal(c.last, c.sorter.withheld) {
		c.last = c.sorter.withheld
		c.told(maps.Clone(c.last))
	}
}

type group struct {
	typed.SchedulingV1alpha1Interface
	client *Client
}

// ElasticQuotas implements typed.ElasticQuotasGetter.
func (g group) ElasticQuotas(namespace string) typed.ElasticQuotaInterface {
	theirs := g.SchedulingV1alpha1Interface.ElasticQuotas(namespace)
	if namespace != metav1.NamespaceAll {
		return theirs
	}
	return quotas{theirs, g.client}
}

type quotas struct {
	typed.ElasticQuotaInterface
	client *Client
}

// List returns everything at once: a page does not say which quotas have ancestors on another one.
func (q quotas) List(ctx context.Context, opts metav1.ListOptions) (*v1alpha1.ElasticQuotaList, error) {
	opts.Limit, opts.Continue = 0, ""
	list, err := q.ElasticQuotaInterface.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	q.client.mu.Lock()
	defer q.client.mu.Unlock()
	list.Items = q.client.sorter.replace(list.Items)
	q.client.tell()
	return list, nil
}

// Watch begins with what the list before it left out. It refuses to stream a list, so that the reflector lists: a
// streamed list ends up in an order of its own.
func (q quotas) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if opts.SendInitialEvents != nil {
		return nil, apierrors.NewMethodNotSupported(v1alpha1.Resource("elasticquotas"), "streaming list")
	}
	w, err := q.ElasticQuotaInterface.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	q.client.mu.Lock()
	defer q.client.mu.Unlock()
	return follow(w, q.client.sorter.missing(), q.client.sorted), nil
}

// sorted is what to show for an event of the API server.
func (c *Client) sorted(e watch.Event) []watch.Event {
	quota, ok := e.Object.(*v1alpha1.ElasticQuota)
	if !ok {
		return []watch.Event{e}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.tell()
	switch e.Type {
	case watch.Added, watch.Modified:
		return c.sorter.put(quota)
	case watch.Deleted:
		return c.sorter.remove(quota)
	default:
		return []watch.Event{e}
	}
}

// watcher shows other events than those that it gets.
type watcher struct {
	from watch.Interface
	out  chan watch.Event
	stop chan struct{}
	once sync.Once
}

func follow(from watch.Interface, first []watch.Event, sorted func(watch.Event) []watch.Event) *watcher {
	w := &watcher{from: from, out: make(chan watch.Event), stop: make(chan struct{})}
	go func() {
		defer close(w.out)
		defer from.Stop()
		if !w.show(first) {
			return
		}
		for e := range from.ResultChan() {
			if !w.show(sorted(e)) {
				return
			}
		}
	}()
	return w
}

func (w *watcher) show(events []watch.Event) bool {
	for _, e := range events {
		select {
		case w.out <- e:
		case <-w.stop:
			return false
		}
	}
	return true
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.once.Do(func() {
		close(w.stop)
		w.from.Stop()
	})
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.out }
