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

// Package pathfinder finds the quotas of jobs by their paths, in the ElasticQuotas of the cluster.
package pathfinder

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

// Index finds units by the quotas on the path that gives them their quota, whether those exist or not.
const Index = "jobqueue/quotas-on-path"

// QuotasOnPath is what the index has of a unit.
func QuotasOnPath(unit client.Object) []string {
	elements, err := quotapath.Elements(unit.GetAnnotations()[v1alpha1.QueuePathKey])
	if err != nil {
		return nil
	}
	return elements[1:]
}

// Found is what became of the path of a job.
type Found struct {
	// Path of the job; empty if it has none, or none that can be read.
	Path string
	// Quota that the path leads to; empty if it leads to none that the job may have.
	Quota string
	// Wrong says why: jobs.ErrQuotaMismatch, quotapath.ErrMalformed or quotapath.ErrUnknown.
	Wrong error
}

// Find the quota of a job that names it by its path, or gets the path from its namespace. plain is the job as its
// owner wrote it, named what it names by labels of another system. quotas has the index of ElasticQuotas by name. The
// error is one of reading them.
func Find(
	ctx context.Context, quotas client.Reader, p *managedjobs.Predicate, plain *jobs.Job, named alias.Names,
	namespaceLabels map[string]string,
) (Found, error) {
	path, elements, wrong := pathOf(p, plain, named, namespaceLabels)
	if len(elements) == 0 {
		return Found{Wrong: wrong}, nil
	}
	tree, err := treeOf(ctx, quotas, elements[1:])
	if err != nil {
		return Found{}, err
	}
	quota, wrong := quotapath.Resolve(path, tree)
	if own, _ := plain.Quota(); quota != "" && own != "" && own != quota {
		quota, wrong = "", fmt.Errorf("%w: %q, and %q by the path %q", jobs.ErrQuotaMismatch, own, quota, path)
	}
	return Found{Path: path, Quota: quota, Wrong: wrong}, nil
}

// pathOf a job, with its elements; both are empty if it has none.
func pathOf(
	p *managedjobs.Predicate, plain *jobs.Job, named alias.Names, namespaceLabels map[string]string,
) (path string, elements []string, err error) {
	path, err = managedjobs.Path(p, plain, named, namespaceLabels)
	if path == "" || err != nil {
		return "", nil, err
	}
	elements, err = quotapath.Elements(path)
	return path, elements, err
}

func treeOf(ctx context.Context, quotas client.Reader, names []string) (quotapath.Tree, error) {
	tree := quotapath.Tree{}
	for _, name := range names {
		found, err := elasticquota.List(ctx, quotas, client.MatchingFields{elasticquota.NameIndex: name})
		if err != nil {
			return nil, err
		}
		for i := range found {
			tree[name] = append(tree[name], elasticquota.ParentOf(&found[i]))
		}
	}
	return tree, nil
}
