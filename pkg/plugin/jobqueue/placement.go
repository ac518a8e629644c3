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
	"errors"
	"fmt"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/placement"
	"github.com/koord-jobqueue/koord-jobqueue/internal/placement/placementcheck"
)

// newPlacement returns what answers the checks of v1alpha1.PlacementController in this scheduler, with these arguments
// of its plugins.
func newPlacement(
	ctx context.Context, cfg *rest.Config, handle fwktype.Handle, profile []kubeschedulerconfig.PluginConfig,
	now clock.PassiveClock,
) (*placementcheck.Checker, error) {
	placer, err := placement.New(ctx, placement.Config{
		Source: liveCache{handle}, Informers: handle.SharedInformerFactory(), PluginConfig: profile,
	})
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("scheme of QueueUnits: %w", err)
	}
	objects, err := client.New(rest.CopyConfig(cfg), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client of placement checks: %w", err)
	}
	return placementcheck.New(placer, objects, metrics.Registered(), now), nil
}

// liveCache is the cache of the scheduler, which exists once the scheduler is complete.
type liveCache struct{ handle fwktype.Handle }

// UpdateSnapshot implements placement.Source.
func (l liveCache) UpdateSnapshot(logger klog.Logger, snapshot *cache.Snapshot) error {
	extended, ok := l.handle.(frameworkext.ExtendedHandle)
	if !ok {
		return errors.New("the scheduler has no frameworkext of Koordinator")
	}
	adapter, ok := extended.Scheduler().(*frameworkext.SchedulerAdapter)
	if !ok || adapter.Scheduler == nil {
		return errors.New("the scheduler is not complete")
	}
	return adapter.Scheduler.Cache.UpdateSnapshot(logger, snapshot)
}
