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

package scheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/koordinator-sh/koordinator/cmd/koord-scheduler/app"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue"
)

func newCommand(t *testing.T, extensions ...jobqueue.Option) *cobra.Command {
	t.Helper()
	command, err := NewCommand(extensions...)
	require.NoError(t, err)
	return command
}

func flags(set *pflag.FlagSet) map[string]string {
	found := map[string]string{}
	set.VisitAll(func(f *pflag.Flag) { found[f.Name] = f.DefValue })
	return found
}

func TestTheFlagsAreThoseOfKoordinator(t *testing.T) {
	require.Equal(t, flags(app.NewSchedulerCommand().Flags()), flags(newCommand(t).Flags()))
}

func TestOurPluginsTakeThePlaceOfTheirs(t *testing.T) {
	wiring, err := jobqueue.NewWiring()
	require.NoError(t, err)
	theirs, ours := stock(), wiring.Plugins()
	require.Len(t, theirs, 10, "koord-scheduler v1.8.0 has ten plugins of its own")
	delete(ours, jobqueue.Name)
	for name := range ours {
		require.Contains(t, theirs, name)
	}
}

const (
	header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
		"- schedulerName: one\n"
	enabled = "  plugins: {multiPoint: {enabled: [{name: JobQueue}, {name: ElasticQuota}]}}\n"
)

func TestAConfigurationThatCannotWorkIsRefusedBeforeAnythingStarts(t *testing.T) {
	for _, tt := range []struct{ name, profile, want string }{
		{"half enabled", "  plugins: {preEnqueue: {enabled: [{name: JobQueue}]}, " +
			"preFilter: {enabled: [{name: ElasticQuota}]}}\n", "not enabled at preFilter"},
		{"misspelt argument", "  pluginConfig: [{name: JobQueue, args: {unknownJob: Pass}}]\n", "unknownJob"},
		{"unknown field", "  plugin: {}\n", "plugin"},
		{"unknown policy", enabled + "  pluginConfig: [{name: JobQueue, args: {defaultQueuePolicy: NewestFirst}}]\n",
			`pluginConfig[JobQueue].args.defaultQueuePolicy: Unsupported value: "NewestFirst": supported values: "Block", ` +
				`"FIFO", "Intelligent", "Priority"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(header+tt.profile), 0o600))
			command := newCommand(t)
			require.NoError(t, command.ParseFlags([]string{"--config=" + file}))
			require.ErrorContains(t, command.PreRunE(command, nil), tt.want)
		})
	}
}

func TestAPolicyThatIsRegisteredMayBeTheDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := header + enabled + "  pluginConfig: [{name: JobQueue, args: {defaultQueuePolicy: NewestFirst}}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	command := newCommand(t, jobqueue.WithPolicy("NewestFirst", queue.Builtin()["FIFO"]))
	require.NoError(t, command.ParseFlags([]string{"--config=" + file, "--write-config-to=somewhere"}))
	require.NoError(t, command.PreRunE(command, nil))
}

func TestExtensionsThatContradictAreRefused(t *testing.T) {
	require.Equal(t, 1, Run(jobqueue.WithPolicy("FIFO", queue.Builtin()["Block"])))
}

func TestNothingIsWaitedForWhereTheConfigurationIsOnlyWritten(t *testing.T) {
	command := newCommand(t)
	require.NoError(t, command.ParseFlags([]string{"--write-config-to=somewhere", "--master=http://127.0.0.1:1"}))
	require.NoError(t, command.PreRunE(command, nil))
}

func TestExitCodes(t *testing.T) {
	require.Equal(t, 143, exitCode(fmt.Errorf("%w: why", errTerminated)))
	require.Equal(t, 1, exitCode(errors.New("anything else")))
}

func TestTheShippedConfigurationIsAccepted(t *testing.T) {
	command := newCommand(t)
	require.NoError(t, command.ParseFlags([]string{"--config=../../scheduler-config.yaml", "--write-config-to=somewhere"}))
	require.NoError(t, command.PreRunE(command, nil))
}
