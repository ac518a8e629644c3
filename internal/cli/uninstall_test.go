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

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/uninstall"
)

func TestUninstallFlags(t *testing.T) {
	run := func(args ...string) error {
		cmd := Command(genericiooptions.NewTestIOStreamsDiscard())
		cmd.SetArgs(append([]string{"uninstall"}, args...))
		return cmd.ExecuteContext(t.Context())
	}
	require.ErrorContains(t, run(), "--waiting")
	require.ErrorContains(t, run("--waiting=perhaps"), "resume or leave")
	require.ErrorContains(t, run("--waiting=leave", "--lease=x"), "namespace/name")

	lease, err := (&uninstallOptions{namespace: "q"}).lease()
	require.NoError(t, err)
	require.Equal(t, types.NamespacedName{Namespace: "q", Name: "jobqueue-controller"}, lease)
}

func TestConfirm(t *testing.T) {
	out := &bytes.Buffer{}
	require.NoError(t, confirm(strings.NewReader("yes\n"), out, "host", uninstall.Resume))
	require.Contains(t, out.String(), "host")
	require.ErrorIs(t, confirm(strings.NewReader("y\n"), out, "host", uninstall.Resume), errNotConfirmed)
	require.ErrorIs(t, confirm(strings.NewReader(""), out, "host", uninstall.Resume), errNotConfirmed)
}
