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

package served

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reading is what Listable needs of a manager.
type Reading interface {
	GetRESTMapper() meta.RESTMapper
	GetAPIReader() client.Reader
}

// Listable returns nil if the API server serves a kind and lets this process list it. One of the versions is enough, or
// any if none is named.
func Listable(ctx context.Context, mgr Reading, kind schema.GroupKind, versions ...string) error {
	mapping, err := mgr.GetRESTMapper().RESTMapping(kind, versions...)
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	return mgr.GetAPIReader().List(ctx, list, client.Limit(1))
}
