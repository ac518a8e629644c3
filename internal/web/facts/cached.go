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

package facts

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
)

const (
	// fresh is for how long an answer is kept that takes many requests.
	fresh = 20 * time.Second
	// mostKept answers; the rest is asked again.
	mostKept = 32
)

// Cached is a source whose long answers are kept for some seconds, since a live page asks again and again.
type Cached struct {
	Source
	Clock clock.PassiveClock
	lock  sync.Mutex
	kept  map[string]*kept
}

type kept struct {
	once  sync.Once
	until time.Time
	value any
	err   error
}

// Records implements Source. Those of one job are few, and its page shows them as they are.
func (c *Cached) Records(ctx context.Context, q *answers.RecordQuery) (*answers.Records, error) {
	if q.Job != "" {
		return c.Source.Records(ctx, q)
	}
	question := *q
	question.Since = q.Since.Truncate(fresh)
	return keep(c, fmt.Sprintf("records %v", question), func() (*answers.Records, error) {
		return c.Source.Records(ctx, q)
	})
}

// Findings implements Source.
func (c *Cached) Findings(ctx context.Context) ([]doctor.Finding, error) {
	return keep(c, "findings", func() ([]doctor.Finding, error) { return c.Source.Findings(ctx) })
}

// Admitted implements Source.
func (c *Cached) Admitted(ctx context.Context, namespace string, limit int) ([]v1alpha1.QueueUnit, error) {
	return keep(c, fmt.Sprintf("admitted %q %d", namespace, limit), func() ([]v1alpha1.QueueUnit, error) {
		return c.Source.Admitted(ctx, namespace, limit)
	})
}

// Forecasts implements Source.
func (c *Cached) Forecasts(ctx context.Context, queue string) map[string]*visibility.Forecast {
	found, _ := keep(c, fmt.Sprintf("forecasts %q", queue), func() (map[string]*visibility.Forecast, error) {
		return c.Source.Forecasts(ctx, queue), nil
	})
	return found
}

// Rights implements Source.
func (c *Cached) Rights(ctx context.Context, u *v1alpha1.QueueUnit) (Rights, error) {
	return keep(c, fmt.Sprintf("rights %s/%s %v", u.Namespace, u.Name, u.Spec.ConsumerRef), func() (Rights, error) {
		return c.Source.Rights(ctx, u)
	})
}

// keep asks once, also where several ask at the same time.
func keep[T any](c *Cached, question string, ask func() (T, error)) (T, error) {
	now := c.Clock.Now()
	c.lock.Lock()
	k := c.kept[question]
	if k == nil || !now.Before(k.until) {
		maps.DeleteFunc(c.kept, func(_ string, k *kept) bool { return !now.Before(k.until) })
		if c.kept == nil || len(c.kept) >= mostKept {
			c.kept = map[string]*kept{}
		}
		k = &kept{until: now.Add(fresh)}
		c.kept[question] = k
	}
	c.lock.Unlock()
	k.once.Do(func() { k.value, k.err = ask() })
	if k.err != nil { // another try may go well
		c.lock.Lock()
		if c.kept[question] == k {
			delete(c.kept, question)
		}
		c.lock.Unlock()
		var none T
		return none, k.err
	}
	value, _ := k.value.(T)
	return value, nil
}
