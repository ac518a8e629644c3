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

// Package env is what each part of the engine needs: a clock, metrics, a log, and the recovery from panics.
package env

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// Env is shared by all parts of one engine.
type Env struct {
	Clock   clock.WithTicker
	Metrics *metrics.Set // nil counts nothing
	// Log belongs to the goroutine of the engine.
	Log klog.Logger
}

// Guard runs f and says whether it returned. A panic in it is counted, logged and recovered: this process schedules
// the whole cluster.
func (v *Env) Guard(where string, f func()) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			ok = false
			v.Metrics.Inc(metrics.PanicsTotal, where)
			v.Log.Error(nil, "Recovered from a panic", "where", where, "cause", objects.Shorten(fmt.Sprint(cause)),
				"stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}

// Sleep says whether the time passed before the context ended.
func (v *Env) Sleep(ctx context.Context, d time.Duration) bool {
	timer := v.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
