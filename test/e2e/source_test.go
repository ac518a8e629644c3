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

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The environment variables by which hack/test.sh chart has helm install its chart, where otherwise kustomize installs.
const (
	helmProgram = "JOBQUEUE_HELM"
	helmChart   = "JOBQUEUE_CHART"
)

const helmRelease = "koord-jobqueue"

func fromChart() bool { return os.Getenv(helmChart) != "" }

// install installs the system, with the definitions of Koordinator and of admission checks, and without the APIService:
// nobody answers behind it here. The flags are those of helm.
func (c *cluster) install(ctx context.Context, flags ...string) error {
	if !fromChart() {
		return c.Install(ctx)
	}
	if err := c.ApplyKoordinatorCRDs(ctx); err != nil {
		return err
	}
	return c.helm(ctx, "upgrade", append(flags, helmRelease, os.Getenv(helmChart), "--install", "--create-namespace",
		"--set=image.registry=registry.invalid/koord-jobqueue,admissionChecks.definitions=true,visibility.enabled=false")...)
}

// takeOver installs over objects that kustomize has made. Applied by the server, the actions of a policy would be those
// of both, and Warn with Deny is refused.
func (c *cluster) takeOver(ctx context.Context) error {
	return c.install(ctx, "--take-ownership", "--server-side=false")
}

// installTrees adds trees of quotas.
func (c *cluster) installTrees(ctx context.Context) error {
	if !fromChart() {
		return c.ApplyKustomize(ctx, "../../manifests/components/elasticquotatree")
	}
	return c.helm(ctx, "upgrade", helmRelease, os.Getenv(helmChart), "--reuse-values", "--take-ownership",
		"--set=elasticQuotaTree.enabled=true")
}

// remove removes the installation, and checks that nothing of it is left. Helm keeps the definitions, and the policy by
// which the API server goes on watching parameters.
func (c *cluster) remove(t *testing.T) {
	t.Helper()
	kept := map[string]int{}
	if fromChart() {
		kept = map[string]int{
			"validatingadmissionpolicies": 1, "validatingadmissionpolicybindings": 1, "customresourcedefinitions": 2,
		}
		require.NoError(t, c.helm(t.Context(), "uninstall", helmRelease))
	} else {
		require.NoError(t, c.DeleteKustomize(t.Context(), "../../manifests/overlays/default"))
	}
	for _, list := range []schema.GroupVersionResource{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	} {
		c.waitNamed(t, list, "jobqueue-", kept[list.Resource])
	}
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	c.waitNamed(t, definitions, "queue", kept[definitions.Resource])
}

// waitNamed waits until so many objects of a resource have a part in their names.
func (c *cluster) waitNamed(t *testing.T, of schema.GroupVersionResource, part string, n int) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		list, err := c.dyn.Resource(of).List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for i := range list.Items {
			name := list.Items[i].GetName()
			if strings.Contains(name, part) && !strings.HasPrefix(name, "jobqueue-playground-") { // rights of KWOK
				names = append(names, name)
			}
		}
		require.Len(t, names, n, "%s: %v", of.Resource, names)
	}, soon, pace)
}

// helm runs in the namespace that Koordinator's own release is usually in.
func (c *cluster) helm(ctx context.Context, verb string, args ...string) error {
	args = append([]string{verb}, append(args, "--namespace=koordinator-system",
		"--kubeconfig="+c.Kubeconfig(controlplane.Admin))...)
	command := exec.CommandContext(ctx, os.Getenv(helmProgram), args...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", verb, err, out.String())
	}
	return nil
}
