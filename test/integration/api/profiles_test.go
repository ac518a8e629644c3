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

package api_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/estimate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// controllerCache reads as the controller does, with only the shipped rights.
func controllerCache(t *testing.T) cache.Cache {
	t.Helper()
	scheme, err := controller.Scheme()
	require.NoError(t, err)
	options := controller.CacheOptions("koord-queue")
	options.Scheme = scheme
	c, err := cache.New(server.RESTConfig(controlplane.ControllerIdentity), options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.True(t, c.WaitForCacheSync(ctx))
	return c
}

func profilesOf(t *testing.T, c cache.Cache) *estimate.Profiles {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p := estimate.NewProfiles(c, clock.RealClock{},
		servedHere(ctx, t, server.RESTConfig(controlplane.ControllerIdentity)))
	go func() { _ = p.Start(ctx) }()
	return p
}

// servedHere says what the API server serves, until the context ends.
func servedHere(ctx context.Context, t *testing.T, config *rest.Config) *served.Index {
	t.Helper()
	index, err := served.New(config, clock.RealClock{})
	require.NoError(t, err)
	go index.Start(ctx)
	return index
}

// TestWhatTheEstimateReads: profiles may be absent without anything to wait for; all else that the estimate needs can
// be read with the controller's own rights.
func TestWhatTheEstimateReads(t *testing.T) {
	connect(t)
	const patience, often = 30 * time.Second, 50 * time.Millisecond
	crd := "clustercolocationprofiles.config.koordinator.sh"
	c := controllerCache(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, c.List(ctx, &corev1.LimitRangeList{}))
	require.NoError(t, c.List(ctx, &nodev1.RuntimeClassList{}))
	webhooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := c.Get(ctx, client.ObjectKey{Name: "koordinator-mutating-webhook-configuration"}, webhooks)
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	absent := profilesOf(t, c)
	require.Eventually(t, absent.Settled, patience, often)
	require.False(t, absent.Readable())

	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/koordinator-sh/koordinator").
		Output()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "bases",
		"config.koordinator.sh_clustercolocationprofiles.yaml"))
	require.NoError(t, err)
	require.NoError(t, server.Apply(ctx, text))
	t.Cleanup(func() {
		_ = clientOf(t, controlplane.Admin).Resource(crds).Delete(context.Background(), crd, metav1.DeleteOptions{})
	})
	waitEstablished(t, clientOf(t, controlplane.Admin), crd)
	profile := &configv1alpha1.ClusterColocationProfile{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	profile.Spec.QoSClass = "BE"
	create := func() bool { return typedClient(t).Create(ctx, profile) == nil }
	require.Eventually(t, create, patience, often, "discovery comes to an established definition later")

	present := profilesOf(t, c)
	require.Eventually(t, present.Readable, patience, often)
	require.True(t, present.Settled())
	list := &configv1alpha1.ClusterColocationProfileList{}
	require.Eventually(t, func() bool { return c.List(ctx, list) == nil && len(list.Items) == 1 }, patience, often)
	require.Equal(t, "BE", list.Items[0].Spec.QoSClass)
}
