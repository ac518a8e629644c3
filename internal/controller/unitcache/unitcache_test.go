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

package unitcache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestALargeUnitIsNotKept(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, enlarge := range map[string]func(u *v1alpha1.QueueUnit){
		"template": func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets = []v1alpha1.PodSet{{Template: runtime.RawExtension{Raw: []byte(`"` + large + `"`)}}}
		},
		"template that is no JSON": func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets = []v1alpha1.PodSet{{Template: runtime.RawExtension{Raw: []byte(large)}}}
		},
		"annotation": func(u *v1alpha1.QueueUnit) { u.Annotations = map[string]string{"a": large} },
		"path":       func(u *v1alpha1.QueueUnit) { u.Annotations = map[string]string{v1alpha1.QueuePathKey: large} },
		"name of its job": func(u *v1alpha1.QueueUnit) {
			u.Spec.ConsumerRef = &corev1.ObjectReference{Name: large}
		},
		"many resources": func(u *v1alpha1.QueueUnit) {
			u.Spec.Request = corev1.ResourceList{}
			for i := range 1000 {
				u.Spec.Request[corev1.ResourceName(fmt.Sprintf("example.com/%d", i))] = resource.MustParse("1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			unit := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "u"}}
			enlarge(unit)
			kept, err := Transform()(unit)
			require.NoError(t, err)
			again, err := Transform()(kept)
			require.NoError(t, err)
			stub := again.(*v1alpha1.QueueUnit)
			require.True(t, isStub(stub), "what the informer hands in once more stays what it is")
			require.Equal(t, "j", stub.Name)
			require.Empty(t, stub.Spec.PodSets)
			require.Empty(t, stub.Annotations)
			require.Empty(t, stub.Spec.Request)
			if ref := stub.Spec.ConsumerRef; ref != nil {
				require.Less(t, len(ref.Name), 1024)
			}
		})
	}
}

// Its job is looked at when a quota on its path changes.
func TestALargeUnitKeepsItsPath(t *testing.T) {
	unit := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"a": strings.Repeat("x", 1<<20), v1alpha1.QueuePathKey: "root.a",
	}}}
	kept, err := Transform()(unit)
	require.NoError(t, err)
	require.Equal(t, map[string]string{v1alpha1.QueuePathKey: "root.a"}, kept.(*v1alpha1.QueueUnit).Annotations)
}

// A manager with the name of the mark does not make a unit count as one that is not kept.
func TestNobodyForgesAUnitThatIsNotKept(t *testing.T) {
	forged := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: "j", Annotations: map[string]string{"a": "b"}}}
	forged.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: notKept, Operation: metav1.ManagedFieldsOperationUpdate}}
	kept, err := Transform()(forged)
	require.NoError(t, err)
	require.False(t, isStub(kept.(*v1alpha1.QueueUnit)))
}
