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

// Package survey reads nodes and quotas from time to time. With the result package doubt can warn of jobs that can
// never run.
package survey

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
)

// Cluster is as much of nodes and quotas as tells what can never be. It may be some minutes old, and nothing is decided
// by it: people are warned.
type Cluster struct {
	// Nodes are the different nodes that pods may come on; none where that is not known.
	Nodes []Node
	// Quotas by name.
	Quotas map[string]Quota
}

// Quota is what a quota has a max for. IsParent says that its label makes it a parent of others.
type Quota struct {
	Parent   string
	IsParent bool
	Limited  sets.Set[corev1.ResourceName]
}

// Limits says whether a quota, or one above it, has a max for a resource; known whether there is such a quota.
func (c *Cluster) Limits(quota string, of corev1.ResourceName) (limited, known bool) {
	for range maxQuotaDepth {
		q, ok := c.Quotas[quota]
		if !ok {
			return limited, known
		}
		if known = true; q.Limited.Has(of) {
			return true, true
		}
		quota = q.Parent
	}
	return false, known
}

// maxQuotaDepth ends a circle of parents.
const maxQuotaDepth = 64

// clusterRefresh is the least time between two looks at nodes and quotas.
const clusterRefresh = 5 * time.Minute

// Survey looks at the cluster now and then, page by page, and keeps what Cluster has of it. It is safe for concurrent
// use; nil has seen nothing.
type Survey struct {
	live  client.Reader
	clock clock.PassiveClock

	// looking is locked by the caller that looks. last is nil before the first look.
	looking sync.Mutex
	last    atomic.Pointer[sight]
}

type sight struct {
	at      time.Time
	cluster *Cluster
}

// New reads from the API server itself.
func New(live client.Reader, clk clock.PassiveClock) *Survey {
	return &Survey{live: live, clock: clk}
}

// Look returns what was seen last, after another look if that is old. While one caller looks, the others go on with
// what was seen before. They wait for the first look: nobody warns later of a job that has entered.
func (s *Survey) Look(ctx context.Context) *Cluster {
	if s == nil {
		return nil
	}
	last := s.last.Load()
	switch {
	case last == nil:
		s.looking.Lock()
	case s.clock.Now().Before(last.at.Add(clusterRefresh)) || !s.looking.TryLock():
		return last.cluster
	}
	defer s.looking.Unlock()
	if now := s.last.Load(); now != last {
		return now.cluster // somebody has looked in the meantime
	}
	at := s.clock.Now()
	seen := &Cluster{Quotas: map[string]Quota{}}
	if err := s.readNodes(ctx, seen); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read nodes; nobody is warned of pods that are larger than any")
		seen.Nodes = nil
	}
	if err := s.readQuotas(ctx, seen); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read quotas; nobody is warned of resources that they do not limit")
		clear(seen.Quotas)
	}
	s.last.Store(&sight{at, seen})
	return seen
}

// surveyPage is how many objects are read at once, and so kept in memory.
const surveyPage = 250

func (s *Survey) readNodes(ctx context.Context, into *Cluster) error {
	known := map[uint64]bool{}
	var hash maphash.Hash
	nodes := &corev1.NodeList{}
	for {
		err := s.live.List(ctx, nodes, client.Limit(surveyPage), client.Continue(nodes.Continue))
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			node := nodeOf(&nodes.Items[i], len(into.Nodes) < mostLabelled)
			if sum := node.hash(&hash); !known[sum] {
				known[sum] = true
				into.Nodes = append(into.Nodes, node)
			}
		}
		if nodes.Continue == "" {
			return nil
		}
	}
}

func (s *Survey) readQuotas(ctx context.Context, into *Cluster) error {
	quotas := &unstructured.UnstructuredList{}
	quotas.SetGroupVersionKind(elasticquota.Kind.GroupVersion().WithKind(elasticquota.Kind.Kind + "List"))
	for {
		err := s.live.List(ctx, quotas, client.Limit(surveyPage), client.Continue(quotas.GetContinue()))
		if err != nil {
			return err
		}
		for i := range quotas.Items {
			q := &quotas.Items[i]
			most, _, _ := unstructured.NestedMap(q.Object, "spec", "max")
			limited := sets.New[corev1.ResourceName]()
			for name := range most {
				limited.Insert(corev1.ResourceName(name))
			}
			into.Quotas[q.GetName()] = Quota{
				Parent: q.GetLabels()[v1alpha1.LabelQuotaParent], Limited: limited,
				IsParent: q.GetLabels()[extension.LabelQuotaIsParent] == "true",
			}
		}
		if quotas.GetContinue() == "" {
			return nil
		}
	}
}
