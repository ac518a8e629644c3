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
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// FieldManager is the field manager of everything that Apply writes.
const FieldManager = "jobqueue-controlplane"

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// BuildKustomize returns what the kustomization in dir holds, as `kubectl kustomize`.
func BuildKustomize(dir string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	content, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	return content, nil
}

// ApplyKustomize builds the kustomization in dir and applies what it holds, as `kubectl apply -k --server-side`. It
// leaves the APIService to StartInstalled: while nobody answers behind it, no namespace goes.
func (c *ControlPlane) ApplyKustomize(ctx context.Context, dir string) error {
	content, err := BuildKustomize(dir)
	if err != nil {
		return err
	}
	objects, err := decode(content)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "APIService" })
	return c.ApplyObjects(ctx, objects...)
}

// Apply applies all objects of a YAML stream on the server side, as Admin. Definitions and namespaces come first, and
// the others follow in order once the definitions are served.
func (c *ControlPlane) Apply(ctx context.Context, content []byte) error {
	objects, err := decode(content)
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, objects...)
}

// ApplyObjects is Apply for objects in memory.
func (c *ControlPlane) ApplyObjects(ctx context.Context, objects ...*unstructured.Unstructured) error {
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(x, y *unstructured.Unstructured) int { return applyRank(x) - applyRank(y) })
	for i, object := range sorted {
		if i > 0 && applyRank(object) > 0 && applyRank(sorted[i-1]) == 0 {
			if err := a.awaitEstablished(ctx, sorted[:i]); err != nil {
				return err
			}
		}
		if err := a.apply(ctx, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), objectName(object), err)
		}
	}
	if len(sorted) > 0 && applyRank(sorted[len(sorted)-1]) == 0 {
		return a.awaitEstablished(ctx, sorted)
	}
	return nil
}

// DeleteKustomize deletes what ApplyKustomize applies, as `kubectl delete -k --wait=false`: definitions come last.
func (c *ControlPlane) DeleteKustomize(ctx context.Context, dir string) error {
	content, err := BuildKustomize(dir)
	if err != nil {
		return err
	}
	objects, err := decode(content)
	if err != nil {
		return err
	}
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	slices.SortStableFunc(objects, func(x, y *unstructured.Unstructured) int { return applyRank(y) - applyRank(x) })
	for _, object := range objects {
		client, err := a.clientOf(ctx, object)
		if err != nil {
			return err
		}
		err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), objectName(object), err)
		}
	}
	return nil
}

func objectName(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// applyRank orders objects by their dependencies.
func applyRank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	default:
		return 2
	}
}

func decode(content []byte) ([]*unstructured.Unstructured, error) {
	const readAhead = 4096
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), readAhead)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decode object %d: %w", len(objects), err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (c *ControlPlane) newApplier() (*applier, error) {
	config := c.RESTConfig(Admin)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{
		client: client,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)),
	}, nil
}

const (
	applyInterval = 100 * time.Millisecond
	applyTimeout  = 30 * time.Second
)

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := a.clientOf(ctx, object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	// A definition that has just been established may not be served by every handler yet.
	return retry(ctx, apierrors.IsNotFound, func() error {
		_, err := client.Apply(ctx, object.GetName(), object, options)
		return err
	})
}

// clientOf is for objects of the kind and namespace of the object.
func (a *applier) clientOf(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := a.mapping(ctx, object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource), nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return a.client.Resource(mapping.Resource).Namespace(namespace), nil
}

func (a *applier) mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	var mapping *meta.RESTMapping
	err := retry(ctx, meta.IsNoMatchError, func() (err error) {
		mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			a.mapper.Reset()
		}
		return err
	})
	return mapping, err
}

// retry calls f until it returns no error, one that is not temporary, or the time is over.
func retry(ctx context.Context, temporary func(error) bool, f func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, applyInterval, applyTimeout, true, func(context.Context) (bool, error) {
		last = f()
		if last != nil && temporary(last) {
			return false, nil
		}
		return last == nil, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// awaitEstablished waits until the API server serves all definitions among objects.
func (a *applier) awaitEstablished(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if applyRank(object) != 0 {
			continue
		}
		name := object.GetName()
		err := wait.PollUntilContextTimeout(ctx, applyInterval, applyTimeout, true, func(ctx context.Context) (bool, error) {
			live, err := a.client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return established(live), nil
		})
		if err != nil {
			return fmt.Errorf("definition %s is not served: %w", name, err)
		}
	}
	a.mapper.Reset()
	return nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, condition := range conditions {
		fields, ok := condition.(map[string]any)
		if ok && fields["type"] == "Established" && fields["status"] == "True" {
			return true
		}
	}
	return false
}
