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

package ancestors

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
)

func TestTheLinesAreWrittenBesideWhatAdministratorsWrote(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(elasticquota.Kind, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(elasticquota.Kind.GroupVersion().WithKind("ElasticQuotaList"),
		&metav1.PartialObjectMetadataList{})
	org, ray := elasticquota.New(), elasticquota.New()
	org.Name, org.Namespace = "org", "quotas"
	ray.Name, ray.Namespace, ray.Labels = "ray", "quotas", map[string]string{v1alpha1.LabelQuotaParent: "org"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRuntimeObjects(org, ray).Build()
	key := types.NamespacedName{Namespace: "koord-queue", Name: ConfigMap}
	r := &Reconciler{ConfigMap: key, Client: c, Live: c}
	reconcile := func() {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		require.NoError(t, err)
		require.Equal(t, checkAgain, result.RequeueAfter)
	}
	reconcile() // the ConfigMap is absent
	have := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data: map[string]string{"authors": "a"}}
	require.NoError(t, c.Create(t.Context(), have))
	reconcile()
	require.NoError(t, c.Get(t.Context(), key, have))
	require.Equal(t, map[string]string{"authors": "a", Key: "ray org\n"}, have.Data)
	version := have.ResourceVersion
	reconcile()
	require.NoError(t, c.Get(t.Context(), key, have))
	require.Equal(t, version, have.ResourceVersion, "nothing is written anew")
	require.NoError(t, c.Delete(t.Context(), client.Object(ray)))
	reconcile()
	require.NoError(t, c.Get(t.Context(), key, have))
	require.Empty(t, have.Data[Key])
}
