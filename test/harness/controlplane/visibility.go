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

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// visibilityAPI is the path of the aggregated API.
const visibilityAPI = "/apis/visibility.koord-queue.x-k8s.io/v1alpha1"

// ShippedVisibilityPort is that of the manifests.
const ShippedVisibilityPort = 10261

// loopbackURL is that of a port on this machine that is served with TLS.
func loopbackURL(port int) string { return "https://" + hostPort(port) }

// installAPIService applies the APIService of manifests/overlays/fresh.
func (c *ControlPlane) installAPIService(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	content, err := BuildKustomize(filepath.Join(root, "manifests", "overlays", "fresh"))
	if err != nil {
		return err
	}
	installed, err := decode(content)
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, slices.DeleteFunc(installed, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "APIService"
	})...)
}

// AwaitVisibility returns when the API server passes questions on.
func (c *ControlPlane) AwaitVisibility(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig(Admin))
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = client.RESTClient().Get().AbsPath(visibilityAPI, "queues").DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the visibility API does not answer: %w", errors.Join(err, last))
	}
	return nil
}
