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

package sim

import (
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/transport"
)

// dynamicClient has the methods of a dynamic client that the engine uses: lists, reads and patches. Others panic.
type dynamicClient struct {
	process *process
	by      func() writer
}

// client is the engine's client of the simulated API, in normal requests and answers.
func (p *process) client(by func() writer) rest.Interface {
	client, err := objects.NewClient(transport.Config(&dynamicClient{process: p, by: by}))
	if err != nil {
		panic(err)
	}
	return client
}

// Resource of the simulated API.
func (c *dynamicClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &dynamicResource{client: c, kind: kind(gvr.Resource)}
}

type dynamicResource struct {
	dynamic.NamespaceableResourceInterface // nil: what is called beyond the methods below is missing here
	client                                 *dynamicClient
	kind                                   kind
	namespace                              string
}

var errNotServed = errors.New("sim: not served")

// Namespace restricts to one.
func (r *dynamicResource) Namespace(namespace string) dynamic.ResourceInterface {
	return &dynamicResource{client: r.client, kind: r.kind, namespace: namespace}
}

// Watch is not served: the engine is fed.
func (r *dynamicResource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errNotServed
}

// Get reads one object.
func (r *dynamicResource) Get(
	_ context.Context, name string, _ metav1.GetOptions, _ ...string,
) (*unstructured.Unstructured, error) {
	if err := r.client.process.read(); err != nil {
		return nil, err
	}
	o := r.client.process.world.api.get(r.kind, keyOf(r.namespace, name))
	if o == nil {
		return nil, apierrors.NewNotFound(r.kind.resource(), name)
	}
	r.client.process.got[o.key] = o.rv
	return o.u, nil
}

// List is consistent.
func (r *dynamicResource) List(_ context.Context, _ metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := r.client.process.read(); err != nil {
		return nil, err
	}
	a := r.client.process.world.api
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{}}}
	list.SetResourceVersion(strconv.FormatInt(a.version, 10))
	for _, o := range a.list(r.kind) {
		if r.namespace == "" || o.u.GetNamespace() == r.namespace {
			list.Items = append(list.Items, *o.u)
		}
	}
	return list, nil
}

// Patch of an object or of its status.
func (r *dynamicResource) Patch(
	ctx context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	if pt != types.MergePatchType {
		return nil, errNotServed
	}
	key := keyOf(r.namespace, name)
	data = r.client.process.world.variants.patch(r.client.process, r.kind, data)
	o, err := r.client.process.write(ctx, r.kind, key, func() (*object, error) {
		return r.client.process.world.api.patch(r.client.by(), r.kind, key, data, len(subresources) > 0)
	})
	if err != nil {
		return nil, err
	}
	return o.u, nil
}
