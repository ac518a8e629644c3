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

package controlplane

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kind is a kind of job.
type Kind struct {
	// Name is what the configuration calls it, such as PyTorchJob.v1.kubeflow.org, and Rights its directory of
	// manifests/components/kinds.
	Name, Rights string
}

// ManageKinds grants scheduler and controller the shipped rights for the kinds, and has jobs of these kinds managed and
// of no others. Processes that run take it within seconds.
func (c *ControlPlane) ManageKinds(ctx context.Context, kinds ...Kind) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString("kinds:\n")
	for _, kind := range kinds {
		if err := c.ApplyKustomize(ctx, filepath.Join(root, "manifests", "components", "kinds", kind.Rights)); err != nil {
			return err
		}
		text.WriteString("- " + kind.Name + "\n")
	}
	return c.ApplyObjects(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "koord-jobqueue-managed-jobs", "namespace": "koord-queue"},
		"data":     map[string]any{"managedJobs": text.String()},
	}})
}

// StandIn plays the operators that cannot be had here: see package test/harness/standin.
const StandIn Component = "standin"

// ApplyStandInCRDs applies the definitions of what the stand-in plays, and waits until they are served. Kinds in lower
// case ("rayjob") restrict it to some.
func (c *ControlPlane) ApplyStandInCRDs(ctx context.Context, kinds ...string) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	all, err := definitions(filepath.Join(root, "test", "harness", "standin", "crds", "*.yaml"))
	if err != nil {
		return err
	}
	wanted, err := definitionsOf(all, kinds)
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, wanted...)
}

// StartStandIn installs the kinds, in lower case ("rayjob"), starts a process that plays their operators, and waits
// until it is ready. MPIJob is impossible together with the training-operator, because both define the same resource.
func (c *ControlPlane) StartStandIn(ctx context.Context, kinds ...string) error {
	if err := c.ApplyStandInCRDs(ctx, kinds...); err != nil {
		return err
	}
	port, err := allPorts.next()
	if err != nil {
		return err
	}
	m, err := c.managed(StandIn, string(StandIn), "--kubeconfig="+c.Kubeconfig(OperatorIdentity),
		"--kinds="+strings.Join(kinds, ","), "--health-probe-bind-address="+hostPort(port))
	if err != nil {
		return err
	}
	m.ready = operatorReady(port, nil)
	return c.launch(ctx, m)
}

// definitionsOf returns the definitions of kinds in lower case, all if there are none.
func definitionsOf(all []*unstructured.Unstructured, kinds []string) ([]*unstructured.Unstructured, error) {
	var wanted []*unstructured.Unstructured
	for _, definition := range all {
		kind, _, err := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		if err != nil {
			return nil, err
		}
		if len(kinds) == 0 || slices.Contains(kinds, strings.ToLower(kind)) {
			wanted = append(wanted, definition)
		}
	}
	return wanted, nil
}
