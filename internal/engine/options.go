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
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/labeltext"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/podbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// DefaultWriteTimeout of one request of a writer. A request of a leader must have ended when the next leader lists the
// units. Otherwise both give away the same quota (I1). client-go's elector gives up retryPeriod plus renewDeadline
// after the answer to its last renewal. That answer may come renewDeadline after the lease was written. So this must
// hold:
//
//	2*renewDeadline + retryPeriod + DefaultWriteTimeout < leaseDuration
//
// It holds in the shipped configuration of the scheduler, but not with kube-scheduler's defaults.
const DefaultWriteTimeout = 4 * time.Second

// Config of the engine. Zero values are defaulted by New.
type Config struct {
	// QueueNamespace is where Queues live; DefaultQueuePolicy is taken for a Queue that names none.
	QueueNamespace     string
	DefaultQueuePolicy string
	// WriteConcurrency bounds the requests at once; WriteTimeout one request, see pool.
	WriteConcurrency int
	WriteTimeout     time.Duration
	// StatusRefreshInterval is the least time between two writes of one Queue's status, which lists the first
	// ItemsInStatus units.
	StatusRefreshInterval time.Duration
	ItemsInStatus         int
	// ResyncInterval: every quota is observed and every pod of an admitted job activated again this often.
	ResyncInterval time.Duration
	// ReportAfter is how long a unit must wait before its reason is written; ReportEvery the least time between two such
	// writes.
	ReportAfter, ReportEvery time.Duration
	// ReasonsPerSecond bounds how many reasons are written in a second, to all units together.
	ReasonsPerSecond int
	// Timeouts of units whose queue names none.
	Timeouts queue.Timeouts
	// CheckTimeout is for how long a reserved unit waits for an admission check, if its queue names no time. Zero is no
	// bound.
	CheckTimeout time.Duration
	// CheckTimeouts are those of checks of some controllers, by controllerName; others have CheckTimeout.
	CheckTimeouts map[string]time.Duration
	// ClaimAfter and ClaimTimeout are those of admission.Config.
	ClaimAfter, ClaimTimeout time.Duration
	// PartialAdmission has units admitted with fewer pods than they ask for where they allow it.
	PartialAdmission bool
	// TrailingCheck is how long after a change a quota is observed once more: the hook speaks before used moves.
	TrailingCheck time.Duration
	// AuditInterval is how often a leader compares its state with the API objects; zero means only when asked to.
	AuditInterval time.Duration
	// AdmissionChecksOff: AdmissionChecks are not followed, and queues that name some reserve nothing. Units for which
	// quota is reserved already keep it, and the answers that they still get count.
	AdmissionChecksOff bool
}

// Options of New. Client, Quotas and Clock are required.
type Options struct {
	Config Config
	// Client reads and writes units and queues, and reads priority classes. NewClient makes it.
	Client rest.Interface
	// Metadata lists the versions of units where the engine has to know that it knows all of them; nil lists whole units.
	Metadata metadata.Interface
	// Jobs has the informers of the jobs of managed kinds; its owner starts it. Without it no consumer is followed.
	Jobs metadatainformer.SharedInformerFactory
	// Pods is the scheduler's informer of pods; nil when pods are fed by FeedPod.
	Pods cache.SharedIndexInformer
	// Namespaces is the scheduler's informer of namespaces, which say how great a priority they allow; nil when these are
	// fed by FeedNamespace.
	Namespaces cache.SharedIndexInformer
	// Quotas answers from the live quotas.
	Quotas quotawatch.Quotas
	// PodRequest is the request that ElasticQuota counts for a pod; nil takes that of the scheduler.
	PodRequest func(*corev1.Pod) corev1.ResourceList
	// Predicate says which kinds of jobs are managed until Manage says otherwise; nil manages none.
	Predicate *managedjobs.Predicate
	Clock     clock.WithTicker
	// Activate makes the scheduler look at gated pods again; the key of a pod is namespace/name. Ready says whether
	// the scheduler is built, so that it can; nil means always.
	Activate func(pods map[string]*corev1.Pod)
	Ready    func() bool
	// Outstanding, if set, gets two amounts of a level when one of them changes. They are the amount protected from pods
	// outside of jobs (admission.ReservedAt), and the limit of these pods and of jobs together.
	Outstanding func(quota string, outstanding, limit resources.List)
	// Policies, Checks and Order are what extensions give to the core; see admission.Config.
	Policies map[string]queue.Factory
	Checks   []queue.Check
	Order    queue.Order
	// Metrics counts, History records transitions of units, and Witness is told of changes; nil does nothing.
	Metrics *metrics.Set
	History *history.Recorder
	Witness witness.Witness
	// Submit, if set, takes the writes instead of the pool of writers. The receiver of a Write calls its Do until the
	// outcome is definite and hands every Result to Engine.Settle.
	Submit func(*statuswrite.Write)
}

func (o *Options) complete() error {
	if o.Client == nil || o.Quotas == nil || o.Clock == nil {
		return errors.New("engine: Client, Quotas and Clock are required")
	}
	if o.Witness == nil {
		o.Witness = witness.Nobody{}
	}
	c := &o.Config
	setDefault(&c.QueueNamespace, v1alpha1.DefaultQueueNamespace)
	setDefault(&c.DefaultQueuePolicy, string(v1alpha1.PolicyPriority))
	setDefault(&c.WriteConcurrency, 32)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.StatusRefreshInterval, 5*time.Second)
	setDefault(&c.ItemsInStatus, 100)
	setDefault(&c.ResyncInterval, 30*time.Second)
	setDefault(&c.ReportAfter, 5*time.Second)
	setDefault(&c.ReportEvery, 10*time.Second)
	setDefault(&c.ReasonsPerSecond, 20)
	setDefault(&c.TrailingCheck, 20*time.Millisecond)
	if o.PodRequest == nil {
		o.PodRequest = func(pod *corev1.Pod) corev1.ResourceList {
			return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		}
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	if o.Activate == nil {
		o.Activate = func(map[string]*corev1.Pod) {}
	}
	return nil
}

// refusedBackoff is how long a unit waits whose write was refused. It waits longer each time.
const refusedBackoff = 10 * time.Second

// scheduler is what pods need of it.
func (o *Options) scheduler() podbook.Scheduler {
	return podbook.Scheduler{Witness: o.Witness, PodRequest: o.PodRequest, Activate: o.Activate, Ready: o.Ready}
}

// from is where objects come from.
func (o *Options) from(namespaceGone func(string)) intake.Options {
	return intake.Options{
		Client: o.Client, Metadata: o.Metadata, Jobs: o.Jobs, Pods: o.Pods, Namespaces: o.Namespaces, Predicate: o.Predicate,
		QueueNamespace: o.Config.QueueNamespace, DefaultQueuePolicy: o.Config.DefaultQueuePolicy,
		Timeouts: o.Config.Timeouts, AdmissionChecksOff: o.Config.AdmissionChecksOff, NamespaceGone: namespaceGone,
	}
}

// core is the configuration of the core.
func (o *Options) core() admission.Config {
	c := &o.Config
	return admission.Config{
		ExplainAfter: c.ReportAfter, ExplainEvery: c.ReportEvery, RefusedBackoff: refusedBackoff,
		Rules:      life.Config{Timeouts: c.Timeouts, Selects: labeltext.Selects, Begun: o.Clock.Now()},
		ClaimAfter: c.ClaimAfter, ClaimTimeout: c.ClaimTimeout, PartialAdmission: c.PartialAdmission,
		Policies: o.Policies, Checks: o.Checks, Order: o.Order,
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
