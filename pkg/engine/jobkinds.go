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

package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// Why jobs of a kind cannot be listed; labels of a metric.
const (
	kindNotInstalled = "NotInstalled"
	kindForbidden    = "Forbidden"
	kindNotListed    = "NotListed"
)

const (
	// kindPoll is how often the engine looks whether kinds that could not be listed can be listed by now.
	kindPoll = time.Second
	// listPatience is how long the queue waits for the list of a kind that fails, or hangs, for another cause than
	// these: a conversion webhook that was removed answers never. An error alone cannot end the wait, since client-go
	// retries some of them without telling anybody.
	listPatience = 10 * time.Second
)

// Following are the kinds of jobs that are followed for one configuration, and of what stands between them and their
// pods, by name.
type Following struct {
	predicate *managedjobs.Predicate
	kinds     map[string]*jobKind
	// overdue says that kinds which are not listed by now are not waited for.
	overdue func() bool
	// over: another configuration holds, and what these informers still say is old.
	over atomic.Bool
}

// Settled says that all jobs that existed are known, or that they cannot be.
func (f *Following) Settled() bool {
	for _, kind := range f.kinds {
		if !kind.settled() && !f.overdue() {
			return false
		}
	}
	return true
}

// unlisted says that the jobs of this kind are not known: that one of them is not seen says nothing about it.
func (f *Following) unlisted(name string) bool {
	kind := f.kinds[name]
	return kind != nil && !kind.synced()
}

// has says whether a job of a kind that is followed is there; true where that is not known.
func (f *Following) has(c unit.Consumer) bool {
	kind := f.kinds[c.Kind]
	if kind == nil {
		return false
	}
	object, _, err := kind.informer.GetStore().GetByKey(c.Namespace + "/" + c.Name)
	job, ok := object.(*JobMeta)
	return err != nil || !kind.synced() || ok && string(job.UID()) == c.UID && !job.leaving
}

// jobKind follows the jobs of one kind. A kind that is not installed, or that may not be listed, holds nothing up, and
// a kind whose list fails for another cause holds up for listPatience: its informer goes on trying, and its jobs are
// followed from when it succeeds.
type jobKind struct {
	name     string
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced

	mu sync.Mutex
	// unavailable is why it cannot be listed, empty if it can or nothing is known; since then it was at version, and
	// listed says whether it had been before.
	unavailable string
	version     string
	listed      bool
	// last is the last error of its informer that has no name here.
	last error
}

// settled says that all jobs that existed are known, or that they cannot be.
func (k *jobKind) settled() bool {
	if k.synced() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unavailable != ""
}

// why the kind cannot be listed; empty if it can or nothing is known.
func (k *jobKind) why() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unavailable
}

// note keeps an error of the informer.
func (k *jobKind) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = err
}

func (k *jobKind) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// failed notes why the kind cannot be listed, and returns what it was before.
func (k *jobKind) failed(why string) (before string) {
	version, listed := k.informer.LastSyncResourceVersion(), k.synced()
	k.mu.Lock()
	defer k.mu.Unlock()
	before, k.unavailable = k.unavailable, why
	if before == "" {
		k.version, k.listed = version, listed
	}
	return before
}

// returned says, once, that the kind could be listed again, and why it could not before.
func (k *jobKind) returned() (before string, ok bool) {
	version, listed := k.informer.LastSyncResourceVersion(), k.synced()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unavailable == "" || !listed || k.listed && version == k.version {
		return "", false
	}
	before, k.unavailable = k.unavailable, ""
	return before, true
}

// followJobs registers with the informers of all kinds of jobs, whether they are installed or not.
func (s *sources) followJobs(in metadatainformer.SharedInformerFactory, p *managedjobs.Predicate) (*Following, error) {
	f := &Following{predicate: p, kinds: map[string]*jobKind{}, overdue: s.patience()}
	if in == nil || p == nil {
		return f, nil
	}
	for _, kind := range p.Followed() {
		name := kind.String()
		informer := in.ForResource(kind.GVR).Informer()
		followed := &jobKind{name: name, informer: informer}
		if err := informer.SetTransform(TrimJobs(p.LabelKeys())); err != nil {
			return nil, fmt.Errorf("watching %s: %w", name, err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(s.onKindError(followed)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", name, err)
		}
		registration, err := informer.AddEventHandler(s.jobHandlers(f, kind.GVK))
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", name, err)
		}
		followed.synced = registration.HasSynced
		f.kinds[name] = followed
	}
	return f, nil
}

func (s *sources) jobHandlers(f *Following, gvk schema.GroupVersionKind) cache.ResourceEventHandler {
	kind := jobkind.KindString(gvk)
	put := func(namespace, name string, ev jobEvent) {
		if !f.over.Load() {
			s.putJob(kind, namespace, name, ev)
		}
	}
	return handlers(
		func(m *JobMeta) {
			if m.leaving {
				// It starts nothing any more, and a finalizer may keep it forever: no quota is held for it.
				put(m.Namespace(), m.Name(), jobEvent{})
				return
			}
			maker := managedjobs.MakerOf(f.predicate, gvk.GroupKind(), m.Owner())
			put(m.Namespace(), m.Name(), jobEvent{m.UID(), maker, m.isMarked()})
		},
		func(m *JobMeta) { put(m.Namespace(), m.Name(), jobEvent{}) },
		func(key string) {
			if namespace, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
				put(namespace, name, jobEvent{})
			}
		},
	)
}

// onKindError tells once that a kind cannot be listed, and leaves other errors to client-go.
func (s *sources) onKindError(kind *jobKind) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *cache.Reflector, err error) {
		why := ""
		switch {
		case apierrors.IsNotFound(err):
			why = kindNotInstalled
		case apierrors.IsForbidden(err):
			why = kindForbidden
		default:
			kind.note(err)
			cache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		s.kindFailed(ctx, kind, why, err)
	}
}

// kindFailed tells once why a kind cannot be listed.
func (s *sources) kindFailed(ctx context.Context, kind *jobKind, why string, err error) {
	before := kind.failed(why)
	if before == why {
		return
	}
	if before != "" {
		s.opts.Metrics.Set(metrics.JobKindUnavailable, 0, kind.name, before)
	}
	s.opts.Metrics.Set(metrics.JobKindUnavailable, 1, kind.name, why)
	log := klog.FromContext(ctx)
	switch why {
	case kindForbidden:
		log.Error(err, "Jobs of a managed kind may not be listed; they are followed once they may", "kind", kind.name)
	case kindNotListed:
		log.Error(err, "Jobs of a managed kind could not be listed so far; the queue goes on without them, and they are "+
			"followed once they are listed", "kind", kind.name, "after", listPatience)
	default:
		log.Info("A managed kind of jobs is not installed; it is followed once it is", "kind", kind.name)
	}
}

// patience returns what says that the time is over for which the queue waits for kinds.
func (s *sources) patience() (overdue func() bool) {
	until := s.opts.Clock.Now().Add(listPatience)
	return func() bool { return !s.opts.Clock.Now().Before(until) }
}

// awaitKinds tells which kinds could not be listed in time, and when kinds can be listed that could not be. Then it
// calls listed in the engine's goroutine, behind the jobs that were listed.
func (s *sources) awaitKinds(ctx context.Context, listed func()) {
	for s.sleep(ctx, kindPoll) {
		s.checks.giveUp(ctx)
		f, more := s.kinds.Load(), false
		for _, name := range sortedKeys(f.kinds) {
			if kind := f.kinds[name]; f.overdue() && !kind.settled() {
				s.kindFailed(ctx, kind, kindNotListed, kind.lastError())
			}
			if before, ok := f.kinds[name].returned(); ok {
				s.opts.Metrics.Set(metrics.JobKindUnavailable, 0, name, before)
				klog.FromContext(ctx).Info("A managed kind of jobs is followed now", "kind", name)
				more = true
			}
		}
		if more {
			s.box.call(listed)
		}
	}
}
