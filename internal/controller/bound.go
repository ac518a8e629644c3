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

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobpods"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// bound says whether pods of a job are on nodes. A group says it itself.
func (o *observer) bound(ctx context.Context, job *jobs.Job) (jobplan.Bound, error) {
	if !o.kind.OfPods() {
		return jobpods.Bound(ctx, o.live, o.kind, job)
	}
	now := newObject(o.kind.GVK)
	switch err := o.liveJobs.Get(ctx, client.ObjectKeyFromObject(job.Object), now); {
	case client.IgnoreNotFound(err) != nil:
		return jobplan.BoundUnknown, err
	case err == nil && jobs.Open(o.kind, now).Started():
		return jobplan.BoundSome, nil
	default:
		return jobplan.BoundNone, nil
	}
}
