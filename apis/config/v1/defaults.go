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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&JobQueueArgs{}, func(obj any) { SetDefaultsJobQueueArgs(obj.(*JobQueueArgs)) })
	return nil
}

// SetDefaultsJobQueueArgs fills what is absent.
func SetDefaultsJobQueueArgs(args *JobQueueArgs) {
	setDefault(&args.QueueNamespace, "koord-queue")
	setDefault(&args.DefaultQueuePolicy, string(v1alpha1.PolicyPriority))
	setDefault(&args.ClientQPS, 1000)
	setDefault(&args.ClientBurst, 2000)
	setDefault(&args.WriteConcurrency, 32)
	setDefault(&args.StatusRefreshInterval, seconds(5))
	setDefault(&args.ItemsInStatus, 100)
	setDefault(&args.ExplainAfter, seconds(5))
	setDefault(&args.ExplainEvery, seconds(10))
	setDefault(&args.ReasonsPerSecond, 20)
	setDefault(&args.ResyncInterval, seconds(30))
	setDefault(&args.AuditInterval, seconds(300))
	setDefault(&args.UnknownJobs, "Gate")
	setDefault(&args.UnknownJobsGracePeriod, seconds(30))
	setDefault(&args.ProtectReservedQuota, true)
	setDefault(&args.AllowBuiltinQuotas, false)
	setDefault(&args.UnboundTimeout, seconds(30*60))
	setDefault(&args.PodsReadyTimeout, metav1.Duration{})
	setDefault(&args.RecoveryTimeout, metav1.Duration{})
	setDefault(&args.CheckTimeout, seconds(30*60))
	setDefault(&args.ProvisioningTimeout, seconds(6*60*60))
	setDefault(&args.ClaimAfter, seconds(5*60))
	setDefault(&args.ClaimTimeout, metav1.Duration{})
	setDefault(&args.IdleReservationTimeout, seconds(10*60))
	setDefault(&args.ManagedJobsConfigMap, ObjectName{})
	if args.ManagedJobsConfigMap.Namespace == "" {
		args.ManagedJobsConfigMap.Namespace = "koord-queue"
	}
	if args.ManagedJobsConfigMap.Name == "" {
		args.ManagedJobsConfigMap.Name = "koord-jobqueue-managed-jobs"
	}
	setDefault(&args.Visibility, Visibility{})
	setDefault(&args.Visibility.BindAddress, "0.0.0.0")
	setDefault(&args.Visibility.Port, 10261)
	setDefault(&args.Visibility.CertDir, "/visibility-certificate")
	setDefault(&args.History, History{})
	setDefault(&args.History.Records, 100_000)
	setDefault(&args.History.Path, "")
	setDefault(&args.History.MaxSizeMB, 100)
	setDefault(&args.History.MaxFiles, 5)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func seconds(n int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Second}
}
