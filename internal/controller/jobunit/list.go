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

package jobunit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/choice"
)

// list reads the quotas in which the job may be admitted, of which its own is the first. Its pods have to get the label
// of each when the job is resumed. The errors are jobs.ErrQuotaMismatch.
func (d *Demand) list(plain *jobs.Job, ofNamespace string) error {
	names := choice.Split(plain.Object.GetAnnotations()[v1alpha1.AnnotationQuotaNames])
	if err := choice.Check(names); err != nil {
		return fmt.Errorf("%w: %s: %w", jobs.ErrQuotaMismatch, v1alpha1.AnnotationQuotaNames, err)
	}
	if len(names) > 0 && d.Own.quota == "" {
		d.Own.quota = names[0]
	}
	if len(names) > 0 && d.Own.quota != names[0] {
		return fmt.Errorf("%w: %s begins with %q, and the job names %q", jobs.ErrQuotaMismatch,
			v1alpha1.AnnotationQuotaNames, names[0], d.Own.quota)
	}
	d.quotas = names
	if err := plain.Chargeable(d.Own.quota, ofNamespace); err != nil || len(names) < 2 {
		return err
	}
	for _, name := range names[1:] {
		if err := plain.Chargeable(name, ofNamespace); err != nil {
			return err
		}
	}
	return nil
}

// fixList is for a job whose pods bear one quota label whatever is written into its templates. It has to list no other
// quota. Where only profiles tell, its unit says that it is admitted in no quota that its queue lists.
func (d *Demand) fixList(
	plain *jobs.Job, templates []*corev1.PodTemplateSpec, creation *podrequest.Creation,
) error {
	profiled := d.Quota != d.Own.quota || relabels(templates, creation)
	why := ""
	switch {
	case namesQuota(plain) != "":
		why = "a pod template names a quota"
	case profiled:
		why = "a ClusterColocationProfile names the quota of its pods"
	case !jobs.CanBeSuspended(plain):
		why = "pods of the job are there before it is admitted"
	}
	if why != "" && len(d.quotas) > 1 {
		return fmt.Errorf("%w: %s lists several quotas, and %s", jobs.ErrQuotaMismatch, v1alpha1.AnnotationQuotaNames, why)
	}
	if profiled && d.Quota != "" {
		d.quotas = []string{d.Quota}
	}
	return nil
}

// namesQuota is the quota that a pod template names; empty if none does.
func namesQuota(plain *jobs.Job) string {
	for _, labels := range plain.TemplateLabels() {
		if name := jobkind.FirstOf(labels, v1alpha1.QuotaLabels[:]...); name != "" {
			return name
		}
	}
	return ""
}

// relabels says that a profile gives pods another quota label than that of their template.
func relabels(templates []*corev1.PodTemplateSpec, creation *podrequest.Creation) bool {
	const tryOut = "any"
	return creation.HasProfiles() && slices.ContainsFunc(templates, func(template *corev1.PodTemplateSpec) bool {
		tried := template.DeepCopy()
		if tried.Labels == nil {
			tried.Labels = map[string]string{}
		}
		tried.Labels[v1alpha1.LabelQuotaName] = tryOut
		pod, err := creation.Pod(tried)
		return err == nil && pod.Labels[v1alpha1.LabelQuotaName] != tryOut
	})
}
