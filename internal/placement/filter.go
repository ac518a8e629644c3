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
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// profileName is the label of the filters in metrics of the scheduler.
const profileName = "koord-jobqueue-placement"

// filterPlugins are the in-tree plugins with a filter, in the order of kube-scheduler.
var filterPlugins = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
	names.NodeResourcesFit, names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
	names.PodTopologySpread, names.InterPodAffinity,
}

// preFilterPlugins are those of filterPlugins that prepare a cycle.
var preFilterPlugins = []string{
	names.NodeAffinity, names.NodePorts, names.NodeResourcesFit, names.VolumeRestrictions, names.NodeVolumeLimits,
	names.VolumeBinding, names.VolumeZone, names.PodTopologySpread, names.InterPodAffinity,
}

// newFramework makes a framework of the in-tree filters. It has no client, so no plugin can write.
func newFramework(
	ctx context.Context, c Config, lister fwk.SharedLister, factory informers.SharedInformerFactory,
) (framework.Framework, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("defaults of the scheduler: %w", err)
	}
	args := map[string]config.PluginConfig{}
	for _, a := range slices.Concat(defaults.Profiles[0].PluginConfig, c.PluginConfig) {
		if slices.Contains(filterPlugins, a.Name) || a.Name == names.DynamicResources {
			args[a.Name] = a
		}
	}
	enabled := func(lists ...[]string) (set config.PluginSet) {
		for _, list := range lists {
			for _, name := range list {
				set.Enabled = append(set.Enabled, config.Plugin{Name: name})
			}
		}
		return set
	}
	var claims []string
	options := []runtime.Option{
		runtime.WithSnapshotSharedLister(lister),
		runtime.WithInformerFactory(factory),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		runtime.WithParallelism(1),
	}
	if c.Claims != nil {
		claims = []string{names.DynamicResources}
		options = append(options, runtime.WithSharedDRAManager(c.Claims))
	}
	profile := &config.KubeSchedulerProfile{SchedulerName: profileName, Plugins: &config.Plugins{
		PreFilter: enabled(preFilterPlugins, claims),
		Filter:    enabled(filterPlugins, claims),
		// A framework is not made without one of both.
		QueueSort: enabled([]string{names.PrioritySort}),
		Bind:      enabled([]string{names.DefaultBinder}),
	}}
	for _, a := range args {
		profile.PluginConfig = append(profile.PluginConfig, a)
	}
	return runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile, options...)
}

// cycle runs the filters for one model on the nodes of a view, as a scheduling cycle does.
type cycle struct {
	framework framework.Framework
	model     *model
	state     fwk.CycleState
	// only are the nodes that PreFilter leaves, all if it is nil. The status of all others is elsewhere.
	only      sets.Set[string]
	elsewhere *fwk.Status
	// rejected is the status of all nodes, if PreFilter rejects the pod.
	rejected *fwk.Status
	// grown are domains of the spread that have a pod which the state does not know.
	grown map[domain]bool
}

// newCycle runs PreFilter. It returns an error if a plugin has one.
func newCycle(ctx context.Context, f framework.Framework, m *model) (*cycle, error) {
	c := &cycle{framework: f, model: m, state: framework.NewCycleState(), grown: map[domain]bool{}}
	result, status, by := f.RunPreFilterPlugins(ctx, c.state, m.info.Pod)
	switch {
	case status.IsRejected():
		c.rejected = status
	case !status.IsSuccess():
		return nil, status.AsError()
	case !result.AllNodes():
		c.only = result.NodeNames
		c.elsewhere = fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(by)))
	}
	return c, nil
}

// filter returns why a node takes no pod of the model, nil if it takes one.
func (c *cycle) filter(ctx context.Context, node fwk.NodeInfo) (*fwk.Status, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.rejected != nil:
		return c.rejected, nil
	case c.only != nil && !c.only.Has(node.Node().Name):
		return c.elsewhere, nil
	}
	status := c.framework.RunFilterPlugins(ctx, c.state, c.model.info.Pod, node)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	return status, nil
}

// added returns the cycle of the next pod, after one was added to a node.
func (c *cycle) added(ctx context.Context, node fwk.NodeInfo) (*cycle, error) {
	switch {
	case c.model.volumes || len(c.model.spread) > 0 && c.model.terms:
		// A plugin that has skipped the first pod does not see a volume that the pods share.
		return newCycle(ctx, c.framework, c.model)
	case len(c.model.spread) > 0:
		// PodTopologySpread is not told: it keeps the two emptiest domains only, and after some pods it takes too many
		// for the least. Without the pod its answers hold for all other domains, because the least does not fall.
		for _, key := range c.model.spread {
			c.grown[domain{key, node.Node().Labels[key]}] = true
		}
		return c, nil
	default:
		status := c.framework.RunPreFilterExtensionAddPod(ctx, c.state, c.model.info.Pod, c.model.info, node)
		return c, status.AsError()
	}
}

// stale says whether the cycle cannot judge a node, because a domain of the node has grown.
func (c *cycle) stale(node *v1.Node) bool {
	return slices.ContainsFunc(c.model.spread, func(key string) bool { return c.grown[domain{key, node.Labels[key]}] })
}
