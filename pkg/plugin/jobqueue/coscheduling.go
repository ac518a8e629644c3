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

package jobqueue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwktype "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext/services"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/coscheduling"
	coschedulingutil "github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/coscheduling/util"
)

// Coscheduling is Koordinator's plugin of that name with the gate before it. Everything else is the embedded plugin.
//
// It asks the gate about pods of gangs only. The order of PreEnqueue plugins is random. An unadmitted pod that reached
// the embedded plugin could become the representative of its gang and keep the others out. JobQueue asks about all
// other pods.
type Coscheduling struct {
	*coscheduling.Coscheduling
	// gate returns nil as long as there is no JobQueue in the scheduler.
	gate func() *Gate
}

// The framework and Koordinator find these interfaces by type assertion. A decorator without one of them would silently
// switch off a part of gang scheduling.
var (
	_ fwktype.PreEnqueuePlugin               = &Coscheduling{}
	_ fwktype.EnqueueExtensions              = &Coscheduling{}
	_ fwktype.PreFilterPlugin                = &Coscheduling{}
	_ fwktype.PostFilterPlugin               = &Coscheduling{}
	_ fwktype.PreScorePlugin                 = &Coscheduling{}
	_ fwktype.ScorePlugin                    = &Coscheduling{}
	_ fwktype.ReservePlugin                  = &Coscheduling{}
	_ fwktype.PermitPlugin                   = &Coscheduling{}
	_ fwktype.PreBindPlugin                  = &Coscheduling{}
	_ fwktype.PostBindPlugin                 = &Coscheduling{}
	_ frameworkext.NextPodPlugin             = &Coscheduling{}
	_ frameworkext.PreFilterTransformer      = &Coscheduling{}
	_ frameworkext.PostFilterTransformer     = &Coscheduling{}
	_ frameworkext.FindOneNodePluginProvider = &Coscheduling{}
	_ frameworkext.FindOneNodePlugin         = &Coscheduling{}
	_ frameworkext.ReservationPreBindPlugin  = &Coscheduling{}
	_ frameworkext.ControllerProvider        = &Coscheduling{}
	_ services.APIServiceProvider            = &Coscheduling{}
)

// newCoscheduling builds Koordinator's plugin and puts the gate before it.
func newCoscheduling(gate func() *Gate) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, handle fwktype.Handle) (fwktype.Plugin, error) {
		plugin, err := coscheduling.New(ctx, args, handle)
		if err != nil {
			return nil, err
		}
		inner, ok := plugin.(*coscheduling.Coscheduling)
		if !ok {
			return nil, fmt.Errorf("want Coscheduling to be of type *coscheduling.Coscheduling, got %T", plugin)
		}
		return &Coscheduling{Coscheduling: inner, gate: gate}, nil
	}
}

// PreEnqueue holds gang pods of jobs that are not admitted.
func (c *Coscheduling) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwktype.Status {
	if gate := c.gate(); gate != nil && coschedulingutil.IsPodNeedGang(pod) {
		if status := gate.Check(pod); status != nil {
			return status
		}
	}
	return c.Coscheduling.PreEnqueue(ctx, pod)
}

// NextPod returns the next admitted sibling of the gang that is being scheduled, past PreEnqueue and out of the
// scheduling queue. Every call of the embedded plugin marks its pod as attempted, so the loop ends.
func (c *Coscheduling) NextPod() *corev1.Pod {
	return nextPassing(c.gate(), c.Coscheduling.NextPod)
}

func nextPassing(gate *Gate, next func() *corev1.Pod) *corev1.Pod {
	pod := next()
	for gate != nil && pod != nil && !gate.Passes(pod) {
		pod = next()
	}
	return pod
}
