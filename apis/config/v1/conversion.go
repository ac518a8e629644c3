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
	"maps"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
)

func addConversionFuncs(scheme *runtime.Scheme) error {
	if err := scheme.AddConversionFunc((*JobQueueArgs)(nil), (*config.JobQueueArgs)(nil),
		func(a, b any, _ conversion.Scope) error {
			toInternal(a.(*JobQueueArgs), b.(*config.JobQueueArgs))
			return nil
		}); err != nil {
		return err
	}
	return scheme.AddConversionFunc((*config.JobQueueArgs)(nil), (*JobQueueArgs)(nil),
		func(a, b any, _ conversion.Scope) error {
			fromInternal(a.(*config.JobQueueArgs), b.(*JobQueueArgs))
			return nil
		})
}

// toInternal completes in with its defaults first, so that it never depends on who called the defaulting.
func toInternal(in *JobQueueArgs, out *config.JobQueueArgs) {
	in = in.DeepCopy()
	SetDefaultsJobQueueArgs(in)
	out.QueueNamespace = *in.QueueNamespace
	out.DefaultQueuePolicy = *in.DefaultQueuePolicy
	out.ClientQPS = *in.ClientQPS
	out.ClientBurst = *in.ClientBurst
	out.WriteConcurrency = *in.WriteConcurrency
	out.StatusRefreshInterval = *in.StatusRefreshInterval
	out.ItemsInStatus = *in.ItemsInStatus
	out.ExplainAfter = *in.ExplainAfter
	out.ExplainEvery = *in.ExplainEvery
	out.ReasonsPerSecond = *in.ReasonsPerSecond
	out.ResyncInterval = *in.ResyncInterval
	out.AuditInterval = *in.AuditInterval
	out.UnknownJobs = config.UnknownJobsPolicy(*in.UnknownJobs)
	out.UnknownJobsGracePeriod = *in.UnknownJobsGracePeriod
	out.ProtectReservedQuota = *in.ProtectReservedQuota
	out.AllowBuiltinQuotas = *in.AllowBuiltinQuotas
	out.UnboundTimeout = *in.UnboundTimeout
	out.IdleReservationTimeout = *in.IdleReservationTimeout
	out.PodsReadyTimeout = *in.PodsReadyTimeout
	out.RecoveryTimeout = *in.RecoveryTimeout
	out.CheckTimeout = *in.CheckTimeout
	out.ProvisioningTimeout = *in.ProvisioningTimeout
	out.ClaimAfter = *in.ClaimAfter
	out.ClaimTimeout = *in.ClaimTimeout
	out.ManagedJobsConfigMap = config.ObjectName(*in.ManagedJobsConfigMap)
	out.Visibility = config.Visibility{
		BindAddress: *in.Visibility.BindAddress, Port: *in.Visibility.Port, CertDir: *in.Visibility.CertDir,
	}
	out.History = config.History{
		Records: *in.History.Records, Path: *in.History.Path,
		MaxSizeMB: *in.History.MaxSizeMB, MaxFiles: *in.History.MaxFiles,
	}
	out.FeatureGates = in.FeatureGates
}

func fromInternal(in *config.JobQueueArgs, out *JobQueueArgs) {
	out.QueueNamespace = ptr.To(in.QueueNamespace)
	out.DefaultQueuePolicy = ptr.To(in.DefaultQueuePolicy)
	out.ClientQPS = ptr.To(in.ClientQPS)
	out.ClientBurst = ptr.To(in.ClientBurst)
	out.WriteConcurrency = ptr.To(in.WriteConcurrency)
	out.StatusRefreshInterval = ptr.To(in.StatusRefreshInterval)
	out.ItemsInStatus = ptr.To(in.ItemsInStatus)
	out.ExplainAfter = ptr.To(in.ExplainAfter)
	out.ExplainEvery = ptr.To(in.ExplainEvery)
	out.ReasonsPerSecond = ptr.To(in.ReasonsPerSecond)
	out.ResyncInterval = ptr.To(in.ResyncInterval)
	out.AuditInterval = ptr.To(in.AuditInterval)
	out.UnknownJobs = ptr.To(string(in.UnknownJobs))
	out.UnknownJobsGracePeriod = ptr.To(in.UnknownJobsGracePeriod)
	out.ProtectReservedQuota = ptr.To(in.ProtectReservedQuota)
	out.AllowBuiltinQuotas = ptr.To(in.AllowBuiltinQuotas)
	out.UnboundTimeout = ptr.To(in.UnboundTimeout)
	out.IdleReservationTimeout = ptr.To(in.IdleReservationTimeout)
	out.PodsReadyTimeout = ptr.To(in.PodsReadyTimeout)
	out.RecoveryTimeout = ptr.To(in.RecoveryTimeout)
	out.CheckTimeout = ptr.To(in.CheckTimeout)
	out.ProvisioningTimeout = ptr.To(in.ProvisioningTimeout)
	out.ClaimAfter = ptr.To(in.ClaimAfter)
	out.ClaimTimeout = ptr.To(in.ClaimTimeout)
	out.ManagedJobsConfigMap = ptr.To(ObjectName(in.ManagedJobsConfigMap))
	out.Visibility = &Visibility{
		BindAddress: ptr.To(in.Visibility.BindAddress), Port: ptr.To(in.Visibility.Port),
		CertDir: ptr.To(in.Visibility.CertDir),
	}
	out.History = &History{
		Records: ptr.To(in.History.Records), Path: ptr.To(in.History.Path),
		MaxSizeMB: ptr.To(in.History.MaxSizeMB), MaxFiles: ptr.To(in.History.MaxFiles),
	}
	out.FeatureGates = maps.Clone(in.FeatureGates)
}
