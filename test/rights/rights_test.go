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

// Package rights_test checks that every right of manifests/base/rbac and manifests/components/reservations has a
// reason.
package rights_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// given returns the rights of all roles there. A right is a role, a verb, and a resource with group
// and name.
func given(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../manifests/base/rbac/*.yaml")
	require.NoError(t, err)
	rights := map[string]bool{}
	for _, file := range append(files, "../../manifests/components/reservations/rbac.yaml") {
		f, err := os.Open(file)
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
			role := rbacv1.ClusterRole{}
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			for i := range role.Rules {
				for _, right := range expand(&role.Rules[i]) {
					require.NotContains(t, right, "*")
					rights[role.Name+": "+right] = true
				}
			}
		}
	}
	require.NotEmpty(t, rights)
	return rights
}

func expand(rule *rbacv1.PolicyRule) (rights []string) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			rights = append(rights, verb+" "+url)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					rights = append(rights, strings.TrimSpace(verb+" "+strings.TrimSuffix(resource+"."+group, ".")+" "+name))
				}
			}
		}
	}
	return rights
}

// verbs are those of Kubernetes, and prioritize and use, which manifests/components/tenancy asks for.
var verbs = map[string]bool{
	"get": true, "list": true, "watch": true, "create": true, "update": true, "patch": true, "delete": true,
	"prioritize": true, "use": true,
}

func TestEveryRightHasAReason(t *testing.T) {
	text, err := os.ReadFile("reasons.yaml")
	require.NoError(t, err)
	roles := map[string]map[string][]string{}
	require.NoError(t, sigsyaml.UnmarshalStrict(text, &roles))
	reasons := map[string]string{}
	for role, list := range roles {
		for reason, lines := range list {
			require.NotEmpty(t, reason, role)
			for _, line := range lines {
				words := strings.Fields(line)
				of := 0
				for of < len(words) && verbs[words[of]] {
					of++
				}
				require.NotZero(t, of, "%s: %q has no verb", role, line)
				for _, verb := range words[:of] {
					right := role + ": " + verb + " " + strings.Join(words[of:], " ")
					require.Empty(t, reasons[right], "%s has two reasons", right)
					reasons[right] = reason
				}
			}
		}
	}
	rights := given(t)
	for right := range rights {
		if reasons[right] == "" {
			t.Errorf("%s is given and reasons.yaml has no reason", right)
		}
	}
	for right := range reasons {
		if !rights[right] {
			t.Errorf("%s has a reason and is not given", right)
		}
	}
}
