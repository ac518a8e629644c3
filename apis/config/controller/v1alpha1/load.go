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
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Load reads the YAML of a configuration file strictly: an unknown or repeated field is an error that names it.
// The result is defaulted and valid.
func Load(data []byte) (*ControllerConfiguration, error) {
	c := &ControllerConfiguration{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, err
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return nil, fmt.Errorf("want apiVersion %s, kind %s; have apiVersion %q, kind %q",
			APIVersion, Kind, c.APIVersion, c.Kind)
	}
	SetDefaults(c)
	return c, Validate(c).ToAggregate()
}

// Default is the configuration without a file.
func Default() *ControllerConfiguration {
	c := &ControllerConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}}
	SetDefaults(c)
	return c
}

// SetDefaults fills in what is absent.
func SetDefaults(c *ControllerConfiguration) {
	orDefault(&c.ClientConnection.QPS, 500)
	orDefault(&c.ClientConnection.Burst, 1000)
	orDefault(&c.MetricsBindAddress, ":8443")
	orDefault(&c.HealthProbeBindAddress, ":8081")
	orDefault(&c.QueueNamespace, "koord-queue")
	orDefault(&c.Concurrency, 16)
	orDefault(&c.ReportsPerSecond, 20)
	orDefault(&c.EventsPerSecond, 10)
	orDefault(&c.QuotaTrees.Namespace, "kube-system")
	orDefault(&c.UnitTemplates, UnitTemplatesScheduling)
	orDefault(&c.DefaultReclaim, v1alpha1.PreemptAny)
	orDefault(&c.VisibilitySecret, "koordinator-system/koord-jobqueue-visibility")
	yesUnlessSaid(&c.MetricsSecure)
	l := &c.LeaderElection
	yesUnlessSaid(&l.LeaderElect)
	orDefault(&l.ResourceNamespace, c.QueueNamespace)
	orDefault(&l.ResourceName, "jobqueue-controller")
	// As of the scheduler: a leader that cannot renew its lease gives up before another one takes over
	// (docs/design/architecture.md).
	orDefault(&l.LeaseDuration.Duration, 20*time.Second)
	orDefault(&l.RenewDeadline.Duration, 6*time.Second)
	orDefault(&l.RetryPeriod.Duration, 2*time.Second)
}

func yesUnlessSaid(value **bool) {
	if *value == nil {
		yes := true
		*value = &yes
	}
}

func orDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Validate returns what is wrong with a defaulted configuration, each with its field.
func Validate(c *ControllerConfiguration) field.ErrorList {
	var errs field.ErrorList
	positive := func(ok bool, path *field.Path, value any) {
		if !ok {
			errs = append(errs, field.Invalid(path, value, "must be greater than zero"))
		}
	}
	connection := field.NewPath("clientConnection")
	positive(c.ClientConnection.QPS > 0, connection.Child("qps"), c.ClientConnection.QPS)
	positive(c.ClientConnection.Burst > 0, connection.Child("burst"), c.ClientConnection.Burst)
	positive(c.Concurrency > 0, field.NewPath("concurrency"), c.Concurrency)
	positive(c.ReportsPerSecond > 0, field.NewPath("reportsPerSecond"), c.ReportsPerSecond)
	positive(c.EventsPerSecond > 0, field.NewPath("eventsPerSecond"), c.EventsPerSecond)
	if ttl := c.FinishedUnitsTTL.Duration; ttl < 0 {
		errs = append(errs, field.Invalid(field.NewPath("finishedUnitsTTL"), ttl.String(), "must not be negative"))
	}
	for _, problem := range utilvalidation.IsDNS1123Label(c.QueueNamespace) {
		errs = append(errs, field.Invalid(field.NewPath("queueNamespace"), c.QueueNamespace, problem))
	}
	for _, problem := range utilvalidation.IsDNS1123Label(c.QuotaTrees.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("quotaTrees", "namespace"), c.QuotaTrees.Namespace, problem))
	}
	namespace, name, found := strings.Cut(c.VisibilitySecret, "/")
	if !found || len(utilvalidation.IsDNS1123Label(namespace)) > 0 || len(utilvalidation.IsDNS1123Subdomain(name)) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("visibilitySecret"), c.VisibilitySecret, "want namespace/name"))
	}
	if c.MetricsCertDir != "" && !*c.MetricsSecure {
		errs = append(errs, field.Invalid(field.NewPath("metricsCertDir"), c.MetricsCertDir, "needs metricsSecure"))
	}
	errs = append(errs, oneOf("unitTemplates", c.UnitTemplates, UnitTemplatesFull, UnitTemplatesScheduling)...)
	errs = append(errs, oneOf("defaultReclaim", c.DefaultReclaim,
		v1alpha1.PreemptNever, v1alpha1.PreemptLowerPriority, v1alpha1.PreemptAny)...)
	election := field.NewPath("leaderElection")
	l := c.LeaderElection
	positive(l.RetryPeriod.Duration > 0, election.Child("retryPeriod"), l.RetryPeriod.Duration.String())
	if l.RenewDeadline.Duration <= l.RetryPeriod.Duration {
		errs = append(errs, field.Invalid(election.Child("renewDeadline"), l.RenewDeadline.Duration.String(),
			"must be longer than retryPeriod"))
	}
	if l.LeaseDuration.Duration <= l.RenewDeadline.Duration {
		errs = append(errs, field.Invalid(election.Child("leaseDuration"), l.LeaseDuration.Duration.String(),
			"must be longer than renewDeadline"))
	}
	return errs
}

// oneOf returns an error if a field has none of the values.
func oneOf[T ~string](name string, value T, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath(name), value, values)}
}
