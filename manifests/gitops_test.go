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

package manifests_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/certificate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/tenancyparams"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// written is a field of an installed object, and who wrote it. path has two elements.
type written struct{ group, kind, manager, path string }

// recipe is what one entry has Argo CD or Flux ignore.
type recipe struct {
	Group, Kind                  string
	Target                       struct{ Kind string }
	ManagedFieldsManagers, Paths []string
}

// TestGitOpsToolsIgnoreWhatIsWritten: docs/operators/install.md has Argo CD and Flux ignore each field that the
// controller writes into an installed object, and no other field.
func TestGitOpsToolsIgnoreWhatIsWritten(t *testing.T) {
	var page struct {
		IgnoreDifferences []recipe
		SyncPolicy        struct{ SyncOptions []string }
		DriftDetection    struct {
			Mode   string
			Ignore []recipe
		}
	}
	text, err := os.ReadFile("../docs/operators/install.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n### Argo CD and Flux\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		require.NoError(t, yaml.UnmarshalStrict([]byte(block[1]), &page))
	}

	fields := writtenFields(t)
	for tool, recipes := range map[string][]recipe{
		"Argo CD": page.IgnoreDifferences, "Flux": page.DriftDetection.Ignore,
	} {
		left := slices.Clone(fields)
		for _, r := range recipes {
			for _, name := range slices.Concat(r.ManagedFieldsManagers, r.Paths) {
				ignored := func(f written) bool {
					return r.Kind == f.kind && r.Group == f.group && name == f.manager ||
						r.Target.Kind == f.kind && strings.HasPrefix(f.path+"/", name+"/")
				}
				require.True(t, slices.ContainsFunc(fields, ignored), "%s: nobody writes what %v ignores", tool, r)
				left = slices.DeleteFunc(left, ignored)
			}
		}
		require.Empty(t, left, "%s does not ignore these", tool)
	}
}

// writtenFields has each installed object written that a role allows to write, by the code that does it.
func writtenFields(t *testing.T) (fields []written) {
	t.Helper()
	var installed []*unstructured.Unstructured
	var rights []rbacv1.PolicyRule
	builder := fake.NewClientBuilder().WithReturnManagedFields()
	for _, r := range build(t, "overlays/enforced").Resources() {
		object := &unstructured.Unstructured{}
		raw, err := r.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, object.UnmarshalJSON(raw))
		if data, ok := object.Object["data"].(map[string]any); ok && r.GetName() == ancestors.ConfigMap {
			data[ancestors.Key], data[tenancyparams.Namespaces] = "former", "former" // there are no quotas now
		}
		if strings.HasSuffix(r.GetKind(), "Role") {
			rights = append(rights, decode[rbacv1.ClusterRole](t, r).Rules...)
		}
		installed, builder = append(installed, object), builder.WithObjects(object)
	}
	c := builder.Build()

	tenancy := types.NamespacedName{Namespace: "koord-queue", Name: ancestors.ConfigMap}
	jobs := types.NamespacedName{Namespace: "koord-queue", Name: managedjobs.ConfigMap}
	predicate, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	for _, writer := range []reconcile.Reconciler{
		&ancestors.Reconciler{ConfigMap: tenancy, Client: c, Live: c},
		&tenancyparams.Reconciler{ConfigMap: tenancy, Client: c, Live: c, Params: &tenancyparams.Params{},
			Predicate: func() *managedjobs.Predicate { return predicate }},
		&controller.ManagedJobsReconciler{Key: jobs, Client: c, Use: func(*managedjobs.Predicate) {},
			Installed: func(alias.System) (bool, error) { return false, nil }},
	} {
		_, err := writer.Reconcile(t.Context(), reconcile.Request{NamespacedName: jobs})
		require.NoError(t, err)
	}
	ended, end := context.WithCancel(t.Context())
	end() // after one look
	require.NoError(t, (&certificate.Keeper{
		APIService: "v1alpha1.visibility.koord-queue.x-k8s.io",
		Secret:     types.NamespacedName{Namespace: "koordinator-system", Name: "koord-jobqueue-visibility"},
		Reader:     c, Writer: c, Clock: &clocktesting.FakeClock{},
	}).Start(ended))

	for _, o := range installed {
		gvk := o.GroupVersionKind()
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		may := slices.ContainsFunc(rights, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, gvk.Group) && slices.Contains(r.Resources, resource.Resource) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, o.GetName())) &&
				(slices.Contains(r.Verbs, "update") || slices.Contains(r.Verbs, "patch"))
		})
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		require.Equal(t, may, len(o.GetManagedFields()) > 0, "a role allows to write %s %s: it is written", gvk, o.GetName())
		for _, m := range o.GetManagedFields() {
			managed := map[string]map[string]any{}
			require.NoError(t, json.Unmarshal(m.FieldsV1.Raw, &managed))
			for above, names := range managed {
				for name := range names {
					path := strings.ReplaceAll(strings.TrimSuffix(above+name, "."), "f:", "/")
					fields = append(fields, written{gvk.Group, gvk.Kind, m.Manager, path})
				}
			}
		}
	}
	return fields
}
