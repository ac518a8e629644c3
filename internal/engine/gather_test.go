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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Only new pods outside of jobs are gathered. All other events wake the engine at once.
func TestNewsThatOnlyTakeRoomAreGathered(t *testing.T) {
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "plain"}}
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: "named", Annotations: map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "ns/a"},
	}}
	for _, tt := range []struct {
		name     string
		news     func(mail.QuotaSink)
		gathered bool
	}{
		{"a pod is reserved", func(s mail.QuotaSink) { s.PodAssigned(testQuota, plain, true) }, true},
		{"a pod asks", func(s mail.QuotaSink) { s.MoreRequested(testQuota) }, true},
		{"a pod of a unit is reserved", func(s mail.QuotaSink) { s.PodAssigned(testQuota, named, true) }, false},
		{"a pod ends", func(s mail.QuotaSink) { s.PodAssigned(testQuota, plain, false) }, false},
		{"a quota changes", func(s mail.QuotaSink) { s.QuotaChanged(testQuota) }, false},
		{"the total changes", func(s mail.QuotaSink) { s.TotalChanged() }, false},
		{"both", func(s mail.QuotaSink) { s.MoreRequested(testQuota); s.QuotaChanged(testQuota) }, false},
		{"both, the other way round", func(s mail.QuotaSink) {
			s.QuotaChanged(testQuota)
			s.MoreRequested(testQuota)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, quotasOf(10, testQuota))
			tt.news(r.engine.Sink())
			woken := make(chan struct{})
			go func() {
				defer close(woken)
				r.engine.wait(t.Context(), time.Time{})
			}()
			if tt.gathered {
				require.Eventually(t, r.clock.HasWaiters, deadline, time.Millisecond)
				select {
				case <-woken:
					t.Fatal("nothing was gathered")
				default:
				}
				r.clock.Step(r.engine.gather())
			}
			<-woken
			b := r.engine.box.Drain()
			require.False(t, b.Empty(), "the step takes what was gathered")
		})
	}
}

// Where something is reserved for admitted jobs other pods are measured against limits, which must not be old.
func TestNewsAreGatheredForAShortTimeWhileQuotaIsReserved(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota))
	r.engine.gauges.OutstandingAt = func(string, resources.List, resources.List) {}
	r.queue(testQuota).lead()
	require.Equal(t, gatherUnreserved, r.engine.gather())
	r.unit("a", 1)
	r.step()
	r.send()
	require.Equal(t, gatherReserved, r.engine.gather())
}

// Gathered events are observed once more, like all others, but cause no step for that before their time of gathering is
// over.
func TestGatheredNewsAreObservedOnceMore(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota))
	r.step()
	settle := func() {
		for wake := r.engine.quotas.Next(r.engine.gather()); !wake.IsZero(); wake = r.engine.quotas.Next(r.engine.gather()) {
			r.clock.SetTime(wake)
			r.step()
		}
	}
	settle()
	c := r.engine.opts.Config
	begin := r.clock.Now()
	r.engine.Sink().MoreRequested(testQuota)
	r.step()
	require.Equal(t, begin.Add(c.TrailingCheck+gatherUnreserved), r.engine.quotas.Next(r.engine.gather()))

	r.clock.Step(c.TrailingCheck)
	r.engine.Sink().QuotaChanged("another")
	r.step()
	require.Equal(t, r.clock.Now().Add(c.TrailingCheck), r.engine.quotas.Next(r.engine.gather()),
		"a step that there was anyway has taken it along")
	settle()

	r.engine.Sink().MoreRequested(testQuota)
	r.engine.Sink().QuotaChanged(testQuota)
	r.engine.Sink().MoreRequested(testQuota)
	r.step()
	require.Equal(t, r.clock.Now().Add(c.TrailingCheck), r.engine.quotas.Next(r.engine.gather()),
		"the more urgent news count")
}
