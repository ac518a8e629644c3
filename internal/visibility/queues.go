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
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// some is a part of a list, and how many follow.
type some[T any] struct {
	list []T
	rest int
}

// Queues are all queues that exist, by name.
func (r *Reader) Queues(ctx context.Context, page namesPage) (*v1alpha1.QueueList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.QueueInfo], bool) {
		list, rest := v.Queues(page.behind, page.limit)
		return some[questions.QueueInfo]{list, rest}, true
	})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.QueueList{Observation: a.observation(), Items: make([]v1alpha1.Queue, 0, len(a.value.list))}
	for i := range a.value.list {
		info := &a.value.list[i]
		out.Items = append(out.Items, v1alpha1.Queue{ObjectMeta: named("", info.Name), Status: queueStatus(info)})
		out.ListMeta = page.meta(info.Name, a.value.rest)
	}
	return out, nil
}

// Queue is one queue that exists or that units name.
func (r *Reader) Queue(ctx context.Context, name string) (*v1alpha1.Queue, error) {
	a, err := ask(ctx, r, func(v questions.View) (questions.QueueInfo, bool) { return v.Queue(name) })
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("queues", name)
	}
	return &v1alpha1.Queue{
		ObjectMeta: named("", name), Observation: a.observation(), Status: queueStatus(&a.value),
	}, nil
}

// LocalQueues are the queues that units of a namespace are in, by name.
func (r *Reader) LocalQueues(ctx context.Context, namespace string, page namesPage) (*v1alpha1.LocalQueueList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.QueueInfo], bool) {
		list, rest := v.QueuesOf(namespace, page.behind, page.limit)
		for i := range list {
			conceal(v, &list[i], namespace)
		}
		return some[questions.QueueInfo]{list, rest}, true
	})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.LocalQueueList{
		Observation: a.observation(), Items: make([]v1alpha1.LocalQueue, 0, len(a.value.list)),
	}
	for i := range a.value.list {
		info := &a.value.list[i]
		out.Items = append(out.Items, v1alpha1.LocalQueue{
			ObjectMeta: named(namespace, info.Name), Status: queueStatus(info),
		})
		out.ListMeta = page.meta(info.Name, a.value.rest)
	}
	return out, nil
}

// LocalQueue is one queue that units of a namespace are in.
func (r *Reader) LocalQueue(ctx context.Context, namespace, name string) (*v1alpha1.LocalQueue, error) {
	a, err := ask(ctx, r, func(v questions.View) (questions.QueueInfo, bool) {
		info, exists := v.Queue(name)
		conceal(v, &info, namespace)
		return info, exists && v.InQueue(namespace, name)
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("localqueues", name)
	}
	return &v1alpha1.LocalQueue{
		ObjectMeta: named(namespace, name), Observation: a.observation(), Status: queueStatus(&a.value),
	}, nil
}

// conceal leaves out what readers of a namespace must not learn of a queue.
func conceal(v questions.View, info *questions.QueueInfo, namespace string) {
	if !unit.InNamespace(info.First, namespace) {
		info.First, info.FirstKind, info.FirstJob = "", "", ""
	}
	if info.Quotas != nil {
		info.Quotas = append([]string{}, v.QuotasAmong(namespace, info.Quotas)...)
	}
}

// Line is a part of the line of a queue.
func (r *Reader) Line(ctx context.Context, queue string, page placesPage) (*v1alpha1.WaitingUnitList, error) {
	return r.line(ctx, queue, page, "queues", func(questions.View) bool { return true }, describe)
}

// LocalLine is a part of the line of a queue that units of a namespace are in. Of units that the reader may not read it
// has the place and the size.
func (r *Reader) LocalLine(
	ctx context.Context, namespace, queue string, page placesPage,
) (*v1alpha1.WaitingUnitList, error) {
	in, may := func(v questions.View) bool { return v.InQueue(namespace, queue) }, mayRead(ctx, r, namespace)
	return r.line(ctx, queue, page, "localqueues", in, func(p *questions.LineRow) v1alpha1.WaitingUnit {
		if of, _, _ := strings.Cut(p.Key, "/"); !may(of) {
			return v1alpha1.WaitingUnit{Position: count(p.Position), Requested: amounts(p.Request)}
		}
		return describe(p)
	})
}

func (r *Reader) line(
	ctx context.Context, queue string, page placesPage, resource string, may func(questions.View) bool,
	describe func(*questions.LineRow) v1alpha1.WaitingUnit,
) (*v1alpha1.WaitingUnitList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.LineRow], bool) {
		if _, exists := v.Queue(queue); !exists || !may(v) {
			return some[questions.LineRow]{}, false
		}
		list, all := v.Line(queue, page.skip, page.limit)
		return some[questions.LineRow]{list, all}, true
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound(resource, queue)
	}
	out := &v1alpha1.WaitingUnitList{
		ListMeta: page.meta(len(a.value.list), a.value.rest), Observation: a.observation(),
		Items: make([]v1alpha1.WaitingUnit, 0, len(a.value.list)),
	}
	for i := range a.value.list {
		out.Items = append(out.Items, describe(&a.value.list[i]))
	}
	return out, nil
}

func describe(p *questions.LineRow) v1alpha1.WaitingUnit {
	namespace, name, _ := strings.Cut(p.Key, "/")
	queued := metav1.NewTime(p.Created)
	return v1alpha1.WaitingUnit{
		Position: count(p.Position), Namespace: namespace, Name: name, Kind: p.Kind, Job: p.Job, Quota: p.Quota,
		Priority: &p.Priority,
		QueuedAt: &queued, Reason: string(p.Reason), Message: inWords(p.Finding, p.Request),
		Requested: amounts(p.Request), Holding: p.Holding,
	}
}

// inWords is about the level and the resource that a reason names.
func inWords(found unit.Finding, request resources.List) string {
	if found.Level == "" {
		return ""
	}
	amount, _ := request.Get(found.Resource)
	return fmt.Sprintf("too little %s at %q; the unit requests %s", found.Resource, found.Level,
		resources.Format(found.Resource, amount))
}

func queueStatus(info *questions.QueueInfo) v1alpha1.QueueStatus {
	stop, quotas := schedulingv1alpha1.StopNone, info.Quotas
	switch {
	case info.Drains:
		stop = schedulingv1alpha1.StopHoldAndDrain
	case info.Held:
		stop = schedulingv1alpha1.StopHold
	}
	if quotas == nil {
		quotas = []string{"*"}
	}
	return v1alpha1.QueueStatus{
		Quotas: quotas, StopPolicy: string(stop), First: info.First, FirstKind: info.FirstKind, FirstJob: info.FirstJob,
		Exists: info.Exists, Policy: info.Policy, Priority: info.Priority, Held: info.Held,
		Pending: count(info.Pending), Parked: count(info.Parked), Admitted: count(info.Admitted),
	}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// count is a number of objects, of which there are not as many as an int32 can say.
func count(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

func amounts(list resources.List) corev1.ResourceList {
	if list.Len() == 0 {
		return nil
	}
	out := make(corev1.ResourceList, list.Len())
	for name, amount := range list.Quantities() {
		out[corev1.ResourceName(name)] = amount
	}
	return out
}
