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

// Package limiter bounds what is asked of the goroutine that decides: all questions together, and those of each user.
package limiter

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
	// MaxAtATime questions wait for an answer, and MaxOfOne of each user; others are told to come back.
	MaxAtATime = 8
	MaxOfOne   = 2
	// PerSecond and Burst bound the share of decision time that answers take. ofOnePerSecond and BurstOfOne bound
	// the part of one user.
	PerSecond      = 100
	Burst          = 200
	ofOnePerSecond = 25
	BurstOfOne     = 50
	// manyUsers is from how many users on those are forgotten that have not asked for a while.
	manyUsers = 1000
	// Timeout of one question.
	Timeout = 5 * time.Second
	// ComeBack is after how many seconds a refused user may try again.
	ComeBack = 1
)

// Limiter bounds the number of questions, of all users and of each.
type Limiter struct {
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

// New returns a limiter that has been asked nothing.
func New(c clock.PassiveClock) *Limiter {
	return &Limiter{
		clock: c, all: asking{rate: rate.NewLimiter(PerSecond, Burst)}, users: map[string]*asking{},
	}
}

// Enter returns the function to call when the question is answered, or the error to answer with.
func (l *Limiter) Enter(ctx context.Context) (leave func(), err error) {
	name := ""
	if user, known := request.UserFrom(ctx); known {
		name = user.GetName()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	one := l.user(name, now)
	switch {
	case l.all.waiting >= MaxAtATime || one.waiting >= MaxOfOne:
		return nil, apierrors.NewTooManyRequests("too many questions at a time", ComeBack)
	case !one.rate.AllowN(now, 1) || !l.all.rate.AllowN(now, 1):
		return nil, apierrors.NewTooManyRequests("too many questions", ComeBack)
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
func (l *Limiter) user(name string, now time.Time) *asking {
	one, known := l.users[name]
	if known {
		return one
	}
	if len(l.users) >= manyUsers {
		for other, idle := range l.users {
			if idle.waiting == 0 && idle.rate.TokensAt(now) >= BurstOfOne {
				delete(l.users, other)
			}
		}
	}
	one = &asking{rate: rate.NewLimiter(ofOnePerSecond, BurstOfOne)}
	l.users[name] = one
	return one
}
