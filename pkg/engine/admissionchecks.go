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
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/podupdate"
)

// admissionChecks are those that exist, by name. off: they are not known, and none is asked.
type admissionChecks struct {
	off    bool
	byName map[string]*objects.Check
}

func newAdmissionChecks(off bool) *admissionChecks {
	return &admissionChecks{off: off, byName: map[string]*objects.Check{}}
}

func (a *admissionChecks) set(name string, c *objects.Check) {
	if c == nil {
		delete(a.byName, name)
		return
	}
	a.byName[name] = c
}

// listed are the keys that a check may write into pods; false if the check is not known.
func (a *admissionChecks) listed(check string) (podupdate.Keys, bool) {
	if c := a.byName[check]; c != nil {
		return c.Keys, true
	}
	return nil, false
}

// faultOf a queue is the first of its checks that nobody would answer; nil if there is none.
func (a *admissionChecks) faultOf(q *objects.Queue) *queue.Fault {
	if a.off && (q.CheckFault != "" || len(q.Spec.AdmissionChecks) > 0) {
		return &queue.Fault{Reason: unit.ReasonCheckInactive,
			Message: "the queue names admission checks, and the feature gate AdmissionChecks of the scheduler is off"}
	}
	if q.CheckFault != "" {
		return &queue.Fault{Reason: unit.ReasonCheckInactive, Message: q.CheckFault}
	}
	for _, of := range q.Spec.AdmissionChecks {
		switch c := a.byName[of.Name]; {
		case c == nil:
			return &queue.Fault{Reason: unit.ReasonCheckNotFound,
				Message: fmt.Sprintf("AdmissionCheck %q does not exist", of.Name)}
		case strings.HasPrefix(c.Controller, v1beta1.GroupName+"/"):
			return &queue.Fault{Reason: unit.ReasonCheckInactive, Message: fmt.Sprintf(
				"AdmissionCheck %q is for controller %q, which answers Workloads of Kueue and no QueueUnits",
				of.Name, c.Controller)}
		case !c.Active:
			return &queue.Fault{Reason: unit.ReasonCheckInactive,
				Message: fmt.Sprintf("AdmissionCheck %q is not active: %s", of.Name, c.Why)}
		}
	}
	return nil
}

// resolved are the checks that a queue names, with what depends on their controllers.
func (a *admissionChecks) resolved(named []queue.AdmissionCheck, config *Config) []queue.AdmissionCheck {
	named = slices.Clone(named)
	for i := range named {
		check, controller := &named[i], ""
		if c := a.byName[check.Name]; c != nil {
			controller = c.Controller
		}
		check.Foreseen = controller == v1alpha1.PlacementController
		if own, ok := config.CheckTimeouts[controller]; check.Timeout == objects.DefaultTimeout && ok {
			check.Timeout = own
		} else if check.Timeout == objects.DefaultTimeout {
			check.Timeout = config.CheckTimeout
		}
	}
	return named
}

// askedChecks is the status of checks for which quota has just been reserved: none has answered. In the write that
// reserves it, that takes the place of the answers about a former reservation. How often they had the unit tried again
// stays counted.
func askedChecks(u *objects.Unit, names []string, at metav1.Time) []map[string]any {
	asked := make([]map[string]any, 0, len(names))
	for _, name := range names {
		state := map[string]any{
			"name": name, "state": string(unit.CheckPending), "lastTransitionTime": at,
			"message": "asked when quota was reserved",
		}
		if n := u.Retried[name]; n > 0 {
			state["retryCount"] = n
		}
		asked = append(asked, state)
	}
	return asked
}

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

// followChecks sets up the informer of AdmissionChecks, whether they are installed or not: it goes on trying, in turn
// in all versions, and holds nothing up.
func (s *sources) followChecks() error {
	if s.opts.Config.AdmissionChecksOff {
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
	client := s.opts.Client
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
		func(c *objects.Check) { s.putCheck(c.Name, c) },
		func(c *objects.Check) { s.putCheck(c.Name, nil) },
		func(key string) { s.putCheck(key, nil) },
	))
	if err != nil {
		return err
	}
	last := len(s.synced) - 1
	s.checks.synced = s.synced[last]
	s.synced[last] = s.checks.settled
	return nil
}
