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

package certificate

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func decodePEM(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(content)
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return certificate
}

const apiService = "v1alpha1.visibility.koord-queue.x-k8s.io"

func keeperOf(t *testing.T, objects ...client.Object) (*Keeper, *clocktesting.FakeClock) {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	clock := clocktesting.NewFakeClock(start)
	return &Keeper{
		APIService: apiService, Secret: types.NamespacedName{Namespace: "koordinator-system", Name: "visibility"},
		Reader: c, Writer: c, Clock: clock,
	}, clock
}

func service(annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"service": map[string]any{"name": "koord-jobqueue-visibility", "namespace": "koordinator-system"},
	}}}
	o.SetGroupVersionKind(apiServiceKind)
	o.SetName(apiService)
	o.SetAnnotations(annotations)
	return o
}

func secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "koordinator-system", Name: "visibility"}}
}

func (k *Keeper) read(t *testing.T) (data map[string][]byte, bundle string) {
	t.Helper()
	s, a := &corev1.Secret{}, service(nil)
	require.NoError(t, k.Reader.Get(t.Context(), k.Secret, s))
	require.NoError(t, k.Reader.Get(t.Context(), types.NamespacedName{Name: apiService}, a))
	text, _, _ := unstructured.NestedString(a.Object, "spec", "caBundle")
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return s.Data, string(raw)
}

func TestKeeperWritesSecretAndBundle(t *testing.T) {
	k, clock := keeperOf(t, service(nil), secret())
	_, err := k.look(t.Context())
	require.NoError(t, err)
	data, bundle := k.read(t)
	require.Equal(t, string(data["tls.crt"]), bundle)
	require.Equal(t, []string{host}, decodePEM(t, data["tls.crt"]).DNSNames)

	clock.SetTime(start.Add(life - spare))
	_, err = k.look(t.Context())
	require.NoError(t, err)
	later, bundle := k.read(t)
	require.Equal(t, data["tls.crt"], later["tls.crt"])
	require.Equal(t, string(data["tls.crt"])+string(later["next.crt"]), bundle)
}

func TestKeeperMendsTheBundle(t *testing.T) {
	k, _ := keeperOf(t, service(nil), secret())
	_, err := k.look(t.Context())
	require.NoError(t, err)
	_, bundle := k.read(t)
	require.NoError(t, k.Writer.Patch(t.Context(), service(nil),
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"caBundle":"AA=="}}`))))
	_, err = k.look(t.Context())
	require.NoError(t, err)
	_, mended := k.read(t)
	require.Equal(t, bundle, mended)
}

func TestKeeperLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	t.Run("not installed", func(t *testing.T) {
		k, _ := keeperOf(t, secret())
		_, err := k.look(t.Context())
		require.NoError(t, err)
	})
	t.Run("no right to it, as without the component", func(t *testing.T) {
		k, _ := keeperOf(t, service(nil), secret())
		k.Reader = interceptor.NewClient(k.Writer.(client.WithWatch), interceptor.Funcs{Get: func(
			_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption,
		) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, key.Name, nil)
		}})
		after, err := k.look(t.Context())
		require.NoError(t, err)
		require.Equal(t, lookEvery, after)
	})
	t.Run("cert-manager's", func(t *testing.T) {
		k, _ := keeperOf(t, service(map[string]string{injectedBy: "koordinator-system/visibility"}), secret())
		_, err := k.look(t.Context())
		require.NoError(t, err)
		data, bundle := k.read(t)
		require.Empty(t, data)
		require.Empty(t, bundle)
	})
	t.Run("no Secret", func(t *testing.T) {
		k, _ := keeperOf(t, service(nil))
		_, err := k.look(t.Context())
		require.Error(t, err)
	})
}

func TestKeeperEnds(t *testing.T) {
	k, _ := keeperOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, k.Start(ctx))
}
