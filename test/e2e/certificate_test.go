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
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The controller makes the certificate, with the shipped rights, and the API server verifies the scheduler by it; when
// there is another one the scheduler serves that without a restart.
func TestVisibilityIsVerified(t *testing.T) {
	c := start(t, "visibility-verified", controlplane.Options{Nodes: 1})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("scheduler:\n%s", c.LogTail(controlplane.Scheduler, 40))
			t.Logf("controller:\n%s", c.LogTail(controlplane.Controller, 40))
		}
		_ = c.Stop()
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	port, err := controlplane.VisibilityPort()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{
		VisibilityPort: port, VisibilityCertDir: dir,
	}))
	require.NoError(t, c.InstallVisibility(ctx, port, true))
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{}))
	require.NoError(t, c.MountVisibilityCertificate(ctx, dir))
	require.NoError(t, c.AwaitVisibility(ctx))

	secrets := c.kube.CoreV1().Secrets("koordinator-system")
	mounted := func() string {
		certificate, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
		require.NoError(t, err)
		return string(certificate)
	}
	first := mounted()
	before := c.PID(controlplane.Scheduler)
	_, err = secrets.Patch(ctx, "koord-jobqueue-visibility", types.MergePatchType, []byte(`{"data":{"tls.key":"AA=="}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	begin := time.Now()
	require.Eventually(t, func() bool { return mounted() != first }, 2*soon, pace)
	require.NoError(t, c.AwaitVisibility(ctx))
	t.Logf("verified again %s after the key was lost", time.Since(begin).Round(time.Second))
	require.Equal(t, before, c.PID(controlplane.Scheduler))
}
