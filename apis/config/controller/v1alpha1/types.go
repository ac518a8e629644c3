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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	// APIVersion of the configuration file.
	APIVersion = "config.koord-queue/v1alpha1"
	// Kind of the configuration file.
	Kind = "ControllerConfiguration"
)

// ControllerConfiguration is what jobqueue-controller reads with --config. Which jobs are managed is not in it:
// the scheduler needs the same answer, so both read the ConfigMap koord-jobqueue-managed-jobs.
type ControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// clientConnection to the API server.
	ClientConnection ClientConnection `json:"clientConnection,omitempty"`
	// leaderElection among replicas: one acts, the others keep their caches warm.
	LeaderElection LeaderElection `json:"leaderElection,omitempty"`
	// metricsBindAddress of the metrics endpoint, host:port; "0" serves none. Default ":8443".
	MetricsBindAddress string `json:"metricsBindAddress,omitempty"`
	// metricsSecure serves metrics over TLS. Callers need a token that may get the non-resource URL /metrics. If false,
	// anybody who reaches the port can read them. Default true.
	MetricsSecure *bool `json:"metricsSecure,omitempty"`
	// metricsCertDir has the serving certificate of metrics, in tls.crt and tls.key as in a mounted Secret. Changed files
	// are read again. Without it, the process makes a certificate for itself. Default "".
	MetricsCertDir string `json:"metricsCertDir,omitempty"`
	// formerMetrics serves metrics of the stand-alone Koord-Queue under their names too, as far as they can be given. Each
	// scrape reads all QueueUnits. Default false.
	FormerMetrics bool `json:"formerMetrics,omitempty"`
	// healthProbeBindAddress of /healthz and /readyz, host:port; "0" serves none. Default ":8081".
	HealthProbeBindAddress string `json:"healthProbeBindAddress,omitempty"`
	// queueNamespace is where Queues live and where the ConfigMap of managed jobs is. Default "koord-queue".
	QueueNamespace string `json:"queueNamespace,omitempty"`
	// concurrency is the number of jobs of one kind that are reconciled at once. Default 16.
	Concurrency int `json:"concurrency,omitempty"`
	// reportsPerSecond is the number of QueueUnits per second to which the number of ready pods is written. Each unit is
	// written every 30 seconds at most. A change of "all pods are ready" is written at once. Default 20.
	ReportsPerSecond int `json:"reportsPerSecond,omitempty"`
	// eventsPerSecond is how many jobs are told in a second, by an event, what they wait for; each is once in a minute at
	// most. Default 10.
	EventsPerSecond int `json:"eventsPerSecond,omitempty"`
	// finishedUnitsTTL is how long the QueueUnit of a finished job stays. Default 0: it stays as long as its job.
	FinishedUnitsTTL metav1.Duration `json:"finishedUnitsTTL,omitempty"`
	// koordinatorFeatureGates are the feature gates of koord-scheduler and koord-manager that change the request that
	// ElasticQuota counts for a pod. Set them as those processes have them. An absent gate is off, as in Koordinator.
	KoordinatorFeatureGates KoordinatorFeatureGates `json:"koordinatorFeatureGates,omitempty"`
	// unitTemplates says how much of the pod templates a QueueUnit keeps. Scheduling keeps the part that scheduling and
	// admission checks need. Full also keeps env and commands, with any secrets in them. Default "Scheduling".
	UnitTemplates UnitTemplates `json:"unitTemplates,omitempty"`
	// quotaTrees says which ElasticQuotaTrees are expanded.
	QuotaTrees QuotaTrees `json:"quotaTrees,omitempty"`
	// defaultReclaim is spec.preemption.reclaim of each default Queue that the controller creates: Never, LowerPriority or
	// Any. Default "Any".
	DefaultReclaim v1alpha1.PreemptionPolicy `json:"defaultReclaim,omitempty"`
	// visibilitySecret is the Secret, as namespace/name, in which the controller keeps the certificate of the aggregated
	// API, if that is installed. Default "koordinator-system/koord-jobqueue-visibility".
	VisibilitySecret string `json:"visibilitySecret,omitempty"`
	// featureGates: features to switch on or off, by name. A feature that is absent has its default; an unknown name is
	// an error. Give the scheduler the same, in the arguments of its plugin.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// UnitTemplates says what a QueueUnit holds of pod templates.
type UnitTemplates string

const (
	// UnitTemplatesScheduling keeps what scheduling and admission checks need.
	UnitTemplatesScheduling UnitTemplates = "Scheduling"
	// UnitTemplatesFull keeps all.
	UnitTemplatesFull UnitTemplates = "Full"
)

// KoordinatorFeatureGates bear the names that Koordinator v1.8.0 gives them.
type KoordinatorFeatureGates struct {
	// ElasticQuotaIgnorePodOverhead of koord-scheduler: the overhead of pods is not counted.
	ElasticQuotaIgnorePodOverhead bool `json:"ElasticQuotaIgnorePodOverhead,omitempty"`
	// ReplaceResourcesTransformer of koord-scheduler: the annotation pod.koordinator.sh/replace-resources is followed.
	ReplaceResourcesTransformer bool `json:"ReplaceResourcesTransformer,omitempty"`
	// ColocationProfileSkipMutatingResources of koord-manager: profiles leave resources alone.
	ColocationProfileSkipMutatingResources bool `json:"ColocationProfileSkipMutatingResources,omitempty"`
}

// QuotaTrees are expanded into ElasticQuotas as soon as the controller can read them: once their CRD and the rights of
// manifests/components/elasticquotatree are there.
type QuotaTrees struct {
	// disabled leaves them alone all the same.
	Disabled bool `json:"disabled,omitempty"`
	// namespace of the trees and of the ElasticQuotas made of them. Default "kube-system".
	Namespace string `json:"namespace,omitempty"`
}

// ClientConnection limits what the controller asks of the API server.
type ClientConnection struct {
	// kubeconfig file; empty takes the flag, the environment, then the service account of the pod.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// qps is the number of requests in a second. Default 500.
	QPS float32 `json:"qps,omitempty"`
	// burst is the number of requests at once. Default 1000.
	Burst int `json:"burst,omitempty"`
}

// LeaderElection says how replicas agree on the one that acts.
type LeaderElection struct {
	// leaderElect: default true.
	LeaderElect *bool `json:"leaderElect,omitempty"`
	// resourceNamespace of the Lease. Default: the queue namespace.
	ResourceNamespace string `json:"resourceNamespace,omitempty"`
	// resourceName of the Lease. Default "jobqueue-controller".
	ResourceName string `json:"resourceName,omitempty"`
	// leaseDuration after which another replica may take over. Default 20s: longer than 2*renewDeadline + retryPeriod
	// and some seconds for requests under way, so that two replicas do not act at once.
	LeaseDuration metav1.Duration `json:"leaseDuration,omitempty"`
	// renewDeadline after which the leader gives up. Default 6s.
	RenewDeadline metav1.Duration `json:"renewDeadline,omitempty"`
	// retryPeriod between attempts. Default 2s.
	RetryPeriod metav1.Duration `json:"retryPeriod,omitempty"`
}
