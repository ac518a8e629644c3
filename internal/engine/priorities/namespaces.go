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

package priorities

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/priority"
)

// Handler tells what a namespace allows, nil for one that does not say, when that changes, and which namespace is gone.
func Handler(tell func(namespace string, most *int32), gone func(namespace string)) cache.ResourceEventHandler {
	changed := func(before, after any) {
		was, _ := before.(metav1.Object)
		is, _ := after.(metav1.Object)
		if former, now := boundOf(was), boundOf(is); !ptr.Equal(former, now) {
			if is == nil {
				is = was
			}
			tell(is.GetName(), now)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(nil, obj) },
		UpdateFunc: changed,
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			changed(obj, nil)
			if namespace, ok := obj.(metav1.Object); ok {
				gone(namespace.GetName())
			}
		},
	}
}

func boundOf(namespace metav1.Object) *int32 {
	if namespace == nil {
		return nil
	}
	return priority.BoundOf(namespace.GetAnnotations())
}
