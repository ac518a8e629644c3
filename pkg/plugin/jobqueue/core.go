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

package jobqueue

import (
	"context"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/placement/placementcheck"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/watchdog"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// activateChunk is how many pods are handed to the scheduling queue at once: it holds its lock for all of them.
const activateChunk = 200

var _ quotawatch.Quotas = (*quota.Adapter)(nil)

// core is what all instances of the plugin in one scheduler share.
type core struct {
	args       *config.JobQueueArgs
	gates      features.Gates
	extensions *extensions
	handle     fwktype.Handle
	engine     *engine.Engine
	placement  *placementcheck.Checker // nil without the feature gate
	gate       *Gate
	stragglers *stragglers
	metrics    *metrics.Set
	history    *history.Recorder
	metadata   metadata.Interface
	// managed is what is managed at present.
	managed atomic.Pointer[managed]
	// theirs is what the controller said last that it manages; of the goroutine that follows the configuration.
	theirs string
	// leading is set when the scheduler is complete and this replica leads. Before that the scheduling queue does not
	// exist and activating a pod would crash.
	leading atomic.Bool
	// watchdog watches this replica from when it leads, until ctx ends.
	watchdog *watchdog.Timer
	ctx      context.Context // of the process; the framework starts a leader without one
	clock    clock.WithTicker
}

// newCore makes the core. renewal is the time in which a leader has to renew its lease, zero without leader election.
// profile has the arguments of the plugins of its profile.
func newCore(
	ctx context.Context, args *config.JobQueueArgs, handle fwktype.Handle, quotas *quota.Adapter, x *extensions,
	renewal time.Duration, profile []kubeschedulerconfig.PluginConfig,
) (*core, error) {
	gates, err := features.New(args.FeatureGates)
	if err != nil {
		return nil, err
	}
	features.Record(ctx, gates)
	c := &core{
		args: args, gates: gates, extensions: x, handle: handle, clock: clock.RealClock{},
		metrics: metrics.Registered(), ctx: ctx,
	}
	c.history = history.New(history.Options{
		Records: int(args.History.Records), Path: args.History.Path, MaxSizeMB: int(args.History.MaxSizeMB),
		MaxFiles: int(args.History.MaxFiles), Metrics: c.metrics,
	})
	c.watchdog = watchdog.New(c.clock, renewal)
	cfg := clientConfig(handle.KubeConfig(), args)
	cfg.Wrap(c.watchdog.Wrap)
	managed, err := c.managedJobs(ctx)
	if err != nil {
		return nil, err
	}
	predicate, err := managedjobs.NewPredicate(managed)
	if err != nil {
		return nil, err
	}
	if c.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return nil, err
	}
	c.stragglers = newStragglers(c.clock, args.UnknownJobsGracePeriod.Duration)
	first, err := c.newManaged(predicate)
	if err != nil {
		return nil, err
	}
	c.managed.Store(first)
	namespaces := handle.SharedInformerFactory().Core().V1().Namespaces().Lister()
	c.gate = &Gate{
		Snapshot:  func() Snapshot { return c.engine.Snapshot() },
		Predicate: func() *managedjobs.Predicate { return c.managed.Load().predicate },
		Job:       func(uid types.UID) (Job, bool) { return c.managed.Load().index.Job(uid) },
		Pod: func(namespace, name string) *corev1.Pod {
			pod, err := handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(namespace).Get(name)
			if err != nil {
				return nil
			}
			return pod
		},
		NamespaceLabels: func(name string) (map[string]string, bool) {
			namespace, err := namespaces.Get(name)
			if err != nil {
				return nil, false
			}
			return namespace.Labels, true
		},
		Mapped:      func(namespace string) bool { return quotas.Mapped(namespace) },
		Clock:       c.clock,
		PassUnknown: args.UnknownJobs == config.UnknownJobsPass,
		Grace:       args.UnknownJobsGracePeriod.Duration,
		Watch:       c.stragglers.watch,
	}
	c.wireStragglers()
	if err := c.followModes(); err != nil {
		return nil, err
	}
	if gates.Enabled(features.Placement) {
		if c.placement, err = newPlacement(ctx, cfg, handle, profile, c.clock); err != nil {
			return nil, err
		}
	}
	if err := c.buildEngine(cfg, first, quotas); err != nil {
		return nil, err
	}
	first.start(ctx)
	go c.engine.Run(ctx)
	go c.history.Run(ctx)
	c.serveVisibility(ctx, cfg)
	go c.auditOnSignal(ctx)
	go c.stragglers.run(ctx)
	go c.followConfiguration(ctx)
	return c, nil
}

// clientConfig is the scheduler's identity with limits of our own. Custom resources are read and written as JSON.
func clientConfig(base *rest.Config, args *config.JobQueueArgs) *rest.Config {
	cfg := rest.AddUserAgent(rest.CopyConfig(base), "jobqueue")
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	cfg.QPS, cfg.Burst = args.ClientQPS, int(args.ClientBurst)
	cfg.RateLimiter = nil
	return cfg
}

func (c *core) wireStragglers() {
	pods := c.handle.SharedInformerFactory().Core().V1().Pods().Lister()
	c.stragglers.gate = c.gate
	c.stragglers.pod = func(namespace, name string) *corev1.Pod {
		pod, err := pods.Pods(namespace).Get(name)
		if err != nil {
			return nil
		}
		return pod
	}
	c.stragglers.activate = c.tryAgain
	c.stragglers.report = c.reportStraggler
}

// buildEngine connects the engine with the scheduler's pods, the live quotas and the API.
func (c *core) buildEngine(
	cfg *rest.Config, first *managed, quotas *quota.Adapter,
) error {
	client, err := objects.NewClient(cfg)
	if err != nil {
		return err
	}
	o := c.engineOptions()
	if c.placement != nil {
		o.Witness = c.placement
	}
	o.Client, o.Metadata, o.Jobs = client, c.metadata, first.factory
	shared := c.handle.SharedInformerFactory().Core().V1()
	o.Pods, o.Namespaces = shared.Pods().Informer(), shared.Namespaces().Informer()
	o.Quotas, o.Outstanding, o.Predicate = quotas, quotas.SetOutstanding, first.predicate
	if c.engine, err = engine.New(o); err != nil {
		return err
	}
	if c.args.AllowBuiltinQuotas {
		quotas.OpenBuiltIn()
	}
	c.extensions.notify(c.engine.Recheck)
	quotas.Subscribe(c.engine.Sink())
	if c.args.ProtectReservedQuota {
		quotas.Protect(quota.Guard{
			Admitted: c.gate.Admitted, Runs: c.gate.Runs,
			TryAgain: func(names []types.NamespacedName) { c.tryAgain(c.podsNamed(names)) },
			Beyond: func(name string, cause quota.Cause, passes bool) {
				c.metrics.Inc(metrics.PodsBeyondRuntimeTotal, name, string(cause),
					map[bool]string{true: "Pass", false: "Refuse"}[passes])
			},
		})
	}
	return nil
}

// serveVisibility has every replica say what waits, to whom the arguments let it.
func (c *core) serveVisibility(ctx context.Context, cfg *rest.Config) {
	reader := visibility.NewReader(c.engine, c.clock)
	namespaces := c.handle.SharedInformerFactory().Core().V1().Namespaces().Lister()
	reader.Metrics = c.metrics
	reader.History, reader.NamespaceCreated = c.history, func(name string) (time.Time, bool) {
		namespace, err := namespaces.Get(name)
		if err != nil {
			return time.Time{}, false
		}
		return namespace.CreationTimestamp.Time, true
	}
	where := &c.args.Visibility
	if where.Port == 0 {
		return
	}
	go visibility.Serve(ctx, visibility.Options{
		BindAddress: net.ParseIP(where.BindAddress), Port: int(where.Port), CertDir: where.CertDir,
		Client: rest.CopyConfig(cfg), Clock: c.clock,
	}, reader)
}

// engineOptions are those that need nothing of the API.
func (c *core) engineOptions() engine.Options {
	return engine.Options{
		Config: engine.Config{
			QueueNamespace:        c.args.QueueNamespace,
			DefaultQueuePolicy:    c.args.DefaultQueuePolicy,
			WriteConcurrency:      int(c.args.WriteConcurrency),
			StatusRefreshInterval: c.args.StatusRefreshInterval.Duration,
			ItemsInStatus:         int(c.args.ItemsInStatus),
			ResyncInterval:        c.args.ResyncInterval.Duration,
			ReportAfter:           c.args.ExplainAfter.Duration,
			Timeouts: queue.Timeouts{
				Idle: c.args.IdleReservationTimeout.Duration, Unbound: c.args.UnboundTimeout.Duration,
				PodsReady: c.args.PodsReadyTimeout.Duration, Recovery: c.args.RecoveryTimeout.Duration,
			},
			CheckTimeout:  c.args.CheckTimeout.Duration,
			CheckTimeouts: map[string]time.Duration{v1alpha1.ProvisioningController: c.args.ProvisioningTimeout.Duration},
			ClaimAfter:    c.args.ClaimAfter.Duration,
			ClaimTimeout:  c.args.ClaimTimeout.Duration,
			ReportEvery:   c.args.ExplainEvery.Duration,
			AuditInterval: c.args.AuditInterval.Duration,

			AdmissionChecksOff: !c.gates.Enabled(features.AdmissionChecks),
			PartialAdmission:   c.gates.Enabled(features.PartialAdmission),

			ReasonsPerSecond: int(c.args.ReasonsPerSecond),
		},
		Policies:   c.extensions.policies,
		Checks:     c.extensions.checks,
		Order:      c.extensions.order,
		PodRequest: quota.PodRequest,
		Clock:      c.clock,
		Activate:   func(pods map[string]*corev1.Pod) { c.activate(klog.Background(), pods) },
		Ready:      c.leading.Load,
		Metrics:    c.metrics,
		History:    c.history,
	}
}

// auditOnSignal has the state compared with the API when the process gets SIGUSR1.
func (c *core) auditOnSignal(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			c.engine.AuditSoon()
		}
	}
}

func (c *core) lead() {
	c.watchdog.Lead(c.ctx)
	c.leading.Store(true)
	c.engine.Lead()
	if c.placement != nil {
		go c.placement.Run(c.ctx)
	}
}

// podsNamed are those of the pods that exist.
func (c *core) podsNamed(names []types.NamespacedName) []*corev1.Pod {
	lister := c.handle.SharedInformerFactory().Core().V1().Pods().Lister()
	pods := make([]*corev1.Pod, 0, len(names))
	for _, name := range names {
		if pod, err := lister.Pods(name.Namespace).Get(name.Name); err == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// tryAgain is activate for a list of pods.
func (c *core) tryAgain(pods []*corev1.Pod) bool {
	byKey := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		byKey[pod.Namespace+"/"+pod.Name] = pod
	}
	return c.activate(klog.Background(), byKey)
}

// activate hands pods to the scheduling queue, which asks the gate again. It is false, and does nothing, where this
// replica does not lead.
func (c *core) activate(logger klog.Logger, pods map[string]*corev1.Pod) bool {
	if !c.leading.Load() {
		return false
	}
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(pods)), activateChunk) {
		chunk := make(map[string]*corev1.Pod, len(keys))
		for _, key := range keys {
			chunk[key] = pods[key]
		}
		c.handle.Activate(logger, chunk)
	}
	return true
}

// reportStraggler says, in an event on the pod, a metric and the log, that its job has no unit though it should.
func (c *core) reportStraggler(pod *corev1.Pod, v verdict) {
	if !c.leading.Load() {
		return
	}
	action, note := "Gate", "No QueueUnit has appeared for the job of this pod, which is held back until there is one: "+
		"is jobqueue-controller running, and does it manage the same jobs?"
	if v == unseen {
		note = "The job that owns this pod has not been seen, so it is held back: may the scheduler list jobs of this kind?"
	}
	if v == overdue {
		action, note = "Pass", "No QueueUnit has appeared for the job of this pod, which is scheduled without one: "+
			"is jobqueue-controller running, and does it manage the same jobs?"
	}
	c.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, "QueueUnitMissing", action, note)
	c.metrics.Inc(metrics.GatedUnknownPodsTotal, action)
	klog.Background().Info("Pod of a managed job has no QueueUnit", "pod", klog.KObj(pod),
		"action", action, "jobSeen", v != unseen)
}
