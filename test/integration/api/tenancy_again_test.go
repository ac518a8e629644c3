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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTenancyComesBack: policies of tenancy that are installed again have their parameters.
func TestTenancyComesBack(t *testing.T) {
	connect(t)
	admin := adminTenant(t)
	policies := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	list, err := policies.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	// As helm uninstall does. The watch hears of the ConfigMap, and does not hear of the next one if it ends.
	maps := admin.CoreV1().ConfigMaps("koord-queue")
	require.NoError(t, maps.Delete(t.Context(), "jobqueue-tenancy", metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.ErrorContains(c, admin.job(t, "default", quotaOf("comes-back"), text{}), "failed to configure binding")
	}, 30*time.Second, 100*time.Millisecond)
	removed := 0
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, "jobqueue-tenancy-") {
			require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
			require.NoError(t, policies.Delete(t.Context(), name, metav1.DeleteOptions{}))
			removed++
		}
	}
	require.NotZero(t, removed)
	waitForPolicies(t)

	install(t, "overlays/enforced")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, admin.job(t, "default", quotaOf("comes-back"), text{}))
	}, 10*time.Second, 100*time.Millisecond)
}
