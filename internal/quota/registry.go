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

package quota

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// hookKey names our hook plugin and its factory to ElasticQuota.
const hookKey = "JobQueue"

// Registry captures the ElasticQuota plugin of one scheduler profile: the first that enables JobQueue. Every profile
// has an ElasticQuota of its own with its own used amounts. A second profile with JobQueue is not supported, because it
// would not know the reservations of the first.
type Registry struct {
	adapter *Adapter

	mu      sync.RWMutex
	profile string
	plugin  Live
	args    *config.ElasticQuotaArgs
}

// NewRegistry returns a registry that captures nothing and leaves ElasticQuota as it is, until a profile is enabled.
func NewRegistry() *Registry {
	r := &Registry{}
	r.adapter = newAdapter(r.captured)
	return r
}

// Enable makes the registry capture from the named profile. It must be called before the scheduler is built.
func (r *Registry) Enable(profile string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profile = profile
}

func (r *Registry) enabled(handle fwktype.Handle) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	profile, ok := handle.(framework.Framework)
	return ok && r.profile != "" && profile.ProfileName() == r.profile
}

// Adapter answers for the captured plugin, also before it is captured: then no quota exists.
func (r *Registry) Adapter() *Adapter { return r.adapter }

// RegisterHook makes our quota hook known to ElasticQuota. Koordinator keeps hook factories in an unguarded global map:
// call this once, from main, before the scheduler is built.
func (r *Registry) RegisterHook() {
	core.RegisterHookPluginFactory(hookKey, func(_ *core.QuotaInfoReader, key, _ string) (core.QuotaHookPlugin, error) {
		return &hook{key: key, shared: r.adapter}, nil
	})
}

// Factory builds ElasticQuota. In the captured profile the hook is added to a copy of the arguments, and the instance
// is embedded in a Plugin. Other profiles are unchanged.
func (r *Registry) Factory() frameworkruntime.PluginFactory {
	return func(ctx context.Context, obj runtime.Object, handle fwktype.Handle) (fwktype.Plugin, error) {
		args, ok := obj.(*config.ElasticQuotaArgs)
		if !ok {
			return nil, fmt.Errorf("want args to be of type ElasticQuotaArgs, got %T", obj)
		}
		if !r.enabled(handle) {
			return elasticquota.New(ctx, args, newSieve(handle).handle)
		}
		args = WithHook(args)
		sieve := newSieve(handle)
		sieve.metrics = metrics.Registered()
		plugin, err := elasticquota.New(ctx, args, sieve.handle)
		if err != nil {
			return nil, err
		}
		captured, ok := plugin.(*elasticquota.Plugin)
		if !ok {
			return nil, fmt.Errorf("want ElasticQuota to be of type *elasticquota.Plugin, got %T", plugin)
		}
		if err := r.capture(captured, args, handle); err != nil {
			return nil, err
		}
		return &Plugin{Plugin: captured, adapter: r.adapter, handle: handle, sieve: sieve}, nil
	}
}

func (r *Registry) capture(captured *elasticquota.Plugin, args *config.ElasticQuotaArgs, handle fwktype.Handle) error {
	return r.Capture(captured, args, captured.GetQuotaInformer(),
		handle.SharedInformerFactory().Core().V1().Nodes().Informer(),
		handle.SharedInformerFactory().Core().V1().Pods().Informer())
}

// WithHook returns a copy of the arguments that puts the registered hook into each GroupQuotaManager.
func WithHook(args *config.ElasticQuotaArgs) *config.ElasticQuotaArgs {
	args = args.DeepCopy()
	args.HookPlugins = append(args.HookPlugins, config.HookPluginConf{Key: hookKey, FactoryKey: hookKey})
	return args
}

// Capture makes the adapter answer from these live quotas, and follow the three informers. Factory does it with
// ElasticQuota; who has a GroupQuotaManager without a scheduler does it himself.
func (r *Registry) Capture(plugin Live, args *config.ElasticQuotaArgs, quotas, nodes, pods Handlers) error {
	r.mu.Lock()
	r.plugin, r.args = plugin, args
	r.mu.Unlock()
	return r.adapter.watch(quotas, nodes, pods)
}

// captured returns nil before ElasticQuota is built. Never keep a GroupQuotaManager that came from it: a tree's goes
// away with the quota at its top.
func (r *Registry) captured() (Live, *config.ElasticQuotaArgs) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.plugin == nil {
		return nil, nil
	}
	return r.plugin, r.args
}

// Live is what the adapter needs of *elasticquota.Plugin.
type Live interface {
	GetQuotaName(pod *corev1.Pod) string
	GetGroupQuotaManagerForQuota(quota string) *core.GroupQuotaManager
	GetGroupQuotaManagerForTree(tree string) *core.GroupQuotaManager
	ListGroupQuotaManagersForQuotaTree() []*core.GroupQuotaManager
}
