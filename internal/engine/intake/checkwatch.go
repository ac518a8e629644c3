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

package intake

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
)

// checkWatch says how the informer of AdmissionChecks is doing. Checks that cannot be listed hold nothing up.
type checkWatch struct {
	synced cache.InformerSynced
	// unavailable: they cannot be listed, or could not be in time.
	unavailable atomic.Bool
	overdue     func() bool
}

// settled says that all checks are known, or that they cannot be.
func (w *checkWatch) settled() bool { return w.unavailable.Load() || w.synced() }

// giveUp stops the wait for checks that could not be listed in time, and says so.
func (w *checkWatch) giveUp(ctx context.Context) {
	if w != nil && w.overdue() && !w.settled() {
		w.unavailable.Store(true)
		klog.FromContext(ctx).Error(nil, "AdmissionChecks could not be listed so far in any version; queues that name one "+
			"admit nothing", "after", listPatience)
	}
}

// onError takes an error of the informer.
func (w *checkWatch) onError(ctx context.Context, r *cache.Reflector, err error) {
	switch known := w.unavailable.Load(); {
	case apierrors.IsNotFound(err):
		w.unavailable.Store(true) // as in most clusters
	case apierrors.IsForbidden(err):
		if w.unavailable.Store(true); !known {
			klog.FromContext(ctx).Error(err, "AdmissionChecks may not be listed; queues that name one admit nothing")
		}
	default:
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// followChecks sets up the informer of AdmissionChecks, even if they are not installed. It keeps trying, in turn in all
// versions, and delays nothing.
func (s *Sources) followChecks() error {
	if s.from.AdmissionChecksOff {
		return nil
	}
	var version atomic.Int64
	resource := func() schema.GroupVersionResource {
		return v1beta1.AdmissionCheckResources[int(version.Load())%len(v1beta1.AdmissionCheckResources)]
	}
	tried := func(err error) error {
		if err != nil {
			version.Add(1) // one version may be served, or converted, where another cannot be
		}
		return err
	}
	client := s.from.Client
	informer := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.With(objects.At(client.Get(), resource(), ""), &o).Do(ctx).Get()
			return list, tried(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			events, err := objects.With(objects.At(client.Get(), resource(), ""), &o).Watch(ctx)
			return events, tried(err)
		},
	}, &objects.WireCheck{}, cache.SharedIndexInformerOptions{ObjectDescription: "AdmissionChecks"})
	s.checks = &checkWatch{overdue: s.patience()}
	if err := informer.SetWatchErrorHandlerWithContext(s.checks.onError); err != nil {
		return fmt.Errorf("watching admission checks: %w", err)
	}
	err := s.follow(informer, "admission checks", transform(objects.DecodeCheck), handlers(
		func(c *objects.Check) { s.box.Check(c.Name, c) },
		func(c *objects.Check) { s.box.Check(c.Name, nil) },
		func(key string) { s.box.Check(key, nil) },
	))
	if err != nil {
		return err
	}
	last := len(s.synced) - 1
	s.checks.synced = s.synced[last]
	s.synced[last] = s.checks.settled
	return nil
}
