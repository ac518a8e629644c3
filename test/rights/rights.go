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

// Package rights compares what the processes may do with what they did in the end-to-end tests: a right that nobody
// used is listed with the reason why it is there, or it is taken away.
package rights

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
)

// DirVariable names the environment variable with the directory in which the end-to-end tests leave what they recorded.
const DirVariable = "JOBQUEUE_RIGHTS"

// Right is one thing that a user may do, or did.
type Right struct {
	User, Verb string
	// Group and Resource, with its subresource if there is one.
	Group, Resource string
}

func (r Right) String() string {
	return fmt.Sprintf("%s %s %s", short(r.User), r.Verb, strings.TrimSuffix(r.Resource+"."+r.Group, "."))
}

// short is the name of a service account.
func short(user string) string { return user[strings.LastIndex(user, ":")+1:] }

// Used are the rights that the requests of an audit log needed, but for those that were refused.
type Used map[Right]bool

// Read adds the requests of a log.
func (u Used) Read(file string) error {
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	_, err = auditlog.Read(log, func(e *auditlog.Event) {
		if e.ObjectRef.Resource != "" && e.ResponseStatus.Code != 403 {
			u[Right{User: e.User.Username, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.Kind()}] = true
		}
	})
	return err
}

// Save writes what was used into a file of its own in a directory.
func (u Used) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rights := make([]Right, 0, len(u))
	for r := range u {
		rights = append(rights, r)
	}
	slices.SortFunc(rights, compare)
	text, err := json.MarshalIndent(rights, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid())), text, 0o600)
}

// Load adds what was saved in a directory, and returns how many files that was.
func (u Used) Load(dir string) (files int, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		var rights []Right
		if err := json.Unmarshal(text, &rights); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range rights {
			u[r] = true
		}
	}
	return len(names), nil
}

// Granted lists what rules give to a user.
func Granted(user string, rules []rbacv1.PolicyRule) (rights []Right) {
	for i := range rules {
		for _, group := range rules[i].APIGroups {
			for _, resource := range rules[i].Resources {
				for _, verb := range rules[i].Verbs {
					rights = append(rights, Right{User: user, Verb: verb, Group: group, Resource: resource})
				}
			}
		}
	}
	return rights
}

func compare(a, b Right) int { return cmp.Compare(a.String(), b.String()) }
