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

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
)

// Quotas are all levels of the quota tree, by name.
func (r *Reader) Quotas(ctx context.Context, page namesPage) (*v1alpha1.QuotaList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.QuotaInfo], bool) {
		list, rest := v.Quotas(page.behind, page.limit)
		return some[questions.QuotaInfo]{list, rest}, true
	})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.QuotaList{Observation: a.observation(), Items: make([]v1alpha1.Quota, 0, len(a.value.list))}
	for i := range a.value.list {
		info := &a.value.list[i]
		out.Items = append(out.Items, v1alpha1.Quota{ObjectMeta: named("", info.Name), Status: quotaStatus(info)})
		out.ListMeta = page.meta(info.Name, a.value.rest)
	}
	return out, nil
}

// Quota is one level that exists or that units name.
func (r *Reader) Quota(ctx context.Context, name string) (*v1alpha1.Quota, error) {
	a, err := ask(ctx, r, func(v questions.View) (questions.QuotaInfo, bool) { return v.Quota(name) })
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("quotas", name)
	}
	return &v1alpha1.Quota{
		ObjectMeta: named("", name), Observation: a.observation(), Status: quotaStatus(&a.value),
	}, nil
}

// LocalQuotas are the quotas that units of a namespace use, by name.
func (r *Reader) LocalQuotas(ctx context.Context, namespace string, page namesPage) (*v1alpha1.LocalQuotaList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.QuotaInfo], bool) {
		list, rest := v.QuotasOf(namespace, page.behind, page.limit)
		return some[questions.QuotaInfo]{list, rest}, true
	})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.LocalQuotaList{
		Observation: a.observation(), Items: make([]v1alpha1.LocalQuota, 0, len(a.value.list)),
	}
	for i := range a.value.list {
		info := &a.value.list[i]
		out.Items = append(out.Items, v1alpha1.LocalQuota{
			ObjectMeta: named(namespace, info.Name), Status: quotaStatus(info),
		})
		out.ListMeta = page.meta(info.Name, a.value.rest)
	}
	return out, nil
}

// LocalQuota is one quota that units of a namespace use.
func (r *Reader) LocalQuota(ctx context.Context, namespace, name string) (*v1alpha1.LocalQuota, error) {
	a, err := ask(ctx, r, func(v questions.View) (questions.QuotaInfo, bool) {
		info, exists := v.Quota(name)
		return info, exists && v.UsesQuota(namespace, name)
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("localquotas", name)
	}
	return &v1alpha1.LocalQuota{
		ObjectMeta: named(namespace, name), Observation: a.observation(), Status: quotaStatus(&a.value),
	}, nil
}

func quotaStatus(info *questions.QuotaInfo) v1alpha1.QuotaStatus {
	return v1alpha1.QuotaStatus{
		Exists: info.Exists, Parent: info.Parent, Limit: amounts(info.Limit), Max: amounts(info.Max),
		Min: amounts(info.Min), Used: amounts(info.Used), Reserved: amounts(info.Reserved), Pending: amounts(info.Pending),
		Holding: count(info.Holding), Waiting: count(info.Waiting),
	}
}
