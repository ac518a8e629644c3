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

package jobkind

import (
	"bytes"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The accounts of the two processes.
var (
	controllerAccount = rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: "koord-queue", Name: "jobqueue-controller",
	}
	schedulerAccount = rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: "koordinator-system", Name: "koord-scheduler",
	}
)

// ControllerRights are those without which the controller cannot manage jobs of the kind.
func (k *Kind) ControllerRights() []rbacv1.PolicyRule {
	if k.OfPods() {
		return []rbacv1.PolicyRule{rule(k.GVR.Group, "get list watch", k.GVR.Resource)}
	}
	verbs := "get list watch"
	if k.CanBeSuspended() {
		verbs += " patch"
	}
	rules := []rbacv1.PolicyRule{rule(k.GVR.Group, verbs, k.GVR.Resource)}
	if len(k.StartTime) > 0 {
		rules = append(rules, rule(k.GVR.Group, "patch", k.GVR.Resource+"/status"))
	}
	// An owner reference that blocks deletion needs the right to finalizers where the API server checks it.
	rules = append(rules, rule(k.GVR.Group, "update", k.GVR.Resource+"/finalizers"))
	for _, child := range k.Children {
		verbs := "get"
		if k.Child != nil && child == *k.Child {
			verbs = "get list watch patch"
		}
		rules = append(rules, rule(child.GVR.Group, verbs, child.GVR.Resource))
	}
	return rules
}

// SchedulerRights are those without which the scheduler does not know whose pods it sees.
func (k *Kind) SchedulerRights() []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{rule(k.GVR.Group, "get list watch", k.GVR.Resource)}
	for _, child := range k.Children {
		rules = append(rules, rule(child.GVR.Group, "get list watch", child.GVR.Resource))
	}
	return rules
}

func rule(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Fields(verbs)}
}

// RightsManifest is YAML of the roles that both processes need for the kind, and of their bindings. name tells them
// from those of other kinds.
func (k *Kind) RightsManifest(name string) ([]byte, error) {
	var objects []any
	for _, of := range []struct {
		role    string
		account rbacv1.Subject
		rules   []rbacv1.PolicyRule
	}{
		{"jobqueue-controller-" + name, controllerAccount, k.ControllerRights()},
		{"jobqueue-scheduler-" + name, schedulerAccount, k.SchedulerRights()},
	} {
		objects = append(objects,
			rbacv1.ClusterRole{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
				ObjectMeta: metav1.ObjectMeta{Name: of.role},
				Rules:      of.rules,
			},
			rbacv1.ClusterRoleBinding{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
				ObjectMeta: metav1.ObjectMeta{Name: of.role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: of.role},
				Subjects:   []rbacv1.Subject{of.account},
			})
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# What both processes may do with jobs of kind %s.\n", k)
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
