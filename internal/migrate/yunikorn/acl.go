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

package yunikorn

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// Bounds of users and groups.
const (
	// maxSubjects of one right.
	maxSubjects = 500
	// maxAllSubjects of all rights together.
	maxAllSubjects = 100_000
)

// maxSubjectName is the longest name of a user or group, in bytes.
const maxSubjectName = 253

// access is who may submit to a queue.
type access struct {
	everybody bool
	subjects  []rbacv1.Subject
}

// everybody in Kubernetes who has proved an identity.
var everybody = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}

// with adds the users and groups of an access list: users with commas, a blank, groups with commas; * is everybody.
func (a access) with(path, field, acl string, out *finding.List) access {
	if a.everybody || strings.TrimSpace(acl) == "" {
		return a
	}
	users, groups, _ := strings.Cut(strings.TrimRight(acl, " "), " ")
	if strings.TrimSpace(users) == "*" || strings.TrimSpace(groups) == "*" {
		a.everybody = true
		return a
	}
	a.subjects = slices.Clone(a.subjects)
	for _, list := range [][2]string{{rbacv1.UserKind, users}, {rbacv1.GroupKind, groups}} {
		for name := range strings.SplitSeq(list[1], ",") {
			name = strings.TrimSpace(name)
			subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: list[0], Name: name}
			switch {
			case name == "" || slices.Contains(a.subjects, subject):
			case len(name) > maxSubjectName || strings.ContainsAny(name, " *\t\r\n\x00"):
				out.Add(finding.Error, finding.RightsNotGranted, source(path), field, "%q is no name of a user or group.", name)
			case len(a.subjects) >= maxSubjects:
				out.Add(finding.Error, finding.RightsNotGranted, source(path), field,
					"%s %s has no right: a queue has at most %d users and groups.", list[0], name, maxSubjects)
			default:
				a.subjects = append(a.subjects, subject)
			}
		}
	}
	slices.SortFunc(a.subjects, func(x, y rbacv1.Subject) int {
		return strings.Compare(x.Kind+"/"+x.Name, y.Kind+"/"+y.Name)
	})
	return a
}

func (a access) all() []rbacv1.Subject {
	if a.everybody {
		return everybody
	}
	return a.subjects
}
