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

package command

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// page is the greatest number of objects of one answer of the API server.
const page = 500

// fieldManager of what is applied.
const fieldManager = "jobqueue-migrate"

// read lists the objects of the source in the cluster.
func (o *options) read(ctx context.Context, out *finding.List) ([]document.Document, error) {
	client, mapper, err := o.clients()
	if err != nil {
		return nil, err
	}
	var set document.Set
	for _, kind := range o.source.Kinds {
		mapping, err := mapper.RESTMapping(kind.GroupKind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := list(ctx, client, mapping, kind, &set, out); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.GroupKind, err)
		}
	}
	return set.Documents, nil
}

func list(
	ctx context.Context, client dynamic.Interface, mapping *meta.RESTMapping, kind migrate.Kind,
	set *document.Set, out *finding.List,
) error {
	options := metav1.ListOptions{Limit: page}
	if kind.ObjectName != "" {
		options.FieldSelector = "metadata.name=" + kind.ObjectName
	}
	for {
		items, err := client.Resource(mapping.Resource).List(ctx, options)
		if err != nil {
			return err
		}
		room := true
		for i := range items.Items {
			room = set.Add(items.Items[i].Object, out)
		}
		if options.Continue = items.GetContinue(); options.Continue == "" || !room {
			return nil
		}
	}
}

// apply creates the objects, or changes the fields that an earlier run has set. It leaves fields of others alone.
func (o *options) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	client, mapper, err := o.clients()
	if err != nil {
		return err
	}
	if err := namesAreFree(ctx, client, mapper, objects); err != nil {
		return err
	}
	var failed []error
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err == nil {
			var to dynamic.ResourceInterface = client.Resource(mapping.Resource)
			if namespace := object.GetNamespace(); namespace != "" {
				to = client.Resource(mapping.Resource).Namespace(namespace)
			}
			_, err = to.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", gvk.Kind, object.GetName(), err))
			continue
		}
		fmt.Fprintf(o.streams.Out, "%s %s applied\n", gvk.Kind, object.GetName())
	}
	return errors.Join(failed...)
}

const quotaKind = "ElasticQuota"

// namesAreFree fails if another namespace has a quota with the name of one to apply. Names are unique in the cluster,
// and a right to use the one would be a right to use the other.
func namesAreFree(
	ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, objects []*unstructured.Unstructured,
) error {
	wanted := map[string]string{}
	for _, object := range objects {
		if object.GetKind() == quotaKind {
			wanted[object.GetName()] = object.GetNamespace()
		}
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "scheduling.sigs.k8s.io", Kind: quotaKind})
	if meta.IsNoMatchError(err) || len(wanted) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var taken []error
	options := metav1.ListOptions{Limit: page}
	for {
		quotas, err := client.Resource(mapping.Resource).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range quotas.Items {
			quota := &quotas.Items[i]
			if namespace, ok := wanted[quota.GetName()]; ok && namespace != quota.GetNamespace() {
				taken = append(taken, fmt.Errorf("nothing is applied: namespace %s has an %s %s; names are unique in the cluster",
					quota.GetNamespace(), quotaKind, quota.GetName()))
			}
		}
		if options.Continue = quotas.GetContinue(); options.Continue == "" {
			return errors.Join(taken...)
		}
	}
}

func (o *options) clients() (dynamic.Interface, meta.RESTMapper, error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	mapper, err := o.flags.ToRESTMapper()
	return client, mapper, err
}
