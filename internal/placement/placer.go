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

package placement

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Source brings a snapshot of nodes and their pods up to date. The cache of kube-scheduler is one.
type Source interface {
	// UpdateSnapshot writes what has changed since the last call. It returns an error if the snapshot cannot be used.
	UpdateSnapshot(logger klog.Logger, snapshot *cache.Snapshot) error
}

// Config of a Placer.
type Config struct {
	// Source of nodes and pods.
	Source Source
	// Informers give volumes, namespaces and workloads to the filters. They are started after New, by the caller.
	Informers informers.SharedInformerFactory
	// Claims manages claims of resources. If it is nil, claims never cause a no.
	Claims fwk.SharedDRAManager
	// PluginConfig has arguments of filter plugins that differ from the defaults of kube-scheduler. Those of other plugins
	// are not looked at.
	PluginConfig []config.PluginConfig
}

// Placer answers whether all pods of a job find nodes, and remembers what it promised. All methods may be called at any
// time. Place takes one question at a time; the others never wait for it.
type Placer struct {
	// asking is held during a question, and guards all fields to the next lock.
	asking    sync.Mutex
	source    Source
	snapshot  *cache.Snapshot
	view      *view
	framework framework.Framework
	claims    bool

	promising sync.Mutex
	promises  promises
}

// New makes a placer. Its metrics are written until ctx ends. The metrics of kube-scheduler have to be registered, and
// the informers are started later. It returns an error if a plugin does not take its arguments.
func New(ctx context.Context, c Config) (*Placer, error) {
	p := &Placer{
		source: c.Source, snapshot: cache.NewEmptySnapshot(), view: &view{}, claims: c.Claims != nil, promises: promises{},
	}
	var err error
	if p.framework, err = newFramework(ctx, c, p.view, c.Informers); err != nil {
		return nil, fmt.Errorf("filters of the placer: %w", err)
	}
	return p, nil
}

// Promise keeps the nodes of an answer for its units, in place of what was promised to them before. Answers that do not
// fit promise nothing.
func (p *Placer) Promise(a Answer) {
	if !a.Fits {
		return
	}
	p.promising.Lock()
	defer p.promising.Unlock()
	for _, placed := range a.Placed {
		delete(p.promises, placed.Unit)
	}
	for _, placed := range a.Placed {
		p.promises[placed.Unit] = append(p.promises[placed.Unit], placed)
	}
}

// Bound ends the promise for one pod of a unit, because the pod now counts on a node. It says whether the promise was
// missed: nodes were kept for the unit, and not this one.
func (p *Placer) Bound(unit types.UID, node string) (missed bool) {
	p.promising.Lock()
	defer p.promising.Unlock()
	return p.promises.bound(unit, node)
}

// Promised says whether nodes are kept for a unit.
func (p *Placer) Promised(unit types.UID) bool {
	p.promising.Lock()
	defer p.promising.Unlock()
	return len(p.promises[unit]) > 0
}

// Forget ends all that is promised to a unit, and returns for how many pods nodes were kept.
func (p *Placer) Forget(unit types.UID) (open int) {
	p.promising.Lock()
	defer p.promising.Unlock()
	open = p.promises.open(unit)
	delete(p.promises, unit)
	return open
}

func (p *Placer) promisedToOthers(sets []PodSet) []Placed {
	p.promising.Lock()
	defer p.promising.Unlock()
	return p.promises.others(sets)
}

// Place answers a request. Promises to other units count, and promises to its own units do not. Nothing is promised. It
// returns an error if ctx ends, if a pod cannot be read, or if a plugin or the source has one. If ctx ends, the answer
// has the pods that found a node until then.
func (p *Placer) Place(ctx context.Context, r Request) (Answer, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if err := p.source.UpdateSnapshot(klog.FromContext(ctx), p.snapshot); err != nil {
		return Answer{}, fmt.Errorf("snapshot of nodes: %w", err)
	}
	nodes, err := p.snapshot.List()
	if err != nil {
		return Answer{}, fmt.Errorf("nodes of the snapshot: %w", err)
	}
	p.view.reset(nodes)
	defer p.view.reset(nil)
	for _, pod := range r.Gone {
		p.view.remove(pod)
	}
	for _, placed := range p.promisedToOthers(r.Sets) {
		if i, ok := p.view.index[placed.Node]; ok {
			p.view.add(i, placed.pod, placed.Count)
		}
	}
	var models []*model
	for _, set := range r.Sets {
		if set.Count < 1 {
			continue
		}
		m, err := newModel(set, p.claims)
		if err != nil {
			return Answer{}, err
		}
		models = append(models, m)
	}
	s := &search{framework: p.framework, view: p.view}
	shortage, err := s.place(ctx, models)
	return Answer{Fits: shortage == nil && err == nil, Placed: s.placed, Shortage: shortage, Nodes: len(nodes)}, err
}
