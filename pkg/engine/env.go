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

package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/waits"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// env is what all parts of the engine have in common: its options, its log, and the recovery from panics.
type env struct {
	opts  Options
	log   klog.Logger // belongs to the goroutine of step
	waits *waits.Waits
	// managed is what is managed at present; nil is nothing.
	managed atomic.Pointer[managedjobs.Predicate]
}

func newEnv(o Options) *env {
	v := &env{opts: o, log: klog.Background(), waits: waits.New(o.Metrics)}
	v.managed.Store(o.Predicate)
	return v
}

// kindOf is the kind of an owner, as units name it, and says whether it is a managed one.
func (v *env) kindOf(owner *metav1.OwnerReference) (kind string, managed bool) {
	return v.managed.Load().KindOf(*owner)
}

// unitNamedBy is the unit that a pod belongs to by what it says itself; empty if by nothing.
func (v *env) unitNamedBy(pod *corev1.Pod) string { return v.managed.Load().UnitNamedBy(pod) }

// guard runs f and says whether it returned. A panic in it is counted, logged and recovered: this process schedules
// the whole cluster.
func (v *env) guard(where string, f func()) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			ok = false
			v.opts.Metrics.Inc(metrics.PanicsTotal, where)
			v.log.Error(nil, "Recovered from a panic", "where", where, "cause", objects.Shorten(fmt.Sprint(cause)),
				"stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}

// sleep says whether the time passed before the context ended.
func (v *env) sleep(ctx context.Context, d time.Duration) bool {
	timer := v.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
