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

package quota

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"

	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// The number of jobs is our limit on a quota of Koordinator. It is an annotation, because Koordinator's webhook lets a
// quota name only those resources in max that its parent names too. In max it would have no effect: no pod asks for it,
// and nothing follows from a runtime that would be computed for it.

// noteMaxJobs takes the annotation of a quota; nil means that the quota is gone.
func (a *Adapter) noteMaxJobs(name string, spec *eqv1alpha1.ElasticQuota) {
	if spec == nil || spec.Annotations[v1alpha1.AnnotationMaxJobs] == "" {
		a.maxJobs.Delete(name)
		return
	}
	text := spec.Annotations[v1alpha1.AnnotationMaxJobs]
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		klog.Background().Info("Ignoring an annotation that is not a whole number", "elasticQuota", klog.KObj(spec),
			"annotation", v1alpha1.AnnotationMaxJobs, "value", text)
		a.maxJobs.Delete(name)
		return
	}
	a.maxJobs.Store(name, n)
}

// withMaxJobs adds the number of jobs to the limit of a level, the smaller one if annotation and max both say one.
func (a *Adapter) withMaxJobs(name string, limit resources.List, inMax *resource.Quantity) resources.List {
	most, limited := int64(0), false
	if inMax != nil {
		// Value would be meaningless for an amount that no int64 holds; toList saturates.
		most, _ = toList(corev1.ResourceList{resources.Jobs: *inMax}).Get(resources.Jobs)
		limited = true
	}
	if value, ok := a.maxJobs.Load(name); ok {
		if n, _ := value.(int64); !limited || n < most {
			most, limited = n, true
		}
	}
	if !limited {
		return limit
	}
	return limit.Add(resources.FromMap(map[string]int64{resources.Jobs: most}))
}

func sameMaxJobs(before, after *eqv1alpha1.ElasticQuota) bool {
	return before.Annotations[v1alpha1.AnnotationMaxJobs] == after.Annotations[v1alpha1.AnnotationMaxJobs]
}
