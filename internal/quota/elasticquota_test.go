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
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned"
	eqfake "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned/fake"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
)

// pluginHandle is as much of a scheduler as ElasticQuota's constructor asks for.
type pluginHandle struct {
	fwktype.Handle
	versioned.Interface
	clients   kubernetes.Interface
	informers informers.SharedInformerFactory
}

func (h *pluginHandle) ClientSet() kubernetes.Interface { return h.clients }

func (h *pluginHandle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }

// realPlugin is ElasticQuota itself. It is built once and then emptied for every case: its constructor starts informers
// that never end. Objects reach it through its exported handlers, as from those informers.
type realPlugin struct {
	*elasticquota.Plugin
	// args are those of the plugin: what is changed here holds from the next reset on.
	args *config.ElasticQuotaArgs
}

func newRealPlugin(t *testing.T) *realPlugin {
	t.Helper()
	if gates, ok := clientfeatures.FeatureGates().(interface {
		Set(key clientfeatures.Feature, value bool) error
	}); ok {
		// The fake clientset does not stream lists.
		require.NoError(t, gates.Set(clientfeatures.WatchListClient, false))
	}
	// ElasticQuota says at length what it does.
	klog.SetLogger(logr.Discard())
	r := &realPlugin{args: defaultPluginArgs()}
	clients := kubefake.NewClientset()
	plugin, err := elasticquota.New(t.Context(), r.args, &pluginHandle{
		Interface: eqfake.NewSimpleClientset(), clients: clients, informers: informers.NewSharedInformerFactory(clients, 0),
	})
	require.NoError(t, err)
	r.Plugin = plugin.(*elasticquota.Plugin)
	return r
}

func defaultPluginArgs() *config.ElasticQuotaArgs {
	huge := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(math.MaxInt64/5, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(math.MaxInt64/5, resource.BinarySI),
	}
	return &config.ElasticQuotaArgs{
		EnableRuntimeQuota: true, EnableMinQuotaScale: true, QuotaGroupNamespace: "koordinator-system",
		DefaultQuotaGroupMax: huge, SystemQuotaGroupMax: huge.DeepCopy(),
	}
}

// reset makes the plugin what it is after a restart of the scheduler that finds these quotas.
func (r *realPlugin) reset(t require.TestingT, quotas ...*v1alpha1.ElasticQuota) {
	objects := make([]any, 0, len(quotas))
	for _, q := range quotas {
		objects = append(objects, q)
	}
	require.NoError(t, r.GetQuotaInformer().GetIndexer().Replace(objects, "1"))
	require.NoError(t, r.ReplaceQuotas(objects))
}

// hooked resets the plugin with the hook of a new registry in it, and returns the adapter that reads it.
func (r *realPlugin) hooked(t require.TestingT, quotas ...*v1alpha1.ElasticQuota) *Adapter {
	registry := NewRegistry()
	registry.RegisterHook()
	r.args.HookPlugins = []config.HookPluginConf{{Key: hookKey, FactoryKey: hookKey}}
	r.reset(t, quotas...)
	registry.plugin, registry.args = r.Plugin, r.args
	for _, q := range quotas {
		registry.Adapter().onQuota(nil, q)
	}
	return registry.Adapter()
}

// setQuota is what the informer does with a new or changed quota: the store first, then the handlers.
func (r *realPlugin) setQuota(t require.TestingT, q *v1alpha1.ElasticQuota) {
	store := r.GetQuotaInformer().GetIndexer()
	old, existed, err := store.Get(q)
	require.NoError(t, err)
	if !existed {
		require.NoError(t, store.Add(q))
		r.OnQuotaAdd(q)
		return
	}
	require.NoError(t, store.Update(q))
	r.OnQuotaUpdate(old, q)
}

func (r *realPlugin) deleteQuota(t require.TestingT, q *v1alpha1.ElasticQuota) {
	require.NoError(t, r.GetQuotaInformer().GetIndexer().Delete(q))
	r.OnQuotaDelete(cache.DeletedFinalStateUnknown{Key: q.Namespace + "/" + q.Name, Obj: q})
}

// refuses asks ElasticQuota's PreFilter and returns why it refuses the pod, or "".
func (r *realPlugin) refuses(ctx context.Context, pod *corev1.Pod) string {
	_, status := r.PreFilter(ctx, framework.NewCycleState(), pod, nil)
	if status.IsSuccess() || status.IsSkip() {
		return ""
	}
	return status.Message()
}

func (r *realPlugin) reserve(ctx context.Context, pod *corev1.Pod) {
	r.Reserve(ctx, framework.NewCycleState(), pod, "node")
}

func (r *realPlugin) unreserve(ctx context.Context, pod *corev1.Pod) {
	r.Unreserve(ctx, framework.NewCycleState(), pod, "node")
}

// refreshAll computes every runtime again, as ElasticQuota's controller does every ten seconds. Each level needs two
// rounds. The min of a quota is scaled only when that quota is refreshed, and others see that at their next refresh.
func (r *realPlugin) refreshAll() {
	for _, mgr := range managers(r) {
		names := slices.Sorted(maps.Keys(mgr.GetAllQuotaNames()))
		for range 2 * maxDepth(mgr, names) {
			for _, name := range names {
				mgr.RefreshRuntime(name)
			}
		}
	}
}

func maxDepth(mgr *core.GroupQuotaManager, names []string) int {
	deepest := 1
	for _, name := range names {
		depth := 0
		for at := name; at != extension.RootQuotaName && depth <= len(names); depth++ {
			info := mgr.GetQuotaInfoByName(at)
			if info == nil {
				break
			}
			at = parentOf(info)
		}
		deepest = max(deepest, depth)
	}
	return deepest
}
