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

package page

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// A button runs a command with the connection that "web" was started with.
func TestDo(t *testing.T) {
	root := func(streams genericiooptions.IOStreams) *cobra.Command {
		cmd := &cobra.Command{Use: "plugin", SilenceErrors: true, SilenceUsage: true}
		flags := genericclioptions.NewConfigFlags(true)
		flags.AddFlags(cmd.PersistentFlags())
		cmd.AddCommand(&cobra.Command{Use: "hold", RunE: func(_ *cobra.Command, args []string) error {
			_, err := fmt.Fprintln(streams.Out, *flags.Context, *flags.ImpersonateGroup, *flags.Namespace, args)
			return err
		}}, &cobra.Command{Use: "release", RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(streams.ErrOut, "nothing is held")
			return err
		}})
		return cmd
	}
	started := genericclioptions.NewConfigFlags(true)
	web := &cobra.Command{}
	started.AddFlags(web.Flags())
	require.NoError(t, web.Flags().Parse([]string{"--context=c", "--as-group=x", "--as-group=y", "--namespace=mine"}))
	plugin := &Plugin{Root: root}

	said, err := plugin.do(t.Context(), given(web.Flags()), []string{"hold", "job/a", "--namespace=other"})
	require.NoError(t, err)
	require.Equal(t, "c [x y] other [job/a]", said)
	_, err = plugin.do(t.Context(), given(web.Flags()), []string{"release"})
	require.EqualError(t, err, "nothing is held")
	require.Equal(t, "mine", *started.Namespace)
}
