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

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
)

func TestReplaceTables(t *testing.T) {
	known := map[string]string{"a": "| new |\n"}
	for name, c := range map[string]struct{ in, want string }{
		"nothing to do": {"text\n", "text\n"},
		"replaced": {
			"x\n<!-- generate:a -->\n| old |\n<!-- end generate -->\ny\n",
			"x\n<!-- generate:a -->\n| new |\n<!-- end generate -->\ny\n",
		},
		"twice": {
			"<!-- generate:a --><!-- end generate -->\n<!-- generate:a --><!-- end generate -->\n",
			"<!-- generate:a -->\n| new |\n<!-- end generate -->\n<!-- generate:a -->\n| new |\n<!-- end generate -->\n",
		},
		"of another generator": {
			"<!-- generate:metrics -->\nkept\n<!-- end generate -->\n",
			"<!-- generate:metrics -->\nkept\n<!-- end generate -->\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := replaceTables(c.in, known)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			again, err := replaceTables(got, known)
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
	_, err := replaceTables("<!-- generate:a -->\n| old |\n", known)
	require.ErrorContains(t, err, `section "a"`)
}

func TestGateTable(t *testing.T) {
	require.Equal(t, "| gate | stage | default | on | off |\n|---|---|---|---|---|\n"+
		"| `A` | Alpha | off | does \\| it | does not |\n| `B` | Beta | on | x | y |\n", gateTable([]features.Definition{
		{Name: "A", Spec: featuregate.FeatureSpec{PreRelease: featuregate.Alpha}, On: "does | it", Off: "does not"},
		{Name: "B", Spec: featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}, On: "x", Off: "y"},
	}))
}

func TestStructTable(t *testing.T) {
	file := t.TempDir() + "/x.go"
	src := "package x\n\ntype Args struct {\n\tEmbedded\n\t// one is\n\t// something | odd.\n\t" +
		"One *int `json:\"one,omitempty\"`\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(src), 0o600))
	got, err := structTable(file, "Args")
	require.NoError(t, err)
	require.Equal(t, "| argument | meaning |\n|---|---|\n| `one` | something \\| odd. |\n", got)
	_, err = structTable(file, "Missing")
	require.ErrorContains(t, err, "Missing")
}
