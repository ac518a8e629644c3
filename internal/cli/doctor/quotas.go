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
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
)

func (i *Installation) quotas() (f []Finding) {
	f = i.withheld()
	names := sets.New("", "koordinator-root-quota")
	for n := range i.Quotas {
		names.Insert(i.Quotas[n].GetName())
	}
	for n := range i.Quotas {
		q := &i.Quotas[n]
		if parent := q.GetLabels()[v1alpha1.LabelQuotaParent]; !names.Has(parent) {
			f = append(f, Finding{Error, "QuotaParentMissing",
				fmt.Sprintf("ElasticQuota %s names parent %q, which does not exist: its jobs wait.", q.GetName(), parent),
				"Create the parent, or correct the label " + v1alpha1.LabelQuotaParent + "."})
		}
		if pods, named, _ := unstructured.NestedFieldNoCopy(q.Object, "spec", "max", "pods"); named {
			f = append(f, Finding{Warning, "QuotaPodsNotCounted", fmt.Sprintf("ElasticQuota %s has pods: %v in max. "+
				"Koordinator "+
				"counts what containers request, and no pods.", q.GetName(), pods),
				"Bound jobs with the annotation " + v1alpha1.AnnotationMaxJobs + ", or pods with a ResourceQuota."})
		}
		f = append(f, ignoredKeys(formerkey.Quota, q.GetNamespace()+"/"+q.GetName(), q)...)
	}
	return f
}

// withheld finds quotas that the scheduler keeps from Koordinator.
func (i *Installation) withheld() (f []Finding) {
	quotas := make([]ancestry.Named, 0, len(i.Quotas))
	for n := range i.Quotas {
		q := &i.Quotas[n]
		quotas = append(quotas, ancestry.Named{
			Key:    types.NamespacedName{Namespace: q.GetNamespace(), Name: q.GetName()},
			Parent: cmp.Or(q.GetLabels()[v1alpha1.LabelQuotaParent], ancestry.Root), Created: q.GetCreationTimestamp().Unix(),
		})
	}
	withheld := ancestry.Withheld(quotas)
	for _, q := range quotas {
		switch reason := withheld[q.Key]; reason {
		case ancestry.OwnAncestor:
			f = append(f, Finding{Error, string(reason), fmt.Sprintf("ElasticQuota %s with parent %q is its own ancestor: it "+
				"and all quotas below it have no effect, and their jobs wait.", q.Key, q.Parent),
				"Correct the label " + v1alpha1.LabelQuotaParent + " of one quota on the way."})
		case ancestry.NameTaken:
			f = append(f, Finding{Error, string(reason), fmt.Sprintf("ElasticQuota %s has no effect: an older one in another "+
				"namespace has its name.", q.Key), "Give it another name. Names of quotas are unique in the cluster."})
		case ancestry.BelowOwnAncestor: // told by its ancestor
		}
	}
	return f
}
