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

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectName names a namespaced object.
type ObjectName struct {
	// namespace of the object.
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name,omitempty"`
}

// Visibility says where the aggregated API visibility.koord-queue.x-k8s.io is served.
type Visibility struct {
	// bindAddress to listen on. Default "0.0.0.0".
	BindAddress *string `json:"bindAddress,omitempty"`
	// port to listen on, 0 to 65535; 0 serves nothing. Default 10261.
	Port *int32 `json:"port,omitempty"`
	// certDir has tls.crt and tls.key, which are read again when they change. With "" the server makes a certificate for
	// itself, which nobody can verify. Default "/visibility-certificate".
	CertDir *string `json:"certDir,omitempty"`
}

// History bounds the record of transitions of units, which the visibility API serves.
type History struct {
	// records is the number of records in memory, 0 to 1000000, of about 450 bytes each. 0 records nothing. Default
	// 100000.
	Records *int32 `json:"records,omitempty"`
	// path is a file that the leader writes and every replica reads at start. Empty writes none. Default "".
	Path *string `json:"path,omitempty"`
	// maxSizeMB is the size of a file in megabytes, 1 to 10000. Then a new file is begun. Default 100.
	MaxSizeMB *int32 `json:"maxSizeMB,omitempty"`
	// maxFiles is the number of files that are kept, 2 to 1000. Default 5.
	MaxFiles *int32 `json:"maxFiles,omitempty"`
}

// JobQueueArgs are the arguments of the JobQueue plugin. Every field is optional. A field that is not known is an
// error.
//
// +kubebuilder:object:root=true
type JobQueueArgs struct {
	metav1.TypeMeta `json:",inline"`

	// queueNamespace is the namespace that Queues live in. Default "koord-queue".
	QueueNamespace *string `json:"queueNamespace,omitempty"`
	// defaultQueuePolicy is the policy of queues whose spec names none, with the values of queuePolicy of a Queue. Default
	// "Priority".
	DefaultQueuePolicy *string `json:"defaultQueuePolicy,omitempty"`
	// clientQPS is the rate, in requests per second, of the plugin's own API clients; the scheduler's
	// clientConnection does not apply to them. Default 1000.
	ClientQPS *float32 `json:"clientQPS,omitempty"`
	// clientBurst is how many requests may go out at once above that rate. Default 2000.
	ClientBurst *int32 `json:"clientBurst,omitempty"`
	// writeConcurrency is the most status writes in flight, 1 to 1000. If the API server is slow, fewer
	// are, down to 4. Default 32.
	WriteConcurrency *int32 `json:"writeConcurrency,omitempty"`
	// statusRefreshInterval is the least time between two status writes of the same Queue, at least 1s. All Queues
	// together are written 20 times a second at most. Default 5s.
	StatusRefreshInterval *metav1.Duration `json:"statusRefreshInterval,omitempty"`
	// itemsInStatus is how many waiting units the status of a Queue lists, 1 to 1000. Default 100.
	// The visibility API lists all.
	ItemsInStatus *int32 `json:"itemsInStatus,omitempty"`
	// explainAfter is how long a unit must wait before the reason is written to its status, at least 1ms. Default 5s.
	ExplainAfter *metav1.Duration `json:"explainAfter,omitempty"`
	// explainEvery is the least time between two such writes for one unit, at least 1s. Default 10s.
	ExplainEvery *metav1.Duration `json:"explainEvery,omitempty"`
	// reasonsPerSecond is the number of such writes per second for all units together, 1 to 1000. Namespaces take turns,
	// and within a namespace the unit that has waited longest is first. The number is never more than a tenth of the
	// writes that the API server was seen to take. Default 20.
	ReasonsPerSecond *int32 `json:"reasonsPerSecond,omitempty"`
	// resyncInterval is how often pods of admitted jobs that are still not scheduled are handed to the scheduler again,
	// at least 1s. Default 30s.
	ResyncInterval *metav1.Duration `json:"resyncInterval,omitempty"`
	// auditInterval is how often the leader compares its ledger and queues with the API objects and with Koordinator's
	// used. It is at least 10s; 0s means only on request. Default 5m.
	AuditInterval *metav1.Duration `json:"auditInterval,omitempty"`
	// unknownJobs is the treatment of pods of a managed job without a QueueUnit after unknownJobsGracePeriod, because the
	// controller is down or the two configurations differ. Gate keeps them out of scheduling. Pass leaves them to
	// ElasticQuota alone. Default "Gate".
	UnknownJobs *string `json:"unknownJobs,omitempty"`
	// unknownJobsGracePeriod is how long a pod may be without a unit, from the pod's creation, before that is reported
	// and unknownJobs applies. Default 30s.
	UnknownJobsGracePeriod *metav1.Duration `json:"unknownJobsGracePeriod,omitempty"`
	// protectReservedQuota keeps reserved quota of admitted jobs from all other pods. Pods of an admitted job also get
	// their quota if the runtime has shrunk since, up to max. Default true.
	ProtectReservedQuota *bool `json:"protectReservedQuota,omitempty"`
	// allowBuiltinQuotas lets jobs be admitted in Koordinator's default and system quota. Those quotas usually have no
	// bound that matters, so any tenant could take the cluster through them. If false, a job without a quota, in a
	// namespace without one, waits with reason QuotaNotNamed. Default false.
	AllowBuiltinQuotas *bool `json:"allowBuiltinQuotas,omitempty"`
	// unboundTimeout is how long an admitted job keeps its quota while it has pods and none of them is on a node, at least
	// 1s. Then it is suspended, waits for a minute, and longer each time, and is tried again at its place. 0s means
	// no limit. Default 30m.
	UnboundTimeout *metav1.Duration `json:"unboundTimeout,omitempty"`
	// idleReservationTimeout is the same for a job that makes no pod at all. Default 10m.
	IdleReservationTimeout *metav1.Duration `json:"idleReservationTimeout,omitempty"`
	// podsReadyTimeout is how long an admitted job keeps its quota before all of its pods have been ready, at least 1s.
	// recoveryTimeout is the time after they were ready and no longer are. Then the job is suspended and tried again as
	// after unboundTimeout. 0s means no limit. A queue can set these five timeouts in spec.timeouts. Default 0s.
	PodsReadyTimeout *metav1.Duration `json:"podsReadyTimeout,omitempty"`
	// recoveryTimeout: see podsReadyTimeout. Default 0s.
	RecoveryTimeout *metav1.Duration `json:"recoveryTimeout,omitempty"`
	// checkTimeout is how long a job for which quota is reserved waits for an admission check, at least 1s. Then it gives
	// the quota back and is tried again as after unboundTimeout. 0s means no limit. Default 30m. A check may have its own
	// in spec.admissionChecks of the queue.
	CheckTimeout *metav1.Duration `json:"checkTimeout,omitempty"`
	// provisioningTimeout is checkTimeout for checks that ask a cluster autoscaler for capacity, whose controllerName is
	// koord-queue/provisioning-request. Default 6h.
	ProvisioningTimeout *metav1.Duration `json:"provisioningTimeout,omitempty"`
	// claimAfter is how long a job waits at the front of its queue until it claims. Its queue is served first then. 0s
	// means never. Default 5m.
	ClaimAfter *metav1.Duration `json:"claimAfter,omitempty"`
	// claimTimeout is for how long the first job of a queue that does not fit keeps others from what it waits
	// for, at least 1s. Then it blocks nobody any more, and is admitted in its turn if it fits. 0s means until it is
	// admitted. Default 0s.
	ClaimTimeout *metav1.Duration `json:"claimTimeout,omitempty"`
	// managedJobsConfigMap is the ConfigMap that says which jobs are managed; the controller reads the same one.
	// Default koord-queue/koord-jobqueue-managed-jobs. Without it at the start the defaults apply.
	ManagedJobsConfigMap *ObjectName `json:"managedJobsConfigMap,omitempty"`
	// visibility is where every replica serves the aggregated API: bindAddress (default "0.0.0.0"), port (default 10261; 0
	// serves nothing) and certDir, with tls.crt and tls.key.
	Visibility *Visibility `json:"visibility,omitempty"`
	// history bounds the record of transitions: records in memory (default 100000, 0 for none), path (default
	// none), maxSizeMB (default 100) and maxFiles (default 5).
	History *History `json:"history,omitempty"`
	// featureGates: features to switch on or off, by name; the table of feature gates has them. A feature that is absent
	// has its default; an unknown name is an error. Give the controller the same.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}
