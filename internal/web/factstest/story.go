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

package factstest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

// Story implements facts.Source.
func (p *Person) Story(_ context.Context, namespace, name string) (*screen.Story, error) {
	story, err := ask(p, namespace, "queueunits", func() *screen.Story {
		for i, u := range p.waiting {
			if u.Namespace == namespace && u.Name == name {
				return p.waits(i)
			}
		}
		for _, u := range p.admitted {
			if u.Namespace == namespace && u.Name == name {
				return &screen.Story{Unit: u.DeepCopy()}
			}
		}
		return nil
	})
	if err == nil && story == nil {
		return nil, apierrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource("queueunits").GroupResource(), name)
	}
	return story, err
}

// waits is the story of a unit of the line: its quota lends, and is short of GPUs.
func (p *Person) waits(at int) *screen.Story {
	u := p.waiting[at]
	s := &screen.Story{Unit: u.DeepCopy(), Live: &visibility.Unit{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name},
		Status: visibility.UnitStatus{
			Phase: string(u.Status.Phase), Queue: "work", Quota: u.Namespace, Position: count(at + 1),
			Waiting: count(len(p.waiting)), Reason: "QuotaExceeded", Message: u.Status.Conditions[0].Message,
			Requested: resources("4", "1"),
		},
	}}
	for i := range min(at, 5) {
		s.Ahead = append(s.Ahead, p.place(i))
	}
	s.MoreAhead = int64(at - len(s.Ahead))
	s.Forecast = &visibility.Forecast{Status: forecast()}
	for _, q := range p.quotas {
		if q.Name == u.Namespace {
			local := visibility.LocalQuota(q)
			s.Quota = &local
		}
	}
	const gpu = "nvidia.com/gpu"
	live := &s.Live.Status
	live.Shortages = []visibility.Shortage{{
		Level: u.Namespace, Resource: gpu, Bound: "runtime", Binds: true, Limit: resource.MustParse("12"),
		Used: resource.MustParse("12"), UsedByJobs: resource.MustParse("12"), Request: resource.MustParse("1"),
		Missing: resource.MustParse("1"),
	}}
	live.Holders = &visibility.Holders{Level: u.Namespace, Resource: gpu}
	for _, a := range p.admitted {
		if held, has := a.Status.Admissions[0].Resources[gpu]; has && a.Namespace == u.Namespace {
			live.Holders.Units = append(live.Holders.Units, visibility.Holder{
				Namespace: a.Namespace, Name: a.Name, Job: a.Spec.ConsumerRef.Name, Quota: a.Namespace,
				Since: a.Status.LastAllocateTime, Held: held,
			})
		}
	}
	return s
}
