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

package ancestors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

func TestLines(t *testing.T) {
	const root = extension.RootQuotaName
	deep := quotapath.Tree{"l0": {root}}
	for i := range 9 {
		deep[fmt.Sprintf("l%d", i+1)] = []string{fmt.Sprintf("l%d", i)}
	}
	long := strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		tree quotapath.Tree
		want string
	}{
		"nothing":    {nil, ""},
		"below root": {quotapath.Tree{"a": {root}, root: {""}}, ""},
		"a tree":     {quotapath.Tree{"org": {root}, "ray": {"org"}, "small": {"ray"}}, "ray org\nsmall ray org\n"},
		"no parent":  {quotapath.Tree{"ray": {"gone"}}, ""},
		"a loop":     {quotapath.Tree{"a": {"b"}, "b": {"a"}, "c": {"c"}}, "a b a\nb a b\nc c\n"},
		"another's name, taken": {quotapath.Tree{"org": {root}, "mine": {root}, "ray": {"org", "mine"}, "small": {"ray"}},
			"small ray\n"},
		"a name in no label": {quotapath.Tree{"org": {root}, long: {"org"}}, ""},
	} {
		text, left := Lines(tc.tree)
		require.Equal(t, tc.want, text, name)
		require.Zero(t, left)
		above := map[string][]string{}
		for quota := range tc.tree {
			if names := aboveOf(tc.tree, quota); len(names) > 0 && quota != long {
				above[quota] = names
			}
		}
		require.Equal(t, above, Read(text), name)
	}
	text, _ := Lines(deep)
	require.Contains(t, text, "\nl9 l8 l7 l6 l5 l4 l3\n", "as many as policies ask for")

	wide := quotapath.Tree{"org": {root}}
	for i := range 20000 {
		wide[fmt.Sprintf("quota-of-a-team-with-a-long-name-%05d", i)] = []string{"org"}
	}
	text, left := Lines(wide)
	require.LessOrEqual(t, len(text), mostBytes)
	require.Equal(t, 20000, strings.Count(text, "\n")+left)
	require.Positive(t, left)
}
