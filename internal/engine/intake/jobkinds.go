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
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Why jobs of a kind cannot be listed; labels of a metric.
const (
	KindNotInstalled = "NotInstalled"
	KindForbidden    = "Forbidden"
	kindNotListed    = "NotListed"
)

const (
	// kindPoll is how often the engine looks whether kinds that could not be listed can be listed by now.
	kindPoll = time.Second
	// listPatience is how long the queue waits for a list that fails, or hangs, for another cause. For example, a
	// conversion webhook that was removed never answers. An error alone cannot end the wait, because client-go retries
	// some errors silently.
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

// Predicate of the configuration.
func (f *Following) Predicate() *managedjobs.Predicate { return f.predicate }

// Take has another configuration hold. Informers of the one before are not listened to any more.
func (s *Sources) Take(f *Following) {
	before := s.kinds.Swap(f)
	before.over.Store(true)
	for _, name := range slices.Sorted(maps.Keys(before.kinds)) {
		if why := before.kinds[name].why(); why != "" && (f.kinds[name] == nil || f.kinds[name].why() != why) {
			s.Metrics.Set(metrics.JobKindUnavailable, 0, name, why)
		}
	}
}

// Unlisted says that the jobs of this kind are not known: that one of them is not seen says nothing about it.
func (s *Sources) Unlisted(kind string) bool { return s.kinds.Load().unlisted(kind) }

// Settled says that all jobs that existed are known, or that they cannot be.
func (f *Following) Settled() bool {
	for _, kind := range f.kinds {
		if !kind.settled() && !f.overdue() {
			return false
		}
	}
	return true
}

func (f *Following) unlisted(name string) bool {
	kind := f.kinds[name]
	return kind != nil && !kind.synced()
}

// Has says whether a job of a kind that is followed is there; true where that is not known.
func (f *Following) Has(c unit.Consumer) bool {
	kind := f.kinds[c.Kind]
	if kind == nil {
		return false
	}
	object, _, err := kind.informer.GetStore().GetByKey(c.Namespace + "/" + c.Name)
	job, ok := object.(*JobMeta)
	return err != nil || !kind.synced() || ok && string(job.UID()) == c.UID && !job.leaving
}

// jobKind follows the jobs of one kind. A kind that is absent, or that may not be listed, delays nothing. A kind whose
// list fails for another cause delays the start by listPatience: its informer keeps trying, and its jobs are followed
// after a success.
type jobKind struct {
	name     string
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced

	mu sync.Mutex
	// unavailable is why the kind cannot be listed, empty if it can or nothing is known. version is the version of that
	// time, and listed says whether the kind was listed before.
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

// FollowJobs registers with the informers of all kinds of jobs, whether they are installed or not.
func (s *Sources) FollowJobs(in metadatainformer.SharedInformerFactory, p *managedjobs.Predicate) (*Following, error) {
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
		registration, err := informer.AddEventHandler(s.JobHandlers(f, kind.GVK))
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", name, err)
		}
		followed.synced = registration.HasSynced
		f.kinds[name] = followed
	}
	return f, nil
}

func (s *Sources) JobHandlers(f *Following, gvk schema.GroupVersionKind) cache.ResourceEventHandler {
	kind := jobkind.KindString(gvk)
	put := func(namespace, name string, ev mail.JobEvent) {
		if !f.over.Load() {
			s.box.Job(kind, namespace, name, ev)
		}
	}
	return handlers(
		func(m *JobMeta) {
			if m.leaving {
				// The job starts nothing any more, and a finalizer may keep it forever: no quota is held for it.
				put(m.Namespace(), m.Name(), mail.JobEvent{})
				return
			}
			maker := managedjobs.MakerOf(f.predicate, gvk.GroupKind(), m.Owner())
			put(m.Namespace(), m.Name(), mail.JobEvent{UID: m.UID(), Owner: maker, Marked: m.isMarked()})
		},
		func(m *JobMeta) { put(m.Namespace(), m.Name(), mail.JobEvent{}) },
		func(key string) {
			if namespace, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
				put(namespace, name, mail.JobEvent{})
			}
		},
	)
}

// onKindError tells once that a kind cannot be listed, and leaves other errors to client-go.
func (s *Sources) onKindError(kind *jobKind) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *cache.Reflector, err error) {
		why := ""
		switch {
		case apierrors.IsNotFound(err):
			why = KindNotInstalled
		case apierrors.IsForbidden(err):
			why = KindForbidden
		default:
			kind.note(err)
			cache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		s.kindFailed(ctx, kind, why, err)
	}
}

// kindFailed tells once why a kind cannot be listed.
func (s *Sources) kindFailed(ctx context.Context, kind *jobKind, why string, err error) {
	before := kind.failed(why)
	if before == why {
		return
	}
	if before != "" {
		s.Metrics.Set(metrics.JobKindUnavailable, 0, kind.name, before)
	}
	s.Metrics.Set(metrics.JobKindUnavailable, 1, kind.name, why)
	log := klog.FromContext(ctx)
	switch why {
	case KindForbidden:
		log.Error(err, "Jobs of a managed kind may not be listed; they are followed once they may", "kind", kind.name)
	case kindNotListed:
		log.Error(err, "Jobs of a managed kind could not be listed so far; the queue goes on without them, and they are "+
			"followed once they are listed", "kind", kind.name, "after", listPatience)
	default:
		log.Info("A managed kind of jobs is not installed; it is followed once it is", "kind", kind.name)
	}
}

// patience returns what says that the time is over for which the queue waits for kinds.
func (s *Sources) patience() (overdue func() bool) {
	until := s.Clock.Now().Add(listPatience)
	return func() bool { return !s.Clock.Now().Before(until) }
}

// awaitKinds tells which kinds could not be listed in time, and when kinds can be listed that could not be. Then it
// calls listed in the engine's goroutine, behind the jobs that were listed.
func (s *Sources) awaitKinds(ctx context.Context, listed func()) {
	for s.Sleep(ctx, kindPoll) {
		s.checks.giveUp(ctx)
		f, more := s.kinds.Load(), false
		for _, name := range slices.Sorted(maps.Keys(f.kinds)) {
			if kind := f.kinds[name]; f.overdue() && !kind.settled() {
				s.kindFailed(ctx, kind, kindNotListed, kind.lastError())
			}
			if before, ok := f.kinds[name].returned(); ok {
				s.Metrics.Set(metrics.JobKindUnavailable, 0, name, before)
				klog.FromContext(ctx).Info("A managed kind of jobs is followed now", "kind", name)
				more = true
			}
		}
		if more {
			s.box.Call(listed)
		}
	}
}
