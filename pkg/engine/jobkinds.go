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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// Why jobs of a kind cannot be listed; labels of a metric.
const (
	kindNotInstalled = "NotInstalled"
	kindForbidden    = "Forbidden"
)

// kindPoll is how often is looked whether a kind that could not be listed was.
const kindPoll = time.Second

// jobKinds are the kinds of jobs that are followed, by the name that jobs.Kind gives them.
type jobKinds map[string]*jobKind

// unlisted says that the jobs of this kind are not known: that one of them is not seen says nothing about it.
func (k jobKinds) unlisted(name string) bool {
	kind := k[name]
	return kind != nil && !kind.synced()
}

// jobKind follows the jobs of one kind. A kind that is not installed, or that may not be listed, holds nothing up: its
// informer goes on trying, and its jobs are followed from when it succeeds.
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
func (s *sources) followJobs() error {
	if s.opts.Jobs == nil || s.opts.Predicate == nil {
		return nil
	}
	s.kinds = jobKinds{}
	for _, kind := range s.opts.Predicate.Kinds() {
		name := kind.String()
		informer := s.opts.Jobs.ForResource(kind.GVR).Informer()
		followed := &jobKind{name: name, informer: informer}
		if err := informer.SetTransform(TrimJobs(s.opts.Predicate.LabelKeys())); err != nil {
			return fmt.Errorf("watching %s: %w", name, err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(s.onKindError(followed)); err != nil {
			return fmt.Errorf("watching %s: %w", name, err)
		}
		registration, err := informer.AddEventHandler(handlers(
			func(m *JobMeta) {
				if m.leaving {
					// It starts nothing any more, and a finalizer may keep it for ever: no quota is held for it.
					s.putJob(name, m.Namespace(), m.Name(), jobEvent{})
					return
				}
				s.putJob(name, m.Namespace(), m.Name(), jobEvent{m.UID(), m.Owner()})
			},
			func(m *JobMeta) { s.putJob(name, m.Namespace(), m.Name(), jobEvent{}) },
			func(key string) {
				if namespace, job, err := cache.SplitMetaNamespaceKey(key); err == nil {
					s.putJob(name, namespace, job, jobEvent{})
				}
			},
		))
		if err != nil {
			return fmt.Errorf("watching %s: %w", name, err)
		}
		followed.synced = registration.HasSynced
		s.kinds[name] = followed
		s.synced = append(s.synced, followed.settled)
	}
	return nil
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
			cache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		before := kind.failed(why)
		if before == why {
			return
		}
		if before != "" {
			s.opts.Metrics.Set(metrics.JobKindUnavailable, 0, kind.name, before)
		}
		s.opts.Metrics.Set(metrics.JobKindUnavailable, 1, kind.name, why)
		log := klog.FromContext(ctx)
		if why == kindForbidden {
			log.Error(err, "Jobs of a managed kind may not be listed; they are followed once they may", "kind", kind.name)
			return
		}
		log.Info("A managed kind of jobs is not installed; it is followed once it is", "kind", kind.name)
	}
}

// awaitKinds tells when kinds can be listed that could not be.
func (s *sources) awaitKinds(ctx context.Context) {
	for len(s.kinds) > 0 && s.sleep(ctx, kindPoll) {
		for _, name := range sortedKeys(s.kinds) {
			if before, ok := s.kinds[name].returned(); ok {
				s.opts.Metrics.Set(metrics.JobKindUnavailable, 0, name, before)
				klog.FromContext(ctx).Info("A managed kind of jobs is followed now", "kind", name)
			}
		}
	}
}
