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
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

// Bounds of what is asked of the goroutine that decides.
const (
	// defaultPage and maxPage bound what one answer lists.
	defaultPage = 100
	maxPage     = 500
	// maxAtATime questions wait for an answer, and maxOfOne of each user; others are told to come back.
	maxAtATime = 8
	maxOfOne   = 2
	// questionsPerSecond, and burst above that, bound the share of the time of decisions that goes into answers, and
	// ofOnePerSecond and burstOfOne what one user takes of that.
	questionsPerSecond = 100
	burst              = 200
	ofOnePerSecond     = 25
	burstOfOne         = 50
	// manyUsers is from how many users on those are forgotten that have not asked for a while.
	manyUsers = 1000
	// timeout of one question.
	timeout = 5 * time.Second
	// comeBack is after how many seconds a refused user may try again.
	comeBack = 1
)

// limiter bounds the number of questions, of all users and of each.
type limiter struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	all   asking
	users map[string]*asking
}

// asking is what is asked: how many questions wait for an answer, and how many may come.
type asking struct {
	waiting int
	rate    *rate.Limiter
}

func newLimiter(c clock.PassiveClock) *limiter {
	return &limiter{
		clock: c, all: asking{rate: rate.NewLimiter(questionsPerSecond, burst)}, users: map[string]*asking{},
	}
}

// enter returns the function to call when the question is answered, or the error to answer with.
func (l *limiter) enter(ctx context.Context) (leave func(), err error) {
	name := ""
	if user, known := request.UserFrom(ctx); known {
		name = user.GetName()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	one := l.user(name, now)
	switch {
	case l.all.waiting >= maxAtATime || one.waiting >= maxOfOne:
		return nil, apierrors.NewTooManyRequests("too many questions at a time", comeBack)
	case !one.rate.AllowN(now, 1) || !l.all.rate.AllowN(now, 1):
		return nil, apierrors.NewTooManyRequests("too many questions", comeBack)
	}
	l.all.waiting++
	one.waiting++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all.waiting--
		one.waiting--
	}, nil
}

// user returns what this user asks.
func (l *limiter) user(name string, now time.Time) *asking {
	one, known := l.users[name]
	if known {
		return one
	}
	if len(l.users) >= manyUsers {
		for other, idle := range l.users {
			if idle.waiting == 0 && idle.rate.TokensAt(now) >= burstOfOne {
				delete(l.users, other)
			}
		}
	}
	one = &asking{rate: rate.NewLimiter(ofOnePerSecond, burstOfOne)}
	l.users[name] = one
	return one
}
