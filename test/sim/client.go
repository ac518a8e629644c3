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
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// controllerClient is the client of the reconcilers: reads from the caches of their process, or from the API when live,
// and writes. Methods that are not implemented panic.
type controllerClient struct {
	client.Client // nil: what is called beyond the methods below is missing here
	process       *process
	caches        map[kind]*stream // nil: live
}

func (c *controllerClient) objects(k kind) (map[string]*object, error) {
	if c.caches == nil {
		if err := c.process.read(); err != nil {
			return nil, err
		}
		return c.process.world.api.objects[k], nil
	}
	if s := c.caches[k]; s != nil {
		return s.store, nil
	}
	return nil, nil
}

// kindOf is the kind of an object; empty if the simulated cluster does not have it.
func kindOf(o runtime.Object) kind {
	switch o := o.(type) {
	case *v1alpha1.QueueUnit:
		return units
	case *v1alpha1.Queue:
		return queues
	case *schedulingv1.PriorityClass, *schedulingv1.PriorityClassList:
		return classes
	case *unstructured.Unstructured:
		return byKind(o.GetKind())
	case *metav1.PartialObjectMetadata:
		return byKind(o.Kind)
	case *metav1.PartialObjectMetadataList:
		return byKind(o.Kind[:len(o.Kind)-len("List")])
	default:
		return ""
	}
}

func byKind(name string) kind {
	for k, gvk := range groupKinds {
		if gvk.Kind == name {
			return k
		}
	}
	panic("sim: no kind " + name)
}

// Get copies an object.
func (c *controllerClient) Get(
	_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption,
) error {
	k := kindOf(into)
	objects, err := c.objects(k)
	if err != nil {
		return err
	}
	o := objects[keyOf(key.Namespace, key.Name)]
	if o == nil {
		return apierrors.NewNotFound(k.resource(), key.Name)
	}
	copyTo(o, into)
	switch into := into.(type) {
	case *v1alpha1.QueueUnit:
		c.process.world.variants.read(into)
	case *unstructured.Unstructured:
		c.process.world.variants.readJob(into)
	}
	return nil
}

func copyTo(o *object, into client.Object) {
	switch into := into.(type) {
	case *v1alpha1.QueueUnit:
		unitOf(o).DeepCopyInto(into)
	case *v1alpha1.Queue:
		as[v1alpha1.Queue](o).DeepCopyInto(into)
	case *schedulingv1.PriorityClass:
		as[schedulingv1.PriorityClass](o).DeepCopyInto(into)
	case *unstructured.Unstructured:
		into.Object = runtime.DeepCopyJSON(o.u.Object)
	case *metav1.PartialObjectMetadata:
		*into = metadataOf(o)
	default:
		panic(fmt.Sprintf("sim: cannot read into %T", into))
	}
}

func metadataOf(o *object) metav1.PartialObjectMetadata {
	m := metav1.PartialObjectMetadata{
		ObjectMeta: *as[metav1.PartialObjectMetadata](&object{kind: o.kind, key: o.key, u: o.u}).ObjectMeta.DeepCopy(),
	}
	m.SetGroupVersionKind(o.u.GroupVersionKind())
	return m
}

// List answers what the reconcilers ask for; of kinds that the cluster does not have there is none.
func (c *controllerClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	k := kindOf(list)
	if k == "" {
		return nil
	}
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	objects, err := c.objects(k)
	if err != nil {
		return err
	}
	for _, item := range sorted(objects) {
		if !selected(item, &o) {
			continue
		}
		switch list := list.(type) {
		case *metav1.PartialObjectMetadataList:
			list.Items = append(list.Items, metadataOf(item))
		case *schedulingv1.PriorityClassList:
			list.Items = append(list.Items, *as[schedulingv1.PriorityClass](item).DeepCopy())
		default:
			panic(fmt.Sprintf("sim: cannot list into %T", list))
		}
	}
	return nil
}

// selected knows the field selectors that are used.
func selected(o *object, opts *client.ListOptions) bool {
	if opts.Namespace != "" && o.u.GetNamespace() != opts.Namespace {
		return false
	}
	if opts.LabelSelector != nil && !opts.LabelSelector.Matches(labels.Set(o.u.GetLabels())) {
		return false
	}
	if opts.FieldSelector == nil {
		return true
	}
	node, _, _ := unstructured.NestedString(o.u.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.u.Object, "status", "phase")
	for _, r := range opts.FieldSelector.Requirements() {
		value := map[string]string{"metadata.name": o.u.GetName(), "spec.nodeName": node, "status.phase": phase}[r.Field]
		if (value == r.Value) != (r.Operator == "=" || r.Operator == "==") {
			return false
		}
	}
	return true
}

func (c *controllerClient) by() writer {
	return writer{role: c.process.role, process: c.process.name}
}

// Create writes a new object.
func (c *controllerClient) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	k, u := kindOf(o), &unstructured.Unstructured{Object: fields}
	stored, err := c.process.write(ctx, k, keyOf(o.GetNamespace(), o.GetName()), func() (*object, error) {
		return c.process.world.api.create(c.by(), k, u)
	})
	if err != nil {
		return err
	}
	copyTo(stored, o)
	return nil
}

// Patch writes the difference.
func (c *controllerClient) Patch(
	ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption,
) error {
	return c.patch(ctx, o, patch, false)
}

func (c *controllerClient) patch(ctx context.Context, o client.Object, patch client.Patch, status bool) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	k, key := kindOf(o), keyOf(o.GetNamespace(), o.GetName())
	data = c.process.world.variants.patch(c.process, k, data)
	stored, err := c.process.write(ctx, k, key, func() (*object, error) {
		return c.process.world.api.patch(c.by(), k, key, data, status)
	})
	if err != nil {
		return err
	}
	copyTo(stored, o)
	return nil
}

// Delete removes an object, by UID and version where they are given.
func (c *controllerClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	options := client.DeleteOptions{}
	options.ApplyOptions(opts)
	if v := c.process.world.variants; v != nil && v.NoCollector {
		return nil
	}
	k, key := kindOf(o), keyOf(o.GetNamespace(), o.GetName())
	_, err := c.process.write(ctx, k, key, func() (*object, error) {
		p := ptr.Deref(options.Preconditions, metav1.Preconditions{})
		return nil, c.process.world.api.deleteAt(c.by(), k, key, ptr.Deref(p.UID, ""), ptr.Deref(p.ResourceVersion, ""))
	})
	return err
}

// Status writes the status alone.
func (c *controllerClient) Status() client.SubResourceWriter { return statusClient{c: c} }

type statusClient struct {
	client.SubResourceWriter // nil: what is called beyond the method below is missing here
	c                        *controllerClient
}

// Patch writes the difference of the status.
func (s statusClient) Patch(
	ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return s.c.patch(ctx, o, patch, true)
}

// silent takes the events that reconcilers record.
type silent struct{}

// Eventf drops an event.
func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
