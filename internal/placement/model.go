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
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// model is a pod set as the filters see it.
type model struct {
	PodSet
	info    *framework.PodInfo
	request fwk.Resource
	// counted: one run of the filters per node and arithmetic place all pods.
	counted bool
	// volumes: pods of the set share volumes. terms: the pod has required terms towards other pods.
	volumes, terms bool
	// spread are the topology keys that the pods must be spread over.
	spread []string
	// ports: the pod has host ports, so a node takes one.
	ports bool
	// apart are the terms of anti-affinity that keep pods of the set apart.
	apart []fwk.AffinityTerm
}

// newModel reads a pod set. It returns an error if a term of affinity cannot be read. The filters of claims run only if
// claims is true.
func newModel(set PodSet, claims bool) (*model, error) {
	pod := set.Template.DeepCopy()
	pod.UID = types.UID(fmt.Sprintf("%s/%s", set.Unit, set.Name))
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.Ephemeral != nil })
	pod.Spec.ResourceClaims = slices.DeleteFunc(pod.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool {
		return !claims || c.ResourceClaimTemplateName != nil
	})
	var affinity, anti []v1.PodAffinityTerm
	if a := pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			affinity = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		if a.PodAntiAffinity != nil {
			anti = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
	}
	mergeLabelKeys(affinity, pod.Labels)
	mergeLabelKeys(anti, pod.Labels)
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("pod set %q: %w", set.Name, err)
	}
	m := &model{
		PodSet: set, info: info,
		// The first call keeps the result in the info, which is only read from here on.
		request: info.CalculateResource().Resource,
		ports:   len(schedutil.GetHostPorts(pod)) > 0,
		volumes: slices.ContainsFunc(pod.Spec.Volumes, shared),
		terms:   len(affinity)+len(anti) > 0,
	}
	for _, term := range info.GetRequiredAntiAffinityTerms() {
		if term.Matches(pod, nil) {
			m.apart = append(m.apart, term)
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == v1.DoNotSchedule {
			m.spread = append(m.spread, c.TopologyKey)
		}
	}
	m.counted = !m.volumes && len(m.spread) == 0 && len(pod.Spec.ResourceClaims) == 0 && len(affinity) == 0 &&
		!slices.ContainsFunc(anti, byNamespaceLabels)
	return m, nil
}

// mergeLabelKeys merges label keys into the selectors, as the API server does when it creates a pod.
func mergeLabelKeys(terms []v1.PodAffinityTerm, labels map[string]string) {
	for i := range terms {
		selector := terms[i].LabelSelector
		if selector == nil {
			continue
		}
		merge := func(keys []string, operator metav1.LabelSelectorOperator) {
			for _, key := range keys {
				if value, ok := labels[key]; ok {
					selector.MatchExpressions = append(selector.MatchExpressions,
						metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
				}
			}
		}
		merge(terms[i].MatchLabelKeys, metav1.LabelSelectorOpIn)
		merge(terms[i].MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
}

// shared volumes are those that a second pod may be refused for.
func shared(v v1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
		v.ISCSI != nil || v.RBD != nil
}

func byNamespaceLabels(t v1.PodAffinityTerm) bool { return t.NamespaceSelector != nil }

// slots returns how many pods of the model a node takes, if it takes one: at least 0. It may be less than the filters
// allow, for a resource that they do not look at.
func (m *model) slots(node fwk.NodeInfo) int {
	all, used := node.GetAllocatable(), node.GetRequested()
	slots := int64(all.GetAllowedPodNumber() - len(node.GetPods()))
	bound := func(request, all, used int64) {
		if request > 0 {
			slots = min(slots, (all-used)/request)
		}
	}
	bound(m.request.GetMilliCPU(), all.GetMilliCPU(), used.GetMilliCPU())
	bound(m.request.GetMemory(), all.GetMemory(), used.GetMemory())
	bound(m.request.GetEphemeralStorage(), all.GetEphemeralStorage(), used.GetEphemeralStorage())
	for name, request := range m.request.GetScalarResources() {
		bound(request, all.GetScalarResources()[name], used.GetScalarResources()[name])
	}
	if m.ports || len(m.domains(node.Node())) > 0 {
		slots = min(slots, 1)
	}
	return int(max(slots, 0))
}

// domain is a value of a topology key, such as a zone.
type domain struct{ key, value string }

// domains of a node that take one pod of the model at most.
func (m *model) domains(node *v1.Node) (domains []domain) {
	for _, term := range m.apart {
		if value, ok := node.Labels[term.TopologyKey]; ok {
			domains = append(domains, domain{term.TopologyKey, value})
		}
	}
	return domains
}
