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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller"
)

// pollEvery is how often a missing API is looked for; remindEvery polls the line is printed again.
const (
	pollEvery   = 2 * time.Second
	remindEvery = 15
)

// neededAPI is a resource that must be served before anything can be watched, and how to get it.
type neededAPI struct {
	groupVersion, resource, remedy string
}

func managedAPIs() []neededAPI {
	ours := v1alpha1.SchemeGroupVersion.String()
	return []neededAPI{
		{ours, v1alpha1.QueueUnitResource.Resource, "kubectl apply -k manifests/crd"},
		{ours, v1alpha1.QueueResource.Resource, "kubectl apply -k manifests/crd"},
		{controller.ElasticQuotaKind.GroupVersion().String(), "elasticquotas", "install Koordinator"},
	}
}

// waitForAPIs returns once all are served, or with the context's error. What is missing is said in one line.
func waitForAPIs(ctx context.Context, config *rest.Config, needed []neededAPI) error {
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	last := ""
	for n := 0; ; n++ {
		missing := missingAPIs(found, needed)
		if len(missing) == 0 {
			return nil
		}
		if text := strings.Join(missing, "; "); text != last || n%remindEvery == 0 {
			logger.Info("Waiting for what is missing", "missing", text)
			last = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// resourceFinder is the part of discovery that is needed.
type resourceFinder interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

func missingAPIs(found resourceFinder, needed []neededAPI) []string {
	var missing []string
	for _, api := range needed {
		list, err := found.ServerResourcesForGroupVersion(api.groupVersion)
		if err != nil && !apierrors.IsNotFound(err) {
			return []string{fmt.Sprintf("the API server does not answer: %v", err)}
		}
		served := false
		for i := 0; err == nil && i < len(list.APIResources); i++ {
			served = served || list.APIResources[i].Name == api.resource
		}
		if !served {
			missing = append(missing, fmt.Sprintf("CRD %s of %s (%s)", api.resource, api.groupVersion, api.remedy))
		}
	}
	return missing
}
