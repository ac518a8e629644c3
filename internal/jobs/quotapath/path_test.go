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

package quotapath

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
)

// companies is a tree in which both organizations have a quota for Ray, and one has a name that is there twice.
var companies = Tree{
	"organization1": {extension.RootQuotaName}, "organization2": {extension.RootQuotaName},
	"ray": {"organization1"}, "ray2": {"organization2"}, "small": {"ray"},
	"twice": {"organization1", "organization2"}, "orphan": {"gone"}, "a.b": {"organization1"},
	"root": {extension.RootQuotaName}, "inner": {"root"}, "loop": {"loop"},
}

func TestResolve(t *testing.T) {
	for path, want := range map[string]struct{ quota, wrong string }{
		"root.organization1":           {"organization1", ""},
		"root.organization1.ray":       {"ray", ""},
		"root.organization1.ray.small": {"small", ""},
		"root.root.inner":              {"inner", ""},

		"root.organization2.ray":          {"", `"root.organization2.ray" has no quota "ray" below "organization2"`},
		"root.organization2.new":          {"", `"root.organization2.new" has no quota "new" below "organization2"`},
		"root.ray":                        {"", `has no quota "ray" below "root"`},
		"root.inner":                      {"", `has no quota "inner" below "root"`},
		"root.small.ray":                  {"", `has no quota "small" below "root"`},
		"root.gone.orphan":                {"", `has no quota "gone" below "root"`},
		"root.loop.loop":                  {"", `has no quota "loop" below "root"`},
		"root.organization1.twice":        {"", `several ElasticQuotas have the name "twice"`},
		"root.organization1.a.b":          {"", `has no quota "a" below "organization1"`},
		"root." + extension.RootQuotaName: {"", `has no quota`},

		"root":                            {"", ErrMalformed.Error()},
		"":                                {"", ErrMalformed.Error()},
		"ray":                             {"", ErrMalformed.Error()},
		"organization1.ray":               {"", ErrMalformed.Error()},
		"Root.organization1":              {"", ErrMalformed.Error()},
		"root..ray":                       {"", ErrMalformed.Error()},
		"root.organization1.":             {"", ErrMalformed.Error()},
		" root.organization1":             {"", ErrMalformed.Error()},
		"root.organization1\n":            {"", ErrMalformed.Error()},
		"root.a.a.a.a.a.a.a.a":            {"", "it has more than 8 elements"},
		"root." + strings.Repeat("a", 64): {"", ErrMalformed.Error()},
		strings.Repeat("root.", 100000):   {"", "it has more than 8 elements"},
	} {
		quota, err := Resolve(path, companies)
		require.Equal(t, want.quota, quota, path)
		if want.wrong == "" {
			require.NoError(t, err, path)
			require.Equal(t, quota, Quota(path))
			continue
		}
		require.ErrorContains(t, err, want.wrong, path)
		require.Less(t, len(err.Error()), 1000, "what a tenant wrote is not repeated without end")
	}
}

func TestWithin(t *testing.T) {
	require.True(t, Within("root.a", "root.a"))
	require.True(t, Within("root.a.b", "root.a"))
	require.True(t, Within("root.a.b", "root"))
	require.False(t, Within("root.ab", "root.a"))
	require.False(t, Within("root.b", "root.a"))
	require.False(t, Within("root.a..b", "root.a"))
}

func byLabel(key, path string) Rule {
	return Rule{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpExists},
	}}, Path: path}
}

func TestPlacement(t *testing.T) {
	rules, err := Compile([]Rule{
		byLabel("by-name", "root.{namespace}"), byLabel("team", "root.org.{label:team}.{namespace}-ray"),
		byLabel("dns.example.com/of", "root.{label:dns.example.com/of}"), byLabel("absent-too", "root.{label:absent}"),
	})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		labels      map[string]string
		path, wrong string
	}{
		"no rule":              {nil, "", ""},
		"the name":             {map[string]string{"by-name": ""}, "root.dev", ""},
		"the first rule":       {map[string]string{"by-name": "", "team": "red"}, "root.dev", ""},
		"a label and a name":   {map[string]string{"team": "red"}, "root.org.red.dev-ray", ""},
		"a key with dots":      {map[string]string{"dns.example.com/of": "red"}, "root.red", ""},
		"a label with a dot":   {map[string]string{"team": "red.ceo"}, "", `{label:team} of namespace "dev" is "red.ceo"`},
		"a label in capitals":  {map[string]string{"team": "RED"}, "", `is "RED"`},
		"a label that is gone": {map[string]string{"absent-too": ""}, "", `{label:absent} of namespace "dev" is ""`},
	} {
		path, err := rules.Path("dev", c.labels)
		if c.wrong != "" {
			require.ErrorIs(t, err, ErrMalformed, name)
			require.ErrorContains(t, err, c.wrong, name)
			require.True(t, rules.Select(c.labels), "the job waits, and says why")
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.path, path, name)
		require.Equal(t, path != "", rules.Select(c.labels), name)
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	for want, r := range map[string]Rule{
		"placement[0].namespaceSelector: it must select": {Path: "root.a"},
		"placement[0].namespaceSelector: it must":        {NamespaceSelector: &metav1.LabelSelector{}, Path: "root.a"},
		`placement[0].namespaceSelector: "=="`: {Path: "root.a", NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "=="}}}},
		"placement[0].path: it is not the path of a quota": byLabel("a", "{namespace}"),
		`element "{user}"`:                byLabel("a", "root.{user}"),
		`"a b" is not the key of a label`: byLabel("a", "root.{label:a b}"),
		`"" is not the key of a label`:    byLabel("a", "root.{label:}"),
		"it has more than 8 elements":     byLabel("a", "root.a.a.a.a.a.a.a.{namespace}"),
	} {
		_, err := Compile([]Rule{r})
		require.ErrorContains(t, err, want)
	}
}
