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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// Bounds of what is asked of the goroutine that decides.
const (
	// defaultPage and maxPage bound what one answer lists.
	defaultPage = 100
	maxPage     = 500
	// maxAtATime questions wait for an answer; others are told to come back.
	maxAtATime = 8
	// questionsPerSecond, and burst above that, bound the share of the time of decisions that goes into answers.
	questionsPerSecond = 100
	burst              = 200
	// timeout of one question.
	timeout = 5 * time.Second
	// comeBack is after how many seconds who was refused may try again.
	comeBack = 1
)

// limiter bounds the number of questions.
type limiter struct {
	places chan struct{}
	rate   flowcontrol.RateLimiter
}

func newLimiter(c clock.PassiveClock) *limiter {
	return &limiter{
		places: make(chan struct{}, maxAtATime),
		rate:   flowcontrol.NewTokenBucketRateLimiterWithClock(questionsPerSecond, burst, rateClock{c}),
	}
}

// enter returns the function to call when the question is answered, or the error to answer with.
func (l *limiter) enter() (leave func(), err error) {
	select {
	case l.places <- struct{}{}:
	default:
		return nil, apierrors.NewTooManyRequests("too many questions at a time", comeBack)
	}
	if !l.rate.TryAccept() {
		<-l.places
		return nil, apierrors.NewTooManyRequests("too many questions", comeBack)
	}
	return func() { <-l.places }, nil
}

// rateClock is a clock that nobody sleeps by.
type rateClock struct{ clock.PassiveClock }

// Sleep is not called: nothing waits for a token.
func (rateClock) Sleep(time.Duration) {}
