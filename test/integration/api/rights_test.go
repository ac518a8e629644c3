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

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controlplane"
)

const (
	schedulerUser  = "system:serviceaccount:koordinator-system:koord-scheduler"
	controllerUser = "system:serviceaccount:koord-queue:jobqueue-controller"
)

// TestRights asks the API server what each account may do with nothing but the shipped roles.
func TestRights(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	bindPeople(t, admin)
	const queueing, quotas = "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"
	for _, c := range []struct {
		user, verb, group, resource, sub, namespace, name string
		allowed                                           bool
	}{
		{schedulerUser, "patch", queueing, "queueunits", "status", "any", "", true},
		{schedulerUser, "patch", queueing, "queues", "status", "koord-queue", "", true},
		{schedulerUser, "watch", queueing, "queueunits", "", "", "", true},
		{schedulerUser, "update", queueing, "queueunits", "", "any", "", false},
		{schedulerUser, "delete", queueing, "queueunits", "", "any", "", false},
		{schedulerUser, "watch", "batch", "jobs", "", "", "", true},
		{schedulerUser, "patch", "batch", "jobs", "", "any", "", false},
		{schedulerUser, "create", "", "pods", "binding", "any", "", true},
		{schedulerUser, "patch", "", "pods", "", "any", "", true},
		{schedulerUser, "watch", "", "configmaps", "", "", "", true},
		{schedulerUser, "watch", "", "namespaces", "", "", "", true},
		{schedulerUser, "watch", "scheduling.k8s.io", "priorityclasses", "", "", "", true},
		{schedulerUser, "create", quotas, "elasticquotas", "", "koordinator-system", "", true},
		{schedulerUser, "patch", quotas, "elasticquotas", "", "any", "", true},
		{schedulerUser, "delete", quotas, "elasticquotas", "", "any", "", false},
		{schedulerUser, "patch", quotas, "podgroups", "", "any", "", true},
		{schedulerUser, "watch", "scheduling.koordinator.sh", "reservations", "", "", "", true},
		{schedulerUser, "update", "scheduling.koordinator.sh", "reservations", "status", "", "", true},
		{schedulerUser, "watch", "scheduling.koordinator.sh", "devices", "", "", "", true},
		{schedulerUser, "watch", "scheduling.koordinator.sh", "clusternetworktopologies", "", "", "", true},
		{schedulerUser, "watch", "slo.koordinator.sh", "nodemetrics", "", "", "", true},
		{schedulerUser, "watch", "topology.node.k8s.io", "noderesourcetopologies", "", "", "", true},
		{schedulerUser, "create", "coordination.k8s.io", "leases", "", "koordinator-system", "", true},
		{schedulerUser, "update", "coordination.k8s.io", "leases", "", "koordinator-system", "koord-scheduler", true},
		{schedulerUser, "update", "coordination.k8s.io", "leases", "", "koordinator-system", "another", false},
		{schedulerUser, "create", "authentication.k8s.io", "tokenreviews", "", "", "", true},
		{schedulerUser, "create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true},
		{schedulerUser, "create", "events.k8s.io", "events", "", "any", "", true},
		{schedulerUser, "get", "", "secrets", "", "any", "", false},

		{controllerUser, "patch", "batch", "jobs", "", "any", "", true},
		{controllerUser, "patch", "batch", "jobs", "status", "any", "", true}, // clears the start time of a suspended job,
		{controllerUser, "delete", "batch", "jobs", "", "any", "", false},
		{controllerUser, "list", "", "pods", "", "", "", true},
		{controllerUser, "watch", "", "pods", "", "", "", false},
		{controllerUser, "delete", "", "pods", "", "any", "", false},
		{controllerUser, "create", queueing, "queueunits", "", "any", "", true},
		{controllerUser, "patch", queueing, "queueunits", "status", "any", "", true},
		{controllerUser, "create", queueing, "queues", "", "koord-queue", "", true},
		{controllerUser, "create", queueing, "queues", "", "any", "", false},
		{controllerUser, "patch", queueing, "queues", "status", "koord-queue", "", false},
		{controllerUser, "watch", "", "configmaps", "", "koord-queue", "koord-jobqueue-managed-jobs", true},
		{controllerUser, "watch", "", "configmaps", "", "koord-queue", "another", false},
		{controllerUser, "watch", "", "limitranges", "", "", "", true},
		{controllerUser, "watch", "node.k8s.io", "runtimeclasses", "", "", "", true},
		{controllerUser, "watch", "config.koordinator.sh", "clustercolocationprofiles", "", "", "", true},
		{controllerUser, "update", "config.koordinator.sh", "clustercolocationprofiles", "", "", "", false},
		{controllerUser, "watch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "", "koordinator-mutating-webhook-configuration", true},
		{controllerUser, "watch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "", "another", false},
		{controllerUser, "update", "coordination.k8s.io", "leases", "", "koord-queue", "jobqueue-controller", true},
		{controllerUser, "update", quotas, "elasticquotas", "", "any", "", false},
		{controllerUser, "get", "", "secrets", "", "any", "", false},

		{"viewer", "get", queueing, "queueunits", "", "any", "", true},
		{"viewer", "create", queueing, "queueunits", "", "any", "", false},
		{"administrator", "watch", queueing, "queueunits", "", "any", "", true},
		{"administrator", "patch", queueing, "queues", "", "koord-queue", "", true},
		{"administrator", "patch", queueing, "queueunits", "status", "any", "", false},
		{"submitter", "create", queueing, "queueunits", "", "any", "", true},
		{"submitter", "patch", queueing, "queueunits", "", "any", "", false},
		{"submitter", "patch", queueing, "queueunits", "status", "any", "", false},
	} {
		resource := c.resource
		if c.sub != "" {
			resource += "/" + c.sub
		}
		t.Run(c.user+" "+c.verb+" "+resource+" "+c.namespace+"/"+c.name, func(t *testing.T) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: c.user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: c.verb, Group: c.group, Resource: c.resource, Subresource: c.sub, Namespace: c.namespace, Name: c.name,
				},
			}}
			got, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Equal(t, c.allowed, got.Status.Allowed, got.Status.Reason)
		})
	}
}

// bindPeople gives each role for people to a user of its own. Aggregated rules are filled in by a controller that
// does not run here, so the roles that they come from are bound.
func bindPeople(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	for user, roles := range map[string][]string{
		"viewer":        {"jobqueue-viewer"},
		"administrator": {"jobqueue-viewer", "jobqueue-editor"},
		"submitter":     {"jobqueue-submitter"},
	} {
		for _, role := range roles {
			_, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "test-" + user + "-" + role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
}
