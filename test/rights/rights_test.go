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

package rights

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const roles = "../../manifests/rbac"

// rulesIn are the rules of all roles of a manifest.
func rulesIn(t *testing.T, file string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	f, err := os.Open(filepath.Join(roles, file))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	decoder := yaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		role := rbacv1.ClusterRole{}
		if decoder.Decode(&role) != nil {
			require.NotEmpty(t, rules)
			return rules
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			rules = append(rules, role.Rules...)
		}
	}
}

// unused are the rights that no end-to-end test needs, by their text, with the reason why they are given.
func unused(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("unused.yaml")
	require.NoError(t, err)
	reasons := map[string][]string{}
	require.NoError(t, sigsyaml.UnmarshalStrict(text, &reasons))
	list := map[string]string{}
	for reason, rights := range reasons {
		require.NotEmpty(t, reason)
		for _, right := range rights {
			require.NotContains(t, list, right, "listed twice")
			list[right] = reason
		}
	}
	return list
}

func granted(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	job, ok := jobs.Find("Job.v1.batch")
	require.True(t, ok)
	for _, r := range slices.Concat(
		Granted(controlplane.SchedulerUser, rulesIn(t, "scheduler.yaml")),
		Granted(controlplane.SchedulerUser, job.SchedulerRights()),
		Granted(controlplane.ControllerUser, rulesIn(t, "controller.yaml")),
		Granted(controlplane.ControllerUser, job.ControllerRights()),
	) {
		require.NotContains(t, []string{r.Verb, r.Group, r.Resource}, "*", "%s", r)
		all[r.String()] = true
	}
	return all
}

// TestListOfUnusedRights: what is listed is a right that is given.
func TestListOfUnusedRights(t *testing.T) {
	given := granted(t)
	for right := range unused(t) {
		require.True(t, given[right], "%s is not given: take it off the list", right)
	}
}

// TestRightsAreUsed: each right was used in the end-to-end tests, or is listed with the reason why it is given.
func TestRightsAreUsed(t *testing.T) {
	dir := os.Getenv(DirVariable)
	if dir == "" {
		t.Skip("needs what all end-to-end tests recorded: hack/test.sh e2e rights")
	}
	used := Used{}
	files, err := used.Load(dir)
	require.NoError(t, err)
	require.NotZero(t, files, "no end-to-end test has recorded anything in %s", dir)
	was := map[string]bool{}
	for r := range used {
		was[r.String()] = true
	}
	listed := unused(t)
	var surplus, stale []string
	for right := range granted(t) {
		_, excused := listed[right]
		switch {
		case !was[right] && !excused:
			surplus = append(surplus, right)
		case was[right] && excused:
			stale = append(stale, right)
		}
	}
	slices.Sort(surplus)
	slices.Sort(stale)
	require.Empty(t, surplus, "rights that no end-to-end test used:\n%s", strings.Join(surplus, "\n"))
	// Some are used in one run and not in another: whether a list is streamed, whether an event happens again.
	t.Logf("rights that are listed, and were used this time:\n%s", strings.Join(stale, "\n"))
}

func TestUsed(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	var text strings.Builder
	for _, request := range []string{
		`"verb":"patch","objectRef":{"apiGroup":"batch","resource":"jobs","subresource":"status"},` +
			`"responseStatus":{"code":200}`,
		`"verb":"delete","objectRef":{"resource":"pods"},"responseStatus":{"code":403}`,
		`"verb":"get","responseStatus":{"code":200}`,
	} {
		text.WriteString(`{"kind":"Event","user":{"username":"a:b"},` + request + "}\n")
	}
	require.NoError(t, os.WriteFile(log, []byte(text.String()), 0o600))
	used, again := Used{}, Used{}
	require.NoError(t, used.Read(log))
	require.Equal(t, Used{{User: "a:b", Verb: "patch", Group: "batch", Resource: "jobs/status"}: true}, used)
	dir := filepath.Join(t.TempDir(), "rights")
	require.NoError(t, used.Save(dir))
	files, err := again.Load(dir)
	require.NoError(t, err)
	require.Equal(t, 1, files)
	require.Equal(t, used, again)
	for r := range used {
		require.Equal(t, "b patch jobs/status.batch", r.String())
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}
	require.Equal(t, []Right{{"u", "get", "", "pods"}, {"u", "list", "", "pods"}}, Granted("u", rules))
}
