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

package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
)

// remindEvery so many looks the line is printed again.
const remindEvery = 6

// neededAPIs must be served before anything can be watched; the value says how to get it.
func neededAPIs() (needed []schema.GroupVersionResource, remedies map[schema.GroupVersionResource]string) {
	quotas := elasticquota.Kind.GroupVersion().WithResource("elasticquotas")
	needed = []schema.GroupVersionResource{v1alpha1.QueueUnitResource, v1alpha1.QueueResource, quotas}
	return needed, map[schema.GroupVersionResource]string{
		v1alpha1.QueueUnitResource: "kubectl apply -k manifests/base/crd",
		v1alpha1.QueueResource:     "kubectl apply -k manifests/base/crd",
		quotas:                     "install Koordinator",
	}
}

// waitForAPIs returns once all are served, or with the context's error. One line names the missing ones.
func waitForAPIs(ctx context.Context, index *served.Index) error {
	last := ""
	for n := 0; ; n++ {
		next := index.Next()
		text := missingAPIs(index)
		if text == "" {
			return nil
		}
		if text != last || n%remindEvery == 0 {
			klog.FromContext(ctx).Info("Waiting for what is missing", "missing", text)
			last = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}

// missingAPIs says which of them are missing; empty if none is.
func missingAPIs(index *served.Index) string {
	needed, remedies := neededAPIs()
	missing, err := index.Missing(needed...)
	if err != nil {
		return err.Error()
	}
	texts := make([]string, len(missing))
	for i, gvr := range missing {
		texts[i] = fmt.Sprintf("CRD %s of %s (%s)", gvr.Resource, gvr.GroupVersion(), remedies[gvr])
	}
	return strings.Join(texts, "; ")
}
