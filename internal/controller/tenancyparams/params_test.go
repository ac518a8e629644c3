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

package tenancyparams

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

func namespace(name string, labels map[string]string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestNamespacesAreWrittenAndTheBoundIsRead(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(elasticquota.Kind, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(elasticquota.Kind.GroupVersion().WithKind("ElasticQuotaList"),
		&metav1.PartialObjectMetadataList{})
	taker := elasticquota.New()
	taker.Name, taker.Namespace = "research", "quotas"
	taker.Annotations = map[string]string{extension.AnnotationQuotaNamespaces: `["mapped","labelled"]`}
	placed := map[string]string{"team": "a"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRuntimeObjects(
		taker, namespace("mapped", nil), namespace("placed", placed), namespace("other", nil),
		namespace("labelled", map[string]string{v1alpha1.LabelManaged: "true"}), namespace("kube-system", placed),
	).Build()
	predicate, err := managedjobs.NewPredicate(managedjobs.Jobs{
		ManageMappedNamespaces: managedjobs.MappedAlways,
		Placement: []quotapath.Rule{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: placed}, Path: "root.{namespace}",
		}},
	})
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "koord-queue", Name: ancestors.ConfigMap}
	r := &Reconciler{ConfigMap: key, Client: c, Live: c, Params: &Params{},
		Predicate: func() *managedjobs.Predicate { return predicate }}
	reconcile := func() {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		require.NoError(t, err)
		require.Equal(t, checkAgain, result.RequeueAfter)
	}
	reconcile() // the ConfigMap is absent
	require.EqualValues(t, 3600, r.Params.Termination())
	have := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data: map[string]string{"authors": "a", termination: "7200"}}
	require.NoError(t, c.Create(t.Context(), have))
	reconcile()
	require.NoError(t, c.Get(t.Context(), key, have))
	require.Equal(t, map[string]string{"authors": "a", termination: "7200", Namespaces: "mapped\nplaced\n"}, have.Data)
	require.EqualValues(t, 7200, r.Params.Termination())
	version := have.ResourceVersion
	reconcile()
	require.NoError(t, c.Get(t.Context(), key, have))
	require.Equal(t, version, have.ResourceVersion, "nothing is written anew")

	fresh := &Params{}
	require.NoError(t, Read(t.Context(), c, "nowhere", fresh))
	require.EqualValues(t, 3600, fresh.Termination())
	require.NoError(t, Read(t.Context(), c, key.Namespace, fresh))
	require.EqualValues(t, 7200, fresh.Termination())
}

func TestWhatIsNoBoundIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "an hour", "-1", "0", "99999999999999999999"} {
		p := &Params{}
		p.read(map[string]string{termination: text})
		require.EqualValues(t, 3600, p.Termination(), text)
	}
	require.EqualValues(t, 3600, (*Params)(nil).Termination())
}

func TestLinesAreBounded(t *testing.T) {
	var names []string
	for i := range 4000 {
		names = append(names, fmt.Sprintf("%063d", i))
	}
	text, left := lines(names)
	require.LessOrEqual(t, len(text), mostBytes)
	require.Equal(t, 4000, strings.Count(text, "\n")+left)
	require.Positive(t, left)
}
