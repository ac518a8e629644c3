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

package doctor

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/priority"
)

// The policies of tenancy look at objects that name a quota, and at all objects of namespaces with a label. The
// controller tells them in which other namespaces jobs are queued, for jobs and their templates. Pods that name no
// quota are looked at with the label alone.

// namespaces reads which namespaces lack it, and whether one allows a priority. The quotas have been read.
func (r *reader) namespaces() {
	i, predicate := r.into, r.predicate()
	r.each("namespaces", &corev1.NamespaceList{}, "", func(namespace client.Object) {
		name, labels := namespace.GetName(), namespace.GetLabels()
		i.PrioritiesAllowed = i.PrioritiesAllowed || priority.BoundOf(namespace.GetAnnotations()) != nil
		if predicate != nil && labels[v1alpha1.LabelManaged] != "true" &&
			managedjobs.QueuesUnnamed(predicate, name, labels, i.takes(name)) {
			i.Unlabelled = append(i.Unlabelled, name)
		}
	})
}

// predicate says which jobs are managed; nil if that cannot be read, as Examine says.
func (r *reader) predicate() *managedjobs.Predicate {
	if r.into.ManagedJobs == nil {
		return nil
	}
	m, err := managedjobs.From(r.into.ManagedJobs.Data)
	if err != nil {
		return nil
	}
	predicate, err := managedjobs.NewPredicate(m)
	if err != nil {
		return nil
	}
	return predicate
}

// takes says whether Koordinator charges pods of the namespace to a quota without a label.
func (i *Installation) takes(namespace string) bool {
	for n := range i.Quotas {
		quota := &i.Quotas[n]
		var listed []string
		err := json.Unmarshal([]byte(quota.GetAnnotations()[extension.AnnotationQuotaNamespaces]), &listed)
		own := quota.GetName() == namespace && quota.GetNamespace() == namespace
		if own || err == nil && slices.Contains(listed, namespace) {
			return true
		}
	}
	return false
}

// mostNamed bounds how many namespaces a finding names.
const mostNamed = 10

// unboundedNamespaces are those whose jobs no policy bounds.
func (i *Installation) unboundedNamespaces() []Finding {
	if len(i.Unlabelled) == 0 {
		return nil
	}
	return []Finding{{Warning, "NamespaceNotLabelled", fmt.Sprintf("Jobs of these namespaces are queued without a label, "+
		"and the policies of tenancy do not look at pods there that name no quota: %s.", named(i.Unlabelled)),
		"kubectl label namespace NAME " + v1alpha1.LabelManaged + "=true"}}
}
