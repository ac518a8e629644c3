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

package controller

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/estimate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/parts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/sharedsource"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

// KindSet runs a reconciler for each managed kind that the API server serves. Kinds come and go while it runs: with
// their definitions, and with the configuration.
type KindSet struct {
	mgr     manager.Manager
	options Options
	shared  Shared
	changed chan struct{}

	mu        sync.Mutex
	predicate *managedjobs.Predicate
}

// runningKind is a kind whose jobs are reconciled.
type runningKind struct {
	predicate *managedjobs.Predicate
	stop      context.CancelFunc
	done      sync.WaitGroup
	// failed: it ended by itself, and has to be started again.
	failed atomic.Bool
}

// Use has the kinds managed that this predicate names, by what it says.
func (s *KindSet) Use(p *managedjobs.Predicate) {
	s.mu.Lock()
	s.predicate = p
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // a look is due anyway
	}
}

func (s *KindSet) current() *managedjobs.Predicate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.predicate
}

// NeedLeaderElection has caches filled before this replica leads. Reconcilers wait until it does.
func (s *KindSet) NeedLeaderElection() bool { return false }

// Start looks at what there is until the context ends.
func (s *KindSet) Start(ctx context.Context) error {
	running := map[string]*runningKind{}
	defer func() {
		for _, k := range running {
			k.end()
		}
	}()
	told := map[string]served.Availability{}
	for {
		next := s.options.Served.Next() // before the look: what changes in between is not missed
		s.look(ctx, running, told)
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-next:
		}
	}
}

// look starts kinds that can be managed and are not, and ends those that cannot be or should not be any more. One whose
// definition is gone ends at once; while the API server does not answer all stays as it is.
func (s *KindSet) look(ctx context.Context, running map[string]*runningKind, told map[string]served.Availability) {
	p := s.current()
	logger := klog.FromContext(ctx)
	endOthers(p, running, told)
	kinds := p.Kinds()
	for i, answer := range s.options.Served.Kinds(kinds) {
		kind, available := kinds[i], answer.Availability
		name := kind.String()
		if err := answer.Err; err != nil {
			logger.V(4).Info("The API server does not say whether a kind is there", "kind", name, "reason", err.Error())
			continue
		}
		if told[name] != available && (available != served.Available || told[name] != "") {
			logger.Info("A managed kind of jobs changed", "kind", name, "is", string(available), "reason", answer.Reason)
		}
		told[name] = available
		setKindAvailability(name, available)
		k := running[name]
		if available != served.Available && k != nil {
			k.end()
			delete(running, name)
		}
		if available != served.Available || k != nil {
			continue
		}
		k, err := s.start(ctx, p, kind)
		if err != nil {
			logger.Error(err, "A managed kind of jobs cannot be followed; it is tried again", "kind", name)
			continue
		}
		running[name] = k
	}
}

// endOthers ends what runs for another configuration, or has failed, and forgets kinds that are not managed any more.
func endOthers(p *managedjobs.Predicate, running map[string]*runningKind, told map[string]served.Availability) {
	for name, k := range running {
		if k.predicate != p || k.failed.Load() {
			k.end()
			delete(running, name)
		}
	}
	for name := range told {
		if !p.ManagesKindNamed(name) {
			setKindAvailability(name, served.Available)
			delete(told, name)
		}
	}
}

func (k *runningKind) end() {
	k.stop()
	k.done.Wait()
}

// start follows the jobs of a kind, and reconciles them while this replica leads.
func (s *KindSet) start(ctx context.Context, p *managedjobs.Predicate, kind jobkind.Kind) (*runningKind, error) {
	own, r, err := s.reconciler(ctx, p, kind)
	if err != nil {
		return nil, err
	}
	again := true
	c, err := controller.NewUnmanaged(controllerName(&kind), controller.Options{
		Reconciler: outage.Retried(r), MaxConcurrentReconciles: s.options.Concurrency, SkipNameValidation: &again,
		Logger: s.mgr.GetLogger(),
	})
	if err != nil {
		return nil, err
	}
	if err := s.watch(c, own, r); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	k := &runningKind{predicate: p, stop: stop}
	logger := klog.FromContext(ctx)
	k.done.Go(func() {
		if err := own.Start(ctx); ctx.Err() == nil {
			logger.Error(err, "The cache of a kind of jobs ended; it is started again", "kind", kind.String())
			k.failed.Store(true)
		}
	})
	k.done.Go(func() {
		if !own.WaitForCacheSync(ctx) || !s.mgr.GetCache().WaitForCacheSync(ctx) || !s.elected(ctx) {
			return
		}
		if err := c.Start(ctx); ctx.Err() == nil {
			logger.Error(err, "The reconciler of a kind of jobs ended; it is started again", "kind", kind.String())
			k.failed.Store(true)
		}
	})
	return k, nil
}

// reconciler of a kind, and the cache that it reads jobs from.
func (s *KindSet) reconciler(
	ctx context.Context, p *managedjobs.Predicate, kind jobkind.Kind,
) (cache.Cache, *JobReconciler, error) {
	options := jobCacheOptions(s.mgr, &kind, s.options.Plan.WholeTemplates)
	if kind.OfPods() {
		options = podCacheOptions(s.mgr, p)
	}
	own, err := cache.New(s.mgr.GetConfig(), options)
	if err != nil {
		return nil, nil, err
	}
	r := NewJobReconciler(kind, s.options, s.mgr.GetClient(), s.mgr.GetAPIReader(), s.mgr.GetEventRecorder(recorderName))
	r.Options.Predicate, r.Jobs, r.Shared = p, own, s.shared
	if leavesParts(r) {
		return own, r, own.IndexField(ctx, newObject(kind.GVK), parts.Index, parts.OwnerOf)
	}
	if !kind.OfPods() {
		return own, r, nil
	}
	r.Jobs = podGroups{Reader: own, predicate: p, indexed: true}
	r.LiveJobs = podGroups{Reader: r.Live, predicate: p}
	r.Recorder = firstPodRecorder{r.Recorder}
	return own, r, own.IndexField(ctx, &corev1.Pod{}, podGroupIndex, func(pod client.Object) []string {
		if !p.QueuesPod(pod) {
			return nil
		}
		return []string{podgroup.NameOf(pod)}
	})
}

// elected waits until this replica leads; false if the context ended before.
func (s *KindSet) elected(ctx context.Context) bool {
	select {
	case <-s.mgr.Elected():
		return true
	case <-ctx.Done():
		return false
	}
}

// controllerName is that of the reconciler of a kind, in metrics and logs.
func controllerName(kind *jobkind.Kind) string {
	return strings.ToLower(strings.TrimSuffix(strings.ReplaceAll(kind.String(), ".", "-"), "-"))
}

// watch has jobs, their children, units, namespaces and all that estimates depend on wake the reconciler.
func (s *KindSet) watch(c controller.Controller, own cache.Cache, r *JobReconciler) error {
	if err := watchJobs(c, own, r); err != nil {
		return err
	}
	wake := waker{kind: &r.Kind, jobs: r.Jobs, units: s.mgr.GetClient()}
	if child := r.Kind.Child; child != nil {
		var object client.Object = newObject(child.GVK)
		if err := c.Watch(source.Kind(own, object, handler.EnqueueRequestsFromMapFunc(wake.jobOfChild))); err != nil {
			return err
		}
	}
	shared := s.mgr.GetCache()
	sources := estimate.Sources(shared, s.shared.Profiles, wake.waitingJobs)
	others := []*sharedsource.Source{
		{Object: &v1alpha1.QueueUnit{}, Handle: handler.EnqueueRequestsFromMapFunc(wake.jobsOfUnit)},
		{
			Object: elasticquota.New(), Handle: handler.EnqueueRequestsFromMapFunc(wake.jobsOfQuota),
			Updates: elasticquota.Changed,
		},
		{Object: newNamespace(), Handle: handler.EnqueueRequestsFromMapFunc(wake.jobsOfNamespace), Updates: namespaceChanged},
	}
	if leavesParts(r) {
		others = append(others, &sharedsource.Source{
			Object: &v1alpha1.QueueUnit{}, Handle: parts.Waker{Kind: r.Kind.GVK, Jobs: own}.Handler(),
		})
	}
	for _, other := range others {
		other.Informers = shared
		sources = append(sources, other)
	}
	for _, from := range sources {
		if err := c.Watch(from); err != nil {
			return err
		}
	}
	return nil
}

// leavesParts says whether a managed kind makes jobs of this one and does not resume them.
func leavesParts(r *JobReconciler) bool {
	return len(managedjobs.LeftBy(r.Options.Predicate, r.Kind.GVK.GroupKind())) > 0
}

func watchJobs(c controller.Controller, own cache.Cache, r *JobReconciler) error {
	if groups, ok := r.Jobs.(podGroups); ok {
		var pod client.Object = &corev1.Pod{}
		return c.Watch(source.Kind(own, pod, handler.EnqueueRequestsFromMapFunc(groups.groupOfPod)))
	}
	var job client.Object = newObject(r.Kind.GVK)
	return c.Watch(source.Kind(own, job, handler.EventHandler(&handler.EnqueueRequestForObject{})))
}

// jobCacheOptions keep jobs in memory in compact form, and of their children only the fields that the reconciler reads.
func jobCacheOptions(mgr manager.Manager, kind *jobkind.Kind, wholeTemplates bool) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		newObject(kind.GVK): {Transform: compactJobs(kind, wholeTemplates)},
	}
	if kind.Child != nil {
		byObject[newObject(kind.Child.GVK)] = cache.ByObject{Transform: func(object any) (any, error) {
			if child, ok := object.(*unstructured.Unstructured); ok {
				return compact.Child(kind, child), nil
			}
			return object, nil
		}}
	}
	return cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), ByObject: byObject,
	}
}
