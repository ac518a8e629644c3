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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/history"
)

// Source is where the answers come from.
type Source interface {
	// Ask runs f where the view is consistent, and waits for it; not at all if the context has ended before.
	Ask(ctx context.Context, f func(engine.View)) error
}

// Reader answers questions with objects of the API. Those that take a namespace answer to readers of that namespace:
// they name no unit of another one.
type Reader struct {
	// History has the record of transitions; nil is an empty one.
	History *history.Recorder
	// NamespaceCreated says when a namespace was created, if there is one: the record of an earlier one of that name is
	// not for its readers. Nil knows no namespace.
	NamespaceCreated func(name string) (time.Time, bool)
	source           Source
	limiter          *limiter
}

// NewReader returns a reader with bounds of its own.
func NewReader(source Source, c clock.PassiveClock) *Reader {
	return &Reader{source: source, limiter: newLimiter(c)}
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
func ask[T any](ctx context.Context, r *Reader, question func(engine.View) (T, bool)) (answer[T], error) {
	var none answer[T]
	leave, err := r.limiter.enter(ctx)
	if err != nil {
		return none, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The question may still run when nobody waits for it any more.
	answers := make(chan answer[T], 1)
	err = r.source.Ask(ctx, func(v engine.View) {
		if !v.Loaded() {
			return
		}
		value, found := question(v)
		answers <- answer[T]{value, v.Now(), v.Leading(), found}
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return none, apierrors.NewTimeoutError("the admission loop did not answer in time", comeBack)
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
