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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/coscheduling"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/deviceshare"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/loadaware"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/nodenumaresource"
)

// How to get what is missing.
const (
	getKoordinator = "install Koordinator v1.8, its config/crd/bases has it"
	getCRDs        = "kubectl apply -k manifests/base/crd"
	getRights      = "kubectl apply -k manifests/base/rbac"
)

// need is one thing without which the scheduler does not work.
type need struct {
	resource schema.GroupVersionResource
	// subresource and verbs beyond list and watch, which every need has.
	writes []access
	// namespace is set for the need of a namespace; resource is unset then.
	namespace string
	get       string
}

type access struct{ verb, subresource string }

// needs lists what this setup needs, in the order in which a person would provide it. No kind of jobs is among it: one
// that is not installed is followed from when it is.
func (s Setup) needs() []need {
	var needs []need
	if s.QuotaNamespace != "" {
		needs = append(needs, need{namespace: s.QuotaNamespace, get: "kubectl create namespace " + s.QuotaNamespace})
	}
	koordinator := func(wanted bool, group, resource string) {
		if wanted {
			needs = append(needs, need{
				resource: schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: resource},
				get:      getKoordinator,
			})
		}
	}
	koordinator(s.Plugins[elasticquota.Name], "scheduling.sigs.k8s.io", "elasticquotas")
	koordinator(s.Plugins[coscheduling.Name], "scheduling.sigs.k8s.io", "podgroups")
	koordinator(true, "scheduling.koordinator.sh", "reservations")
	koordinator(s.Plugins[deviceshare.Name], "scheduling.koordinator.sh", "devices")
	koordinator(s.Plugins[loadaware.Name], "slo.koordinator.sh", "nodemetrics")
	koordinator(s.Plugins[nodenumaresource.Name], "topology.node.k8s.io", "noderesourcetopologies")
	koordinator(s.NetworkTopology, "scheduling.koordinator.sh", "clusternetworktopologies")
	if s.Profile == "" {
		return needs
	}
	for _, resource := range []string{"queues", "queueunits"} {
		needs = append(needs, need{
			resource: schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: resource},
			writes:   []access{{verb: "patch", subresource: "status"}},
			get:      getCRDs,
		})
	}
	return needs
}
