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

package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/command"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
)

func volcanoQueue(name, spec string) string {
	return "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

func TestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queues.yaml")
	require.NoError(t, os.WriteFile(file, []byte(volcanoQueue("one", "{capability: {cpu: 2}}")), 0o600))
	for name, tc := range map[string]struct {
		args, in string
		// Parts of what is written, and of the error.
		objects, findings []string
		err               string
	}{
		"files and standard input": {
			"from-volcano -f " + file + " -f -", volcanoQueue("two", "{capability: {cpu: 4}}"),
			[]string{"---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: Queue\n", "name: one\n", "name: two\n"},
			[]string{"SEVERITY  REASON ", "Info      LabelsOfJobs      Queue/two  -  "}, "",
		},
		"an error leaves the rest": {
			"from-volcano -f -", volcanoQueue("two", "{parent: gone}") + "---\n" + volcanoQueue("one", "{}"),
			[]string{"name: one\n"}, []string{"Error     ObjectNotFound    Queue/two  spec.parent  "}, "a finding is an Error",
		},
		"too large": {
			"from-kueue -f -", strings.Repeat("#", document.MaxBytes+1),
			nil, []string{"TooLarge"}, "a finding is an Error",
		},
		"nothing to read":         {"from-kueue", "", nil, nil, "at least one of the flags"},
		"file and cluster":        {"from-kueue -f x --from-cluster", "", nil, nil, "none of the others can be"},
		"no such file":            {"from-kueue -f /nowhere/x.yaml", "", nil, nil, "no such file"},
		"no such system":          {"from-slurm -f -", "", nil, nil, "unknown command"},
		"nothing in, nothing out": {"from-yunikorn -f -", "", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var objects, findings bytes.Buffer
			cmd := command.New(genericiooptions.IOStreams{In: strings.NewReader(tc.in), Out: &objects, ErrOut: &findings})
			cmd.SetArgs(strings.Fields(tc.args))
			err := cmd.ExecuteContext(t.Context())
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			for _, part := range tc.objects {
				require.Contains(t, objects.String(), part)
			}
			for _, part := range tc.findings {
				require.Contains(t, findings.String(), part)
			}
			if tc.objects == nil {
				require.Empty(t, objects.String())
			}
		})
	}
}
