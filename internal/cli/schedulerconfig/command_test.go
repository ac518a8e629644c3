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

package schedulerconfig

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("golden", false, "write the golden files")

// TestCommand: the configuration of a person, and what the command says that it changed.
func TestCommand(t *testing.T) {
	in, err := os.ReadFile("testdata/scheduler.yaml")
	require.NoError(t, err)
	var out, said bytes.Buffer
	run := func(in string, args ...string) error {
		out.Reset()
		said.Reset()
		command := Command(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &said})
		command.SetArgs(args)
		return command.Execute()
	}
	require.NoError(t, run("", "--merge=testdata/scheduler.yaml"))
	for file, text := range map[string]string{
		"testdata/scheduler-merged.yaml": out.String(), "testdata/scheduler-changes.txt": said.String(),
	} {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), text)
	}

	merged := out.String()
	require.NoError(t, run(merged, "--merge=-"))
	require.Equal(t, merged, out.String())
	require.Equal(t, "Nothing was missing.\n", said.String())

	require.ErrorContains(t, run(string(in), "--merge=-", "--scheduler-name=batch"),
		`-: profiles: none has the schedulerName "batch"; found: koord-scheduler`)
	require.Empty(t, out.String())
}
