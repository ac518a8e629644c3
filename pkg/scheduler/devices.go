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
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	schedulingv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"github.com/koordinator-sh/koordinator/pkg/util/transformer"
)

// withoutMinorless removes entries of a Device that have no minor. DeviceShare v1.8.0 reads the minor of each entry at
// its start, and an entry without one ends the process. Koordinator calls withoutMinorless after its own transforms are
// set, and before a plugin starts an informer.
func withoutMinorless(factory *frameworkext.FrameworkExtenderFactory, _ frameworkruntime.Registry) error {
	devices := factory.KoordinatorSharedInformerFactory().Scheduling().V1alpha1().Devices().Informer()
	if err := devices.SetTransform(dropMinorless); err != nil {
		return fmt.Errorf("transform of devices: %w", err)
	}
	return nil
}

// dropMinorless is Koordinator's transform of a Device, without entries that have no minor.
func dropMinorless(obj any) (any, error) {
	obj, err := transformer.TransformDevice(obj)
	if err != nil {
		return obj, err
	}
	device, ok := obj.(*schedulingv1alpha1.Device)
	if gone, deleted := obj.(cache.DeletedFinalStateUnknown); deleted {
		device, ok = gone.Obj.(*schedulingv1alpha1.Device)
	}
	if !ok || device == nil {
		return obj, nil
	}
	before := len(device.Spec.Devices)
	device.Spec.Devices = slices.DeleteFunc(device.Spec.Devices, func(d schedulingv1alpha1.DeviceInfo) bool {
		return d.Minor == nil
	})
	if dropped := before - len(device.Spec.Devices); dropped > 0 {
		klog.Background().Info("Device has entries without minor, which are left out", "device", klog.KObj(device),
			"entries", dropped)
	}
	return obj, nil
}
