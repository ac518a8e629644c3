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
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The controller makes the certificate, with the shipped rights, and the API server verifies the scheduler by it. The
// scheduler serves a new certificate without a restart.
func TestVisibilityIsVerified(t *testing.T) {
	c := visibilityCluster(t, "visibility-verified")
	secrets := c.kube.CoreV1().Secrets("koordinator-system")
	mounted := func() string {
		certificate, err := os.ReadFile(filepath.Join(c.Dir(), "volumes", string(schedulerReplica),
			"visibility-certificate", "tls.crt"))
		require.NoError(t, err)
		return string(certificate)
	}
	first := mounted()
	before := c.PID(schedulerReplica)
	_, err := secrets.Patch(t.Context(), "koord-jobqueue-visibility", types.MergePatchType,
		[]byte(`{"data":{"tls.key":"AA=="}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	begin := time.Now()
	require.Eventually(t, func() bool { return mounted() != first }, 2*soon, pace)
	require.NoError(t, c.AwaitVisibility(t.Context()))
	t.Logf("verified again %s after the key was lost", time.Since(begin).Round(time.Second))
	require.Equal(t, before, c.PID(schedulerReplica))
}
