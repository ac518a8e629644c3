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

package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"
	koordfake "github.com/koordinator-sh/koordinator/pkg/client/clientset/versioned/fake"
	koordinformers "github.com/koordinator-sh/koordinator/pkg/client/informers/externalversions"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
)

func device(minors ...*int32) *schedulingv1alpha1.Device {
	d := &schedulingv1alpha1.Device{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	for _, minor := range minors {
		d.Spec.Devices = append(d.Spec.Devices, schedulingv1alpha1.DeviceInfo{
			Type: schedulingv1alpha1.GPU, UUID: "u", Minor: minor, Health: true,
		})
	}
	return d
}

func minorsOf(t *testing.T, obj any) (minors []int32) {
	d, ok := obj.(*schedulingv1alpha1.Device)
	require.True(t, ok, "%T", obj)
	for i := range d.Spec.Devices {
		minors = append(minors, *d.Spec.Devices[i].Minor)
	}
	return minors
}

// The cache of DeviceShare takes each entry's minor without a look whether there is one.
func TestDeviceShareSeesNoEntryWithoutMinor(t *testing.T) {
	client := koordfake.NewSimpleClientset( //nolint:staticcheck // Koordinator generates no apply configurations
		device(ptr.To[int32](0), nil, ptr.To[int32](2)))
	devices := koordinformers.NewSharedInformerFactory(client, 0)
	factory, err := frameworkext.NewFrameworkExtenderFactory(
		frameworkext.WithKoordinatorClientSet(client),
		frameworkext.WithKoordinatorSharedInformerFactory(devices),
	)
	require.NoError(t, err)
	require.NoError(t, withoutMinorless(factory, nil))
	informer := devices.Scheduling().V1alpha1().Devices().Informer()
	devices.Start(t.Context().Done())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	stored, found, err := informer.GetStore().GetByKey("node")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []int32{0, 2}, minorsOf(t, stored))
}

func TestEntriesWithoutMinorAreDroppedFromWhatIsDeletedToo(t *testing.T) {
	out, err := dropMinorless(cache.DeletedFinalStateUnknown{Key: "node", Obj: device(nil, ptr.To[int32](1))})
	require.NoError(t, err)
	gone, ok := out.(cache.DeletedFinalStateUnknown)
	require.True(t, ok)
	require.Equal(t, []int32{1}, minorsOf(t, gone.Obj))
	out, err = dropMinorless("anything else")
	require.NoError(t, err)
	require.Equal(t, "anything else", out)
}
