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
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
)

// Source is where the answers come from.
type Source interface {
	// Ask runs f where the view is consistent, and waits for it; not at all if the context has ended before.
	Ask(ctx context.Context, f func(questions.View)) error
}

// Reader answers questions with objects of the API. Methods with a namespace answer readers of that namespace: they
// name no unit of a namespace that these may not read.
type Reader struct {
	// History has the record of transitions; nil is an empty one.
	History *history.Recorder
	// NamespaceCreated says when a namespace was created, if there is one: the record of an earlier one of that name is
	// not for its readers. Nil knows no namespace.
	NamespaceCreated func(name string) (time.Time, bool)
	// MayRead says whether the user of a request may read the units of a namespace. Nil allows that of the path alone.
	MayRead func(ctx context.Context, namespace string) bool
	// Metrics counts how right forecasts were; nil counts nothing.
	Metrics   *metrics.Set
	source    Source
	limiter   *limiter.Limiter
	forecasts *forecasts
}

// NewReader returns a reader with bounds of its own.
func NewReader(source Source, c clock.PassiveClock) *Reader {
	r := &Reader{source: source, limiter: limiter.New(c)}
	r.forecasts = newForecasts(c, r)
	return r
}

// answer is a value, and when and by whom it was given.
type answer[T any] struct {
	value T
	at    time.Time
	leads bool
	found bool
}

func (a *answer[T]) observation() *v1alpha1.Observation {
	return &v1alpha1.Observation{AsOf: metav1.NewTime(a.at), Leader: a.leads}
}

// ask has a question answered within the bounds. The question copies; it says false if there is nothing of that name.
func ask[T any](ctx context.Context, r *Reader, question func(questions.View) (T, bool)) (answer[T], error) {
	leave, err := r.limiter.Enter(ctx)
	if err != nil {
		return answer[T]{}, err
	}
	defer leave()
	return answered(ctx, r.source, question)
}

// answered is a question that has entered.
func answered[T any](ctx context.Context, source Source, question func(questions.View) (T, bool)) (answer[T], error) {
	var none answer[T]
	ctx, cancel := context.WithTimeout(ctx, limiter.Timeout)
	defer cancel()
	// The question may still run when nobody waits for it any more.
	answers := make(chan answer[T], 1)
	err := source.Ask(ctx, func(v questions.View) {
		if !v.Loaded() {
			return
		}
		value, found := question(v)
		answers <- answer[T]{value, v.Now(), v.Leading(), found}
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return none, apierrors.NewTimeoutError("the admission loop did not answer in time", limiter.ComeBack)
	case err != nil:
		return none, apierrors.NewInternalError(err)
	}
	select {
	case a := <-answers:
		return a, nil
	default:
		return none, apierrors.NewServiceUnavailable("the scheduler has not read all queues and units yet")
	}
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource(resource).GroupResource(), name)
}
