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

package preflight

import (
	"errors"
	"fmt"
	"slices"

	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	koordconfig "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/defaultprebind"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
)

// JobQueue is the name of our plugin.
const JobQueue = "JobQueue"

// Setup is what a scheduler configuration asks of the cluster.
type Setup struct {
	// Profile is the first one that enables JobQueue, empty if none does.
	Profile string
	// Args of JobQueue, defaulted. PluginConfig has those of all plugins of the profile.
	Args         *config.JobQueueArgs
	PluginConfig []kubeschedulerconfig.PluginConfig
	// Plugins are the names of all plugins that some profile enables.
	Plugins map[string]bool
	// QuotaNamespace is where ElasticQuota keeps its built-in quotas; empty without ElasticQuota.
	QuotaNamespace string
	// NetworkTopology is the flag --enable-network-topology-manager.
	NetworkTopology bool
}

// Inspect reads a configuration. It refuses one in which JobQueue could not do its work.
func Inspect(cfg *kubeschedulerconfig.KubeSchedulerConfiguration, networkTopology bool) (Setup, error) {
	s := Setup{Plugins: map[string]bool{}, NetworkTopology: networkTopology}
	for i := range cfg.Profiles {
		profile := &cfg.Profiles[i]
		enabled := namesOf(profile.Plugins)
		for name := range enabled {
			s.Plugins[name] = true
		}
		if enabled[elasticquota.Name] && s.QuotaNamespace == "" {
			s.QuotaNamespace = quotaNamespace(profile)
		}
		if !enabled[JobQueue] {
			continue
		}
		if err := complete(profile, enabled); err != nil {
			return Setup{}, fmt.Errorf("profile %q: %w", profile.SchedulerName, err)
		}
		if s.Profile == "" {
			s.Profile, s.PluginConfig = profile.SchedulerName, profile.PluginConfig
			s.Args, _ = argsOf(profile, JobQueue).(*config.JobQueueArgs)
		}
	}
	return s, nil
}

const wouldGo = "pods of jobs that wait would be scheduled"

func complete(profile *kubeschedulerconfig.KubeSchedulerProfile, enabled map[string]bool) error {
	if !enabled[elasticquota.Name] {
		return errors.New("plugin JobQueue needs plugin ElasticQuota, which is not enabled")
	}
	p := profile.Plugins
	if disables(p.PreBind, defaultprebind.Name) && !has(p.PreBind, defaultprebind.Name) {
		return fmt.Errorf("plugin %s is disabled at preBind: what JobQueue says of a pod would not be written",
			defaultprebind.Name)
	}
	if has(p.MultiPoint, JobQueue) {
		return nil
	}
	for _, point := range []struct {
		name, without string
		set           kubeschedulerconfig.PluginSet
	}{
		{"preEnqueue", wouldGo, p.PreEnqueue}, {"preFilter", wouldGo, p.PreFilter}, {"reserve", wouldGo, p.Reserve},
		{"preBind", "pods would run for longer than their jobs may", p.PreBind},
	} {
		if !has(point.set, JobQueue) {
			return fmt.Errorf("plugin JobQueue is not enabled at %s: %s", point.name, point.without)
		}
	}
	return nil
}

func disables(set kubeschedulerconfig.PluginSet, name string) bool {
	return slices.ContainsFunc(set.Disabled, func(p kubeschedulerconfig.Plugin) bool {
		return p.Name == name || p.Name == "*"
	})
}

func has(set kubeschedulerconfig.PluginSet, name string) bool {
	return slices.ContainsFunc(set.Enabled, func(p kubeschedulerconfig.Plugin) bool { return p.Name == name })
}

func namesOf(plugins *kubeschedulerconfig.Plugins) map[string]bool {
	names := map[string]bool{}
	if plugins == nil {
		return names
	}
	for _, name := range plugins.Names() {
		names[name] = true
	}
	for _, plugin := range plugins.MultiPoint.Enabled {
		names[plugin.Name] = true
	}
	return names
}

func argsOf(profile *kubeschedulerconfig.KubeSchedulerProfile, plugin string) any {
	for i := range profile.PluginConfig {
		if profile.PluginConfig[i].Name == plugin {
			return profile.PluginConfig[i].Args
		}
	}
	return nil
}

func quotaNamespace(profile *kubeschedulerconfig.KubeSchedulerProfile) string {
	if args, ok := argsOf(profile, elasticquota.Name).(*koordconfig.ElasticQuotaArgs); ok &&
		args.QuotaGroupNamespace != "" {
		return args.QuotaGroupNamespace
	}
	return "koordinator-system"
}
