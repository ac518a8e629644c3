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

package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/quotapath"
)

// pathIndex finds units by the quotas on the path that gives them their quota, whether those exist or not.
const pathIndex = "jobqueue/quotas-on-path"

func quotasOnPath(unit client.Object) []string {
	elements, err := quotapath.Elements(unit.GetAnnotations()[v1alpha1.QueuePathKey])
	if err != nil {
		return nil
	}
	return elements[1:]
}

// followPath fills in the quota of a job that names it by its path, or gets the path from its namespace.
func (o *observer) followPath(
	ctx context.Context, s *jobplan.Situation, plain *jobs.Job, namespaceLabels map[string]string,
) error {
	s.Path, s.PathError = "", nil
	path, wrong := managedjobs.Path(o.options.Predicate, plain, s.Alias, namespaceLabels)
	if path == "" || wrong != nil {
		s.PathError = wrong
		return nil
	}
	elements, malformed := quotapath.Elements(path)
	if malformed != nil {
		s.PathError = malformed
		return nil
	}
	tree, err := o.tree(ctx, elements[1:])
	if err != nil {
		return err
	}
	s.Path = path
	quota, wrong := quotapath.Resolve(path, tree)
	if own, _ := plain.Quota(); wrong == nil && own != "" && own != quota {
		wrong = fmt.Errorf("%w: %q, and %q by the path %q", jobs.ErrQuotaMismatch, own, quota, path)
	}
	if s.PathError = wrong; wrong == nil {
		s.Alias.Quota = quota
	}
	return nil
}

// tree reads the part of the tree that has quotas of these names.
func (o *observer) tree(ctx context.Context, names []string) (quotapath.Tree, error) {
	tree := quotapath.Tree{}
	for _, name := range names {
		quotas, err := elasticquota.List(ctx, o.cache, client.MatchingFields{elasticquota.NameIndex: name})
		if err != nil {
			return nil, err
		}
		tree[name] = nil
		for i := range quotas {
			tree[name] = append(tree[name], elasticquota.ParentOf(&quotas[i]))
		}
	}
	return tree, nil
}
