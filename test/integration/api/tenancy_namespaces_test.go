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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/tenancyparams"
)

// The controller tells the policies where jobs are queued that name no quota. There jobs and templates are bounded as
// in namespaces with the label (S8).
func tenancyOfNamespacesWithoutTheLabel(t *testing.T) {
	admin, alice := adminTenant(t), tenantNamed(t, "alice")
	long := int64(3601)
	stays := func(meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
		meta.Finalizers, spec.TerminationGracePeriodSeconds = []string{"example.com/mine"}, &long
	}
	job := func() error {
		return alice.tries(t, "tenant-a", jobOf("", func(meta *metav1.ObjectMeta) {
			meta.Finalizers = []string{"example.com/mine"}
		}))
	}
	publishAs(t, admin, tenancyparams.Namespaces, "a\nmy-tenant-a\ntenant-a-too\n")
	noneRefused(t, alice.attempts(t, "tenant-a", "", stays))
	require.NoError(t, job())

	publishAs(t, admin, tenancyparams.Namespaces, "a\ntenant-a\n")
	known := func(refuses bool) {
		t.Helper()
		require.Eventually(t, func() bool { return (job() != nil) == refuses }, 10*time.Second, 100*time.Millisecond)
	}
	known(true)
	refused(t, job(), "has no finalizer example.com/mine")
	told := alice.attempts(t, "tenant-a", "", stays)
	refused(t, told["job"], "terminationGracePeriodSeconds is more than 3600")
	refused(t, told["cronjob"], "terminationGracePeriodSeconds is more than 3600")
	require.NoError(t, told["pod"], "pods that name no quota are not looked at")

	publishAs(t, admin, tenancyparams.Namespaces, "")
	known(false)
}
