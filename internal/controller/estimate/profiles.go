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

// Package estimate watches the objects by which a cluster changes new pods, because the requests of jobs depend on
// them.
package estimate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/sharedsource"
)

// profilesPatience is how long estimates wait for profiles that are served and do not come.
const profilesPatience = 30 * time.Second

// Profiles reads ClusterColocationProfiles where the cluster has them. Their CRD belongs to Koordinator and may come
// later or never: nothing waits for it. It is safe for concurrent use.
type Profiles struct {
	informers sharedsource.Informers
	clock     clock.PassiveClock
	// served says whether the CRD is there.
	served *served.Index

	// found is nil until the CRD was found; looked is when it was first looked for. came is closed when it was found.
	found  atomic.Pointer[found]
	looked atomic.Pointer[time.Time]
	came   chan struct{}
}

// NewProfiles reads from a cache.
func NewProfiles(informers sharedsource.Informers, clk clock.PassiveClock, index *served.Index) *Profiles {
	return &Profiles{informers: informers, clock: clk, served: index, came: make(chan struct{})}
}

type found struct{ informer cache.Informer }

// Readable says whether there are profiles to be read.
func (p *Profiles) Readable() bool {
	f := p.found.Load()
	return f != nil && f.informer.HasSynced()
}

// Settled says whether what Readable says can be relied upon. A unit that is written before would soon be written
// again.
func (p *Profiles) Settled() bool {
	looked := p.looked.Load()
	return looked != nil && (p.found.Load() == nil || p.Readable() || p.clock.Since(*looked) > profilesPatience)
}

// Start looks for the CRD until it is found.
func (p *Profiles) Start(ctx context.Context) error {
	err := p.Look(ctx)
	if err == nil {
		return nil
	}
	_ = p.served.Wait(ctx, p.Look, v1alpha1.GroupVersion) // the context's error: it ended
	return nil
}

// NeedLeaderElection: a standby has read the profiles by the time it leads.
func (p *Profiles) NeedLeaderElection() bool { return false }

// Look returns nil once there is nothing more to look for.
func (p *Profiles) Look(ctx context.Context) error {
	informer, err := p.informers.GetInformer(ctx, &v1alpha1.ClusterColocationProfile{}, cache.BlockUntilSynced(false))
	now := p.clock.Now()
	if err == nil {
		p.looked.Store(&now) // before it is found: the patience begins now
		if p.found.CompareAndSwap(nil, &found{informer}) {
			close(p.came)
		}
		klog.FromContext(ctx).Info("Requests are estimated with ClusterColocationProfiles")
		return nil
	}
	if !meta.IsNoMatchError(err) {
		klog.FromContext(ctx).Error(err, "Cannot look for ClusterColocationProfiles; requests are estimated without")
	}
	p.looked.CompareAndSwap(nil, &now)
	return err
}
