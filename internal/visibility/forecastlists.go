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
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/memory"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/tables"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

const (
	// mostListed is the number of units of a list.
	mostListed = 100
	// mostLists are kept for readers of the next seconds.
	mostLists = 100
	// factsFor is for how long lists are made of the same facts: the goroutine that decides copies all of them.
	factsFor = time.Second
)

// forecastLists lists forecasts: of a namespace, or of all to readers with the right in the cluster. One list costs as
// much as one forecast, since all its units have the same draws.
type forecastLists struct {
	*forecasts
	tables.Table
	// facts and kept lists are of the one whose turn it is.
	facts answer[*virtual.Facts]
	kept  map[narrowed]*v1alpha1.ForecastList
}

// narrowed is what a list is of: a namespace, a queue, or both; empty is all.
type narrowed struct{ namespace, queue string }

var (
	_ rest.Storage              = &forecastLists{}
	_ rest.Scoper               = &forecastLists{}
	_ rest.SingularNameProvider = &forecastLists{}
	_ rest.Lister               = &forecastLists{}
)

func newForecastLists(f *forecasts) *forecastLists {
	return &forecastLists{forecasts: f, Table: tables.Forecasts, kept: map[narrowed]*v1alpha1.ForecastList{}}
}

// New implements rest.Storage.
func (l *forecastLists) New() runtime.Object { return &v1alpha1.Forecast{} }

// NewList implements rest.Lister.
func (l *forecastLists) NewList() runtime.Object { return &v1alpha1.ForecastList{} }

// Destroy implements rest.Storage.
func (l *forecastLists) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (l *forecastLists) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (l *forecastLists) GetSingularName() string { return "forecast" }

// forecastField says whether a field selector may name a field.
func forecastField(label, value string) (string, string, error) {
	if label != "queue" {
		return "", "", fmt.Errorf("forecasts cannot be selected by %q", label)
	}
	return label, value, nil
}

// List implements rest.Lister. A field selector may name the queue.
func (l *forecastLists) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		return nil, apierrors.NewBadRequest("forecasts have no labels; select by queue")
	}
	n, err := sizeOf(o.Limit)
	if err != nil {
		return nil, err
	}
	of := narrowed{namespace: request.NamespaceValue(ctx)}
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		queue, exact := o.FieldSelector.RequiresExactMatch("queue")
		if !exact || len(o.FieldSelector.Requirements()) > 1 || queue == "" {
			return nil, apierrors.NewBadRequest("fieldSelector: name one queue, as in queue=NAME")
		}
		of.queue = queue
	}
	return l.inTurn(ctx, func(ctx context.Context) (runtime.Object, error) { return object(l.list(ctx, of, n)) })
}

// list of up to n units, which readers of the next seconds get too.
func (l *forecastLists) list(ctx context.Context, of narrowed, n int) (*v1alpha1.ForecastList, error) {
	list := l.kept[of]
	if list == nil || l.clock.Since(list.AsOf.Time) >= memory.FreshFor {
		var err error
		if list, err = l.make(ctx, of); err != nil {
			return nil, err
		}
		if len(l.kept) >= mostLists {
			clear(l.kept)
		}
		l.kept[of] = list
	}
	list = list.DeepCopy()
	list.Items = list.Items[:min(n, len(list.Items))]
	return list, nil
}

func (l *forecastLists) make(ctx context.Context, of narrowed) (*v1alpha1.ForecastList, error) {
	if l.facts.value == nil || l.clock.Since(l.facts.at) >= factsFor {
		a, err := answered(ctx, l.reader.source, func(v questions.View) (*virtual.Facts, bool) { return v.Facts(), true })
		if err != nil {
			return nil, err
		}
		l.facts = a
	}
	a, facts := &l.facts, l.facts.value
	list := &v1alpha1.ForecastList{Observation: a.observation(), Items: []v1alpha1.Forecast{}}
	if !slices.ContainsFunc(facts.Units, of.accepts) {
		return list, nil
	}
	past := memory.PastOf(l.reader.History, "", facts.Queues)
	answers := forecast.First(l.question(ctx, facts, a.at, past), mostListed, of.accepts)
	if ctx.Err() != nil {
		return nil, apierrors.NewTimeoutError("the forecasts took too long", limiter.ComeBack)
	}
	l.memory.Note(a.at, answers)
	for i := range answers {
		u := answers[i].Unit
		list.Items = append(list.Items, v1alpha1.Forecast{
			ObjectMeta: named(u.Namespace(), u.Key[len(u.Namespace())+1:]), Status: statusOf(&answers[i]),
		})
	}
	return list, nil
}

// accepts units that wait.
func (of narrowed) accepts(u *unit.Unit) bool {
	return transition.StageOf(u) != transition.Admitted && (of.queue == "" || u.Queue == of.queue) &&
		(of.namespace == "" || unit.InNamespace(u.Key, of.namespace))
}
