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
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// visibilityAPI is the path of the aggregated API.
const visibilityAPI = "/apis/visibility.koord-queue.x-k8s.io/v1alpha1"

// visibilityName is that of Service and Secret of the aggregated API.
const visibilityName = "koord-jobqueue-visibility"

// ShippedVisibilityPort is that of the manifests.
const ShippedVisibilityPort = 10261

// VisibilityPort returns a free port for SchedulerOptions.VisibilityPort and InstallVisibility.
func VisibilityPort() (int, error) { return allPorts.next() }

// LoopbackURL is that of a port on this machine that is served with TLS.
func LoopbackURL(port int) string { return "https://" + hostPort(port) }

// InstallAPIService applies the APIService of manifests/overlays/fresh, for schedulers that RunDeployments runs.
func (c *ControlPlane) InstallAPIService(ctx context.Context) error {
	objects, err := visibilityObjects(func(kind, _ string) bool { return kind == "APIService" })
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, objects...)
}

// visibilityObjects are those of manifests/overlays/fresh by kind and name.
func visibilityObjects(wanted func(kind, name string) bool) ([]*unstructured.Unstructured, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	content, err := BuildKustomize(filepath.Join(root, "manifests", "overlays", "fresh"))
	if err != nil {
		return nil, err
	}
	installed, err := decode(content)
	return slices.DeleteFunc(installed, func(o *unstructured.Unstructured) bool {
		return !wanted(o.GetKind(), o.GetName())
	}), err
}

// InstallVisibility applies APIService, Service and Secret of manifests/overlays/fresh, changed so that the API server
// finds a scheduler on this machine: the Service is a name for localhost, since endpoints must not be
// loopback addresses. With verify the certificate is verified by the caBundle that the controller writes, and the
// scheduler needs MountVisibilityCertificate; else it is not verified, and InstallVisibility returns when the API
// answers.
func (c *ControlPlane) InstallVisibility(ctx context.Context, port int, verify bool) error {
	objects, err := visibilityObjects(func(kind, name string) bool {
		return kind == "APIService" || name == visibilityName && (kind == "Service" || kind == "Secret")
	})
	if err != nil {
		return err
	}
	if len(objects) < 3 {
		return errors.New("the installation does not have the aggregated API")
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Service":
			o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "APIService":
			spec := section(o.Object, "spec")
			section(spec, "service")["port"] = int64(port)
			if !verify {
				spec["insecureSkipTLSVerify"] = true
				o.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": "nobody"}) // the controller leaves it alone
			}
		}
	}
	if err := c.ApplyObjects(ctx, objects...); err != nil || verify {
		return err
	}
	return c.AwaitVisibility(ctx)
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

// MountVisibilityCertificate is the kubelet, which mounts the Secret of the certificate: it writes the files into a
// directory until ctx ends. It returns when they are there for the first time.
func (c *ControlPlane) MountVisibilityCertificate(ctx context.Context, dir string) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig(Admin))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var last error
	mount := func(ctx context.Context) (bool, error) {
		last = mountCertificate(ctx, client, dir)
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, readyTimeout, true, mount); err != nil {
		return fmt.Errorf("no certificate of the aggregated API: %w", errors.Join(err, last))
	}
	go wait.UntilWithContext(ctx, func(ctx context.Context) { _ = mountCertificate(ctx, client, dir) }, time.Second)
	return nil
}

func mountCertificate(ctx context.Context, client kubernetes.Interface, dir string) error {
	secret, err := client.CoreV1().Secrets("koordinator-system").Get(ctx, visibilityName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(secret.Data["tls.key"]) == 0 {
		return errors.New("the controller has written none")
	}
	for _, name := range []string{"tls.key", "tls.crt"} {
		file := filepath.Join(dir, name)
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, secret.Data[name]) {
			continue // somebody may be reading it
		}
		if err := os.WriteFile(file, secret.Data[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}
