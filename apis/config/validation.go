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

package config

import (
	"fmt"
	"math"
	"net"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Bounds of the numeric arguments.
const (
	// MaxWriteConcurrency bounds the workers that write status.
	MaxWriteConcurrency = 1000
	// MaxItemsInStatus keeps the status of a Queue far below the size limit of an object in etcd.
	MaxItemsInStatus = 1000
	// MaxReasonsPerSecond keeps reasons from being most of what an API server writes.
	MaxReasonsPerSecond = 1000
	// MaxHistoryRecords keeps the record of transitions below 640 MB of memory.
	MaxHistoryRecords = 1_000_000
	// MaxHistorySizeMB and MaxHistoryFiles bound what the record takes of a disk.
	MaxHistorySizeMB = 10_000
	MaxHistoryFiles  = 1000
	// MinAuditInterval keeps the lists of all units that an audit reads from being a load.
	MinAuditInterval = 10 * time.Second
)

// Validate returns every violation with the path of its field, nil if there is none. Whether the scheduler knows the
// policy depends on what it was built with, and is not asked here.
func (a *JobQueueArgs) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, namespaceName(path.Child("queueNamespace"), a.QueueNamespace)...)
	errs = append(errs, namespaceName(path.Child("managedJobsConfigMap", "namespace"),
		a.ManagedJobsConfigMap.Namespace)...)
	errs = append(errs, objectName(path.Child("managedJobsConfigMap", "name"), a.ManagedJobsConfigMap.Name)...)
	if !v1alpha1.QueuePolicy(a.DefaultQueuePolicy).WellFormed() {
		errs = append(errs, field.Invalid(path.Child("defaultQueuePolicy"), a.DefaultQueuePolicy,
			"is not the name of a policy"))
	}
	errs = append(errs, oneOf(path.Child("unknownJobs"), string(a.UnknownJobs), string(UnknownJobsGate),
		string(UnknownJobsPass))...)
	if !(a.ClientQPS > 0) || a.ClientQPS > math.MaxInt32 {
		errs = append(errs, field.Invalid(path.Child("clientQPS"), a.ClientQPS, "must be greater than zero"))
	}
	errs = append(errs, within(path.Child("clientBurst"), a.ClientBurst, 1, math.MaxInt32)...)
	errs = append(errs, within(path.Child("writeConcurrency"), a.WriteConcurrency, 1, MaxWriteConcurrency)...)
	errs = append(errs, within(path.Child("reasonsPerSecond"), a.ReasonsPerSecond, 1, MaxReasonsPerSecond)...)
	errs = append(errs, within(path.Child("itemsInStatus"), a.ItemsInStatus, 1, MaxItemsInStatus)...)
	errs = append(errs, a.Visibility.validate(path.Child("visibility"))...)
	errs = append(errs, a.History.validate(path.Child("history"))...)
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"statusRefreshInterval", a.StatusRefreshInterval.Duration, time.Second},
		{"explainAfter", a.ExplainAfter.Duration, time.Millisecond},
		{"explainEvery", a.ExplainEvery.Duration, time.Second},
		{"resyncInterval", a.ResyncInterval.Duration, time.Second},
		{"unknownJobsGracePeriod", a.UnknownJobsGracePeriod.Duration, 0},
	} {
		if d.value < d.least {
			errs = append(errs, field.Invalid(path.Child(d.name), d.value.String(), "must be at least "+d.least.String()))
		}
	}
	for name, d := range map[string]time.Duration{
		"unboundTimeout": a.UnboundTimeout.Duration, "idleReservationTimeout": a.IdleReservationTimeout.Duration,
		"podsReadyTimeout": a.PodsReadyTimeout.Duration, "recoveryTimeout": a.RecoveryTimeout.Duration,
		"checkTimeout": a.CheckTimeout.Duration, "claimTimeout": a.ClaimTimeout.Duration,
		"provisioningTimeout": a.ProvisioningTimeout.Duration, "claimAfter": a.ClaimAfter.Duration,
	} {
		if d != 0 && d < time.Second {
			errs = append(errs, field.Invalid(path.Child(name), d.String(), "must be at least 1s, or zero"))
		}
	}
	if d := a.AuditInterval.Duration; d != 0 && d < MinAuditInterval {
		errs = append(errs, field.Invalid(path.Child("auditInterval"), d.String(),
			"must be at least "+MinAuditInterval.String()+", or zero"))
	}
	return errs
}

func (v *Visibility) validate(path *field.Path) field.ErrorList {
	errs := within(path.Child("port"), v.Port, 0, math.MaxUint16)
	if net.ParseIP(v.BindAddress) == nil {
		errs = append(errs, field.Invalid(path.Child("bindAddress"), v.BindAddress, "must be an IP address"))
	}
	if v.CertDir != "" && !filepath.IsAbs(v.CertDir) {
		errs = append(errs, field.Invalid(path.Child("certDir"), v.CertDir, "must be an absolute path"))
	}
	return errs
}

func (h *History) validate(path *field.Path) field.ErrorList {
	errs := within(path.Child("records"), h.Records, 0, MaxHistoryRecords)
	errs = append(errs, within(path.Child("maxSizeMB"), h.MaxSizeMB, 1, MaxHistorySizeMB)...)
	errs = append(errs, within(path.Child("maxFiles"), h.MaxFiles, 2, MaxHistoryFiles)...)
	if h.Path != "" && !filepath.IsAbs(h.Path) {
		errs = append(errs, field.Invalid(path.Child("path"), h.Path, "must be an absolute path"))
	}
	return errs
}

func namespaceName(path *field.Path, value string) field.ErrorList {
	return named(path, value, validation.ValidateNamespaceName)
}

func objectName(path *field.Path, value string) field.ErrorList {
	return named(path, value, validation.NameIsDNSSubdomain)
}

func named(path *field.Path, value string, check validation.ValidateNameFunc) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range check(value, false) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

func oneOf(path *field.Path, value string, allowed ...string) field.ErrorList {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func within(path *field.Path, value, least, greatest int32) field.ErrorList {
	if value < least || value > greatest {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be between %d and %d", least, greatest))}
	}
	return nil
}
