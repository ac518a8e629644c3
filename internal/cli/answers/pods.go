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

package answers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// mostPods is how many pods are read to find those that no unit accounts for, mostOwners how many owners of one are.
const (
	mostPods   = 4 * page
	mostOwners = 6
)

// onNode selects pods that are on a node and have not ended.
var onNode = fields.ParseSelectorOrDie("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")

// OtherPods names up to most pods of a namespace that use a quota and belong to no admitted unit. more is the number of
// further such pods among those that were read.
func OtherPods(
	ctx context.Context, r *Reader, namespace, quota string, most int,
) (names []string, more int, err error) {
	units, err := r.Units(ctx, namespace)
	if err != nil {
		return nil, 0, err
	}
	f := podFinder{objects: r.Objects, namespace: namespace, units: map[string]bool{}, jobs: map[types.UID]bool{}}
	for i := range units {
		if len(units[i].Status.Admissions) == 0 {
			continue
		}
		f.units[namespace+"/"+units[i].Name] = true
		if ref := units[i].Spec.ConsumerRef; ref != nil && ref.UID != "" {
			f.jobs[ref.UID] = true
		}
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for read := 0; read < mostPods; read += page {
		if err := r.Objects.List(ctx, list, client.InNamespace(namespace), client.Limit(page),
			client.Continue(list.Continue), client.MatchingLabels{v1alpha1.LabelQuotaName: quota},
			client.MatchingFieldsSelector{Selector: onNode}); err != nil {
			return nil, 0, err
		}
		for i := range list.Items {
			switch pod := &list.Items[i]; {
			case f.counts(ctx, pod):
			case len(names) < most:
				names = append(names, pod.Name)
			default:
				more++
			}
		}
		if list.Continue == "" {
			break
		}
	}
	return names, more, nil
}

// podFinder knows the admitted units of a namespace, and of which objects it was asked whether one accounts for them.
type podFinder struct {
	objects   client.Reader
	namespace string
	units     map[string]bool
	jobs      map[types.UID]bool
}

// counts says whether an admitted unit accounts for an object. An owner that cannot be read is of no unit.
func (f *podFinder) counts(ctx context.Context, object *metav1.PartialObjectMetadata) (yes bool) {
	var passed []types.UID
	for range mostOwners {
		owner := metav1.GetControllerOfNoCopy(object)
		if yes = f.units[object.Annotations[v1alpha1.AnnotationRelatedQueueUnit]]; yes || owner == nil {
			break
		}
		known, asked := f.jobs[owner.UID]
		if yes = known; asked {
			break
		}
		passed = append(passed, owner.UID)
		object = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind}}
		key := types.NamespacedName{Namespace: f.namespace, Name: owner.Name}
		if f.objects.Get(ctx, key, object) != nil || object.UID != owner.UID {
			break
		}
	}
	for _, uid := range passed {
		f.jobs[uid] = yes
	}
	return yes
}
