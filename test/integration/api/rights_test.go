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
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// TestRights asks the API server for the rights of each account with only the shipped roles.
func TestRights(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	const queueing, quotas = "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"
	for _, c := range []struct {
		user, verb, group, resource, sub, namespace, name string
		allowed                                           bool
	}{
		{controlplane.SchedulerUser, "patch", queueing, "queueunits", "status", "any", "", true},
		{controlplane.SchedulerUser, "patch", queueing, "queues", "status", "koord-queue", "", true},
		{controlplane.SchedulerUser, "watch", queueing, "queueunits", "", "", "", true},
		{controlplane.SchedulerUser, "update", queueing, "queueunits", "", "any", "", false},
		{controlplane.SchedulerUser, "delete", queueing, "queueunits", "", "any", "", false},
		{controlplane.SchedulerUser, "watch", "batch", "jobs", "", "", "", true},
		{controlplane.SchedulerUser, "patch", "batch", "jobs", "", "any", "", false},
		{controlplane.SchedulerUser, "create", "", "pods", "binding", "any", "", true},
		{controlplane.SchedulerUser, "patch", "", "pods", "", "any", "", true},
		{controlplane.SchedulerUser, "watch", "", "configmaps", "", "", "", true},
		{controlplane.SchedulerUser, "watch", "", "namespaces", "", "", "", true},
		{controlplane.SchedulerUser, "watch", "scheduling.k8s.io", "priorityclasses", "", "", "", true},
		{controlplane.SchedulerUser, "create", quotas, "elasticquotas", "", "koordinator-system", "", true},
		{controlplane.SchedulerUser, "patch", quotas, "elasticquotas", "", "any", "", true},
		{controlplane.SchedulerUser, "delete", quotas, "elasticquotas", "", "any", "", false},
		{controlplane.SchedulerUser, "patch", quotas, "podgroups", "", "any", "", true},
		{controlplane.SchedulerUser, "watch", "scheduling.koordinator.sh", "reservations", "", "", "", true},
		{controlplane.SchedulerUser, "update", "scheduling.koordinator.sh", "reservations", "status", "", "", true},
		{controlplane.SchedulerUser, "watch", "scheduling.koordinator.sh", "devices", "", "", "", true},
		{controlplane.SchedulerUser, "watch", "scheduling.koordinator.sh", "clusternetworktopologies", "", "", "", true},
		{controlplane.SchedulerUser, "watch", "slo.koordinator.sh", "nodemetrics", "", "", "", true},
		{controlplane.SchedulerUser, "watch", "topology.node.k8s.io", "noderesourcetopologies", "", "", "", true},
		{controlplane.SchedulerUser, "create", "coordination.k8s.io", "leases", "", "koordinator-system", "", true},
		{controlplane.SchedulerUser, "update", "coordination.k8s.io", "leases", "", "koordinator-system",
			"koord-scheduler", true},
		{controlplane.SchedulerUser, "update", "coordination.k8s.io", "leases", "", "koordinator-system", "another", false},
		{controlplane.SchedulerUser, "create", "authentication.k8s.io", "tokenreviews", "", "", "", true},
		{controlplane.SchedulerUser, "create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true},
		{controlplane.SchedulerUser, "create", "events.k8s.io", "events", "", "any", "", true},
		{controlplane.SchedulerUser, "get", "", "secrets", "", "any", "", false},

		{controlplane.ControllerUser, "patch", "batch", "jobs", "", "any", "", true},
		// clears the start time of a suspended job
		{controlplane.ControllerUser, "patch", "batch", "jobs", "status", "any", "", true},
		{controlplane.ControllerUser, "delete", "batch", "jobs", "", "any", "", false},
		{controlplane.ControllerUser, "list", "", "pods", "", "", "", true},
		{controlplane.ControllerUser, "watch", "", "pods", "", "", "", false},
		{controlplane.ControllerUser, "delete", "", "pods", "", "any", "", false},
		{controlplane.ControllerUser, "create", queueing, "queueunits", "", "any", "", true},
		{controlplane.ControllerUser, "patch", queueing, "queueunits", "status", "any", "", true},
		{controlplane.ControllerUser, "create", queueing, "queues", "", "koord-queue", "", true},
		{controlplane.ControllerUser, "create", queueing, "queues", "", "any", "", false},
		{controlplane.ControllerUser, "patch", queueing, "queues", "", "any", "", false},
		{controlplane.ControllerUser, "watch", queueing, "queues", "", "", "", true},
		{controlplane.ControllerUser, "patch", queueing, "queues", "status", "any", "", true},
		{controlplane.ControllerUser, "watch", "", "configmaps", "", "koord-queue", "koord-jobqueue-managed-jobs", true},
		{controlplane.ControllerUser, "watch", "", "configmaps", "", "koord-queue", "another", false},
		{controlplane.ControllerUser, "watch", "", "limitranges", "", "", "", true},
		{controlplane.ControllerUser, "list", "", "nodes", "", "", "", true},
		{controlplane.ControllerUser, "watch", "", "nodes", "", "", "", false},
		{controlplane.ControllerUser, "patch", "", "nodes", "", "", "", false},
		{controlplane.ControllerUser, "watch", "node.k8s.io", "runtimeclasses", "", "", "", true},
		{controlplane.ControllerUser, "watch", "config.koordinator.sh", "clustercolocationprofiles", "", "", "", true},
		{controlplane.ControllerUser, "update", "config.koordinator.sh", "clustercolocationprofiles", "", "", "", false},
		{controlplane.ControllerUser, "watch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "",
			"koordinator-mutating-webhook-configuration", true},
		{controlplane.ControllerUser, "watch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations",
			"", "", "another", false},
		{controlplane.ControllerUser, "update", "coordination.k8s.io", "leases", "", "koord-queue",
			"jobqueue-controller", true},
		{controlplane.ControllerUser, "create", "authentication.k8s.io", "tokenreviews", "", "", "", true},
		{controlplane.ControllerUser, "create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true},
		{controlplane.ControllerUser, "update", quotas, "elasticquotas", "", "any", "", false},
		{controlplane.ControllerUser, "get", "", "secrets", "", "any", "", false},
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

// TestRoles: what each role for people may do, and nothing else of all that can be asked for.
func TestRoles(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	bindPeople(t, admin)
	read := []string{"get", "list", "watch"}
	readAnd := func(verbs ...string) []string { return append(slices.Clone(read), verbs...) }
	look := []string{"get", "list"}
	roles := map[string]map[string][]string{
		"viewer": {
			"queues": read, "queues/status": read, "queueunits": read, "queueunits/status": read,
			"units": look, "units/forecast": look, "forecasts": look, "localqueues": look, "localqueues/waitingunits": look,
			"localquotas": look, "localquotas/units": look, "records": look,
		},
		"submitter": {"queueunits": readAnd("create", "patch", "delete")},
		"operator": {
			"queues": readAnd("update", "patch", "use"), "queueunits": readAnd("update", "patch"),
			"queues/status": read, "queueunits/status": read,
			"units": look, "units/full": look, "units/forecast": look, "forecasts": look, "quotas": look, "quotas/units": look,
			"localqueues": look, "localqueues/waitingunits": look, "localquotas": look, "localquotas/units": look,
			"audits": look, "records": look, "snapshots": {"get"},
		},
		"administrator": {
			"queues":        readAnd("create", "update", "patch", "delete", "use"),
			"queueunits":    readAnd("update", "patch", "delete"),
			"queues/status": read, "queueunits/status": read,
			"units": look, "units/full": look, "units/forecast": look, "forecasts": look, "quotas": look, "quotas/units": look,
			"localqueues": look, "localqueues/waitingunits": look, "localquotas": look, "localquotas/units": look,
			"audits": {"get", "list", "create"}, "records": look, "snapshots": {"get"},
		},
		"nobody": {},
	}
	groups := map[string]string{
		"queues": "scheduling.x-k8s.io", "queueunits": "scheduling.x-k8s.io", "elasticquotas": "scheduling.sigs.k8s.io",
		"jobs": "batch", "pods": "", "secrets": "",
	}
	for _, resource := range []string{"units", "forecasts", "localqueues", "localquotas", "quotas", "audits", "records",
		"snapshots"} {
		groups[resource] = "visibility.koord-queue.x-k8s.io"
	}
	resources := []string{
		"queues", "queues/status", "queueunits", "queueunits/status", "elasticquotas", "jobs", "pods", "secrets",
		"units", "units/full", "units/forecast", "forecasts", "localqueues", "localqueues/waitingunits", "localquotas",
		"localquotas/units", "quotas", "quotas/units", "audits", "records", "snapshots",
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use"}
	for user, may := range roles {
		t.Run(user, func(t *testing.T) {
			for _, resource := range resources {
				name, sub, _ := strings.Cut(resource, "/")
				for _, verb := range verbs {
					review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
						User: user,
						ResourceAttributes: &authorizationv1.ResourceAttributes{
							Verb: verb, Group: groups[name], Resource: name, Subresource: sub, Namespace: "any",
						},
					}}
					got, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
					require.NoError(t, err)
					require.Equal(t, slices.Contains(may[resource], verb), got.Status.Allowed, "%s %s: %s", verb, resource,
						got.Status.Reason)
				}
			}
		})
	}
}

// bindPeople gives each role for people to a user of its own. Aggregated rules are filled in by a controller that
// does not run here, so the roles that they come from are bound.
func bindPeople(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	for user, roles := range map[string][]string{
		"viewer":        {"jobqueue-viewer"},
		"operator":      {"jobqueue-operator"},
		"administrator": {"jobqueue-viewer", "jobqueue-operator", "jobqueue-editor"},
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
