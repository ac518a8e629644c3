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

package visibility

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/tables"
)

// lists serves one resource of which nothing is stored: it answers list.
type lists struct {
	singular      string
	namespaced    bool
	object, items runtime.Object // of the kinds of the answers
	list          func(context.Context, *internalversion.ListOptions) (runtime.Object, error)
	tables.Table
}

// storage answers get as well.
type storage struct {
	lists
	get func(ctx context.Context, namespace, name string) (runtime.Object, error)
}

var (
	_ rest.Storage              = &lists{}
	_ rest.Scoper               = &lists{}
	_ rest.SingularNameProvider = &lists{}
	_ rest.Lister               = &lists{}
	_ rest.Getter               = &storage{}
)

// New implements rest.Storage.
func (s *lists) New() runtime.Object { return s.object.DeepCopyObject() }

// NewList implements rest.Lister.
func (s *lists) NewList() runtime.Object { return s.items.DeepCopyObject() }

// Destroy implements rest.Storage.
func (s *lists) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (s *lists) NamespaceScoped() bool { return s.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (s *lists) GetSingularName() string { return s.singular }

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return s.get(ctx, request.NamespaceValue(ctx), name)
}

// List implements rest.Lister.
func (s *lists) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o == nil {
		o = &internalversion.ListOptions{}
	}
	return s.list(ctx, o)
}

// byName lists by name, in a namespace or without one. Nothing can be selected: a selector would have everything looked
// at.
func byName(
	namespaced bool, list func(ctx context.Context, namespace string, page namesPage) (runtime.Object, error),
) func(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
		if (o.LabelSelector != nil && !o.LabelSelector.Empty()) || (o.FieldSelector != nil && !o.FieldSelector.Empty()) {
			return nil, apierrors.NewBadRequest("selectors are not supported here")
		}
		namespace := request.NamespaceValue(ctx)
		if namespaced && namespace == "" {
			return nil, apierrors.NewBadRequest("name a namespace: there is no list over all of them")
		}
		page, err := pageOfNames(o.Limit, o.Continue)
		if err != nil {
			return nil, err
		}
		return list(ctx, namespace, page)
	}
}

// pages serves parts of a long list that belongs to a named object.
type pages struct {
	items runtime.Object
	get   func(ctx context.Context, namespace, name string, page placesPage) (runtime.Object, error)
}

var _ rest.GetterWithOptions = &pages{}

// New implements rest.Storage.
func (s *pages) New() runtime.Object { return s.items.DeepCopyObject() }

// Destroy implements rest.Storage.
func (s *pages) Destroy() {}

// NewGetOptions implements rest.GetterWithOptions.
func (s *pages) NewGetOptions() (options runtime.Object, subpath bool, subpathKey string) {
	return &v1alpha1.PageOptions{}, false, ""
}

// Get implements rest.GetterWithOptions.
func (s *pages) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	o, ok := options.(*v1alpha1.PageOptions)
	if !ok {
		o = &v1alpha1.PageOptions{}
	}
	page, err := pageOfPlaces(o)
	if err != nil {
		return nil, err
	}
	return s.get(ctx, request.NamespaceValue(ctx), name, page)
}

// single serves one more answer about a named object.
type single struct {
	object runtime.Object
	get    func(ctx context.Context, namespace, name string) (runtime.Object, error)
}

var _ rest.Getter = &single{}

// New implements rest.Storage.
func (s *single) New() runtime.Object { return s.object.DeepCopyObject() }

// Destroy implements rest.Storage.
func (s *single) Destroy() {}

// Get implements rest.Getter.
func (s *single) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return s.get(ctx, request.NamespaceValue(ctx), name)
}

// audits are read as other resources are. To create one has another made.
type audits struct {
	storage
	create func(context.Context) (runtime.Object, error)
}

var _ rest.Creater = &audits{} //nolint:misspell // so it is called

// Create has another audit made.
func (s *audits) Create(
	ctx context.Context, _ runtime.Object, _ rest.ValidateObjectFunc, o *metav1.CreateOptions,
) (runtime.Object, error) {
	if o != nil && len(o.DryRun) > 0 {
		return nil, apierrors.NewBadRequest("dryRun: there is nothing to try")
	}
	return s.create(ctx)
}
