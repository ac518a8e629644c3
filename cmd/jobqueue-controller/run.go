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
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config/controller/v1alpha1"
	visibilityv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/certificate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/formermetrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ignoredkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/provisioning"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/quotatree"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/reservation"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stray"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/turns"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitcache"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/inflight"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/watchdog"
)

// shutdownTimeout is what running reconciliations get to end in.
const shutdownTimeout = 5 * time.Second

// runOptions are the flags. A flag that is absent does not change the value of the file.
type runOptions struct {
	configFile, kubeconfig          string
	leaderElect, metricsSecure      bool
	metricsAddress, healthAddress   string
	queueNamespace, leaderNamespace string
}

func (o *runOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.configFile, "config", "", "file with a "+v1alpha1.Kind+" ("+v1alpha1.APIVersion+"), read strictly")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "agree with other replicas on the one that acts")
	fs.StringVar(&o.leaderNamespace, "leader-elect-resource-namespace", "koord-queue",
		"namespace of the Lease of the leader election")
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "host:port of /metrics; 0 serves none")
	fs.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"serve /metrics over TLS, to those alone whom the API server lets get it")
	fs.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081",
		"host:port of /healthz and /readyz; 0 serves none")
	fs.StringVar(&o.queueNamespace, "queue-namespace", "koord-queue", "where Queues and the ConfigMap of managed jobs are")
}

// configuration is the file, or the defaults without one, with the flags that were given on top.
func (o *runOptions) configuration(fs *pflag.FlagSet) (*v1alpha1.ControllerConfiguration, error) {
	c := v1alpha1.Default()
	if o.configFile != "" {
		data, err := os.ReadFile(o.configFile)
		if err != nil {
			return nil, err
		}
		if c, err = v1alpha1.Load(data); err != nil {
			return nil, fmt.Errorf("%s: %w", o.configFile, err)
		}
	}
	if fs.Changed("queue-namespace") {
		if c.LeaderElection.ResourceNamespace == c.QueueNamespace {
			c.LeaderElection.ResourceNamespace = o.queueNamespace
		}
		c.QueueNamespace = o.queueNamespace
	}
	override(fs, "leader-elect", &c.LeaderElection.LeaderElect, &o.leaderElect)
	override(fs, "leader-elect-resource-namespace", &c.LeaderElection.ResourceNamespace, o.leaderNamespace)
	override(fs, "metrics-bind-address", &c.MetricsBindAddress, o.metricsAddress)
	override(fs, "metrics-secure", &c.MetricsSecure, &o.metricsSecure)
	override(fs, "health-probe-bind-address", &c.HealthProbeBindAddress, o.healthAddress)
	override(fs, "kubeconfig", &c.ClientConnection.Kubeconfig, o.kubeconfig)
	problems := append(v1alpha1.Validate(c), features.Validate(c.FeatureGates, field.NewPath("featureGates"))...)
	return c, problems.ToAggregate()
}

func override[T any](fs *pflag.FlagSet, flag string, value *T, given T) {
	if fs.Changed(flag) {
		*value = given
	}
}

func (o *runOptions) run(ctx context.Context, fs *pflag.FlagSet) error {
	c, err := o.configuration(fs)
	if err != nil {
		return err
	}
	config, err := restConfig(c.ClientConnection)
	if err != nil {
		return err
	}
	enabled, err := features.New(c.FeatureGates)
	if err != nil {
		return err
	}
	controller.RecordFeatures(enabled)
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	index, err := served.New(config, clock.RealClock{})
	if err != nil {
		return err
	}
	go index.Start(ctx)
	if err := waitForAPIs(ctx, index); err != nil {
		return stopped(ctx, err)
	}
	predicate, err := managedJobs(ctx, config, scheme, c.QueueNamespace, index)
	if err != nil {
		return stopped(ctx, err)
	}
	dog := newWatchdog(config, &c.LeaderElection, clock.RealClock{})
	line := boundWrites(config, clock.RealClock{})
	mgr, err := newManager(config, scheme, c)
	if err != nil {
		return err
	}
	if err := mgr.Add(whileLeading(dog)); err != nil {
		return err
	}
	err = controller.Setup(ctx, mgr, controller.Options{
		QueueNamespace: c.QueueNamespace, DefaultReclaim: c.DefaultReclaim,
		Predicate: predicate, Concurrency: c.Concurrency,
		Clock: clock.RealClock{}, Served: index, Gates: gates(c.KoordinatorFeatureGates),
		ReportsPerSecond: c.ReportsPerSecond,
		EventsPerSecond:  c.EventsPerSecond,
		Turns:            turns.New(clock.RealClock{}, line.Writes),
		Plan: jobplan.Options{
			WholeTemplates:   c.UnitTemplates == v1alpha1.UnitTemplatesFull,
			ChecksOff:        !enabled.Enabled(features.AdmissionChecks),
			PartialAdmission: enabled.Enabled(features.PartialAdmission),
			FinishedUnitsTTL: c.FinishedUnitsTTL.Duration,
		},
	})
	if err != nil {
		return err
	}
	if err := setupChecks(mgr, enabled, index, predicate.Kinds()); err != nil {
		return err
	}
	if err := setupOthers(mgr, c, index); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "queueNamespace", c.QueueNamespace, "managedJobsHash", predicate.Hash(),
		"kinds", len(predicate.Kinds()), "leaderElection", *c.LeaderElection.LeaderElect)
	return stopped(ctx, mgr.Start(ctx))
}

// setupChecks sets up what answers admission checks.
func setupChecks(mgr manager.Manager, enabled features.Gates, index *served.Index, kinds []jobkind.Kind) error {
	if !enabled.Enabled(features.AdmissionChecks) {
		return nil
	}
	units := unitcache.Reader{Cache: mgr.GetClient(), Live: mgr.GetAPIReader()}
	err := provisioning.Setup(mgr, provisioning.Options{Units: units, Clock: clock.RealClock{}, Served: index})
	if err != nil || !enabled.Enabled(features.Reservations) {
		return err
	}
	return reservation.Setup(mgr, reservation.Options{
		Units: units, Clock: clock.RealClock{}, Served: index, Kinds: kinds,
	})
}

// setupOthers sets up the controllers other than that of jobs and those of checks.
func setupOthers(mgr manager.Manager, c *v1alpha1.ControllerConfiguration, index *served.Index) error {
	if !c.QuotaTrees.Disabled {
		if err := quotatree.Setup(mgr, quotatree.Options{
			Namespace: c.QuotaTrees.Namespace, Clock: clock.RealClock{}, Served: index,
		}); err != nil {
			return err
		}
	}
	if err := stray.Setup(mgr, c.QueueNamespace); err != nil {
		return err
	}
	if err := ignoredkey.Setup(mgr, clock.RealClock{}); err != nil {
		return err
	}
	if c.FormerMetrics {
		runtimemetrics.Registry.MustRegister(&formermetrics.Collector{Reader: mgr.GetClient(), Elected: mgr.Elected()})
	}
	return keepCertificate(mgr, c.VisibilitySecret)
}

// keepCertificate looks after the certificate of the aggregated API.
func keepCertificate(mgr manager.Manager, secret string) error {
	namespace, name, _ := strings.Cut(secret, "/")
	return mgr.Add(&certificate.Keeper{
		APIService: visibilityv1alpha1.SchemeGroupVersion.Version + "." + visibilityv1alpha1.GroupName,
		Secret:     types.NamespacedName{Namespace: namespace, Name: name},
		Reader:     mgr.GetAPIReader(), Writer: mgr.GetClient(), Clock: clock.RealClock{},
	})
}

func gates(g v1alpha1.KoordinatorFeatureGates) podrequest.Gates {
	return podrequest.Gates{
		IgnorePodOverhead:     g.ElasticQuotaIgnorePodOverhead,
		ReplaceResources:      g.ReplaceResourcesTransformer,
		SkipMutatingResources: g.ColocationProfileSkipMutatingResources,
	}
}

// stopped turns an end that was asked for by a signal into success.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		klog.FromContext(ctx).Info("Ended on request")
		return nil
	}
	return err
}

func restConfig(c v1alpha1.ClientConnection) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = c.QPS, c.Burst
	return rest.AddUserAgent(config, "jobqueue-controller"), nil
}

// managedJobs reads which jobs are managed before anything is watched. An invalid configuration ends the process: with
// a guess it could suspend jobs that it must leave alone.
func managedJobs(
	ctx context.Context, config *rest.Config, scheme *runtime.Scheme, namespace string, index *served.Index,
) (*managedjobs.Predicate, error) {
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	m, err := controller.ReadManagedJobs(ctx, live, namespace)
	if err != nil {
		return nil, err
	}
	if m, _, err = m.WithoutRefused(controller.Installed(index)); err != nil {
		return nil, err
	}
	return managedjobs.NewPredicate(m)
}

// newWatchdog keeps a leader that stood still from writing what it decided on before, while its successor leads. All
// clients that are made of the configuration afterwards refuse to.
func newWatchdog(config *rest.Config, l *v1alpha1.LeaderElection, clk clock.WithTicker) *watchdog.Timer {
	limit := l.RenewDeadline.Duration
	if !*l.LeaderElect {
		limit = 0
	}
	dog := watchdog.New(clk, limit)
	config.Wrap(dog.Wrap)
	return dog
}

// boundWrites has all clients that are made of the configuration afterwards share what may be in flight. A write that
// has waited for its turn still passes the watchdog.
func boundWrites(config *rest.Config, clk clock.PassiveClock) *inflight.Line {
	const least, most = 2, 32
	line := inflight.NewLine(clk, least, most)
	config.Wrap(line.Wrap)
	return line
}

// whileLeading watches from when this replica leads until the process ends, which may be some time after ctx.
func whileLeading(dog *watchdog.Timer) manager.RunnableFunc {
	return func(ctx context.Context) error {
		dog.Lead(context.WithoutCancel(ctx))
		return nil
	}
}

// metricsOptions have the API server say who may read metrics, unless that is switched off.
func metricsOptions(c *v1alpha1.ControllerConfiguration) (metricsserver.Options, error) {
	o := metricsserver.Options{BindAddress: c.MetricsBindAddress}
	if *c.MetricsSecure {
		o.SecureServing, o.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	}
	if dir := c.MetricsCertDir; dir != "" {
		// The server would make a certificate for itself where one is missing, and nobody who asked for his own expects that.
		_, err := tls.LoadX509KeyPair(filepath.Join(dir, corev1.TLSCertKey), filepath.Join(dir, corev1.TLSPrivateKeyKey))
		if err != nil {
			return o, fmt.Errorf("certificate for metrics: %w", err)
		}
		o.CertDir, o.CertName, o.KeyName = dir, corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	}
	return o, nil
}

func newManager(
	config *rest.Config, scheme *runtime.Scheme, c *v1alpha1.ControllerConfiguration,
) (manager.Manager, error) {
	grace := shutdownTimeout
	l := c.LeaderElection
	metrics, err := metricsOptions(c)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                        scheme,
		Logger:                        klog.NewKlogr(),
		Cache:                         controller.CacheOptions(c.QueueNamespace),
		Metrics:                       metrics,
		HealthProbeBindAddress:        c.HealthProbeBindAddress,
		LeaderElection:                *l.LeaderElect,
		LeaderElectionNamespace:       l.ResourceNamespace,
		LeaderElectionID:              l.ResourceName,
		LeaderElectionReleaseOnCancel: true, // the process ends as soon as the manager has
		LeaseDuration:                 &l.LeaseDuration.Duration,
		RenewDeadline:                 &l.RenewDeadline.Duration,
		RetryPeriod:                   &l.RetryPeriod.Duration,
		GracefulShutdownTimeout:       &grace,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}
