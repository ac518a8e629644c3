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
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

type options struct {
	streams         genericiooptions.IOStreams
	file, scheduler string
}

// Command is kubectl jobqueue scheduler-config.
func Command(streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{streams: streams}
	cmd := &cobra.Command{
		Use:   "scheduler-config --merge FILE",
		Short: "Print a configuration of koord-scheduler with what the queue needs",
		Long: `scheduler-config adds the plugin JobQueue to a KubeSchedulerConfiguration. It prints the configuration on
standard output, and each change on standard error. It keeps comments and all other fields, and asks no cluster.`,
		Example: `  kubectl jobqueue scheduler-config --merge scheduler.yaml > merged.yaml
  kubectl -n koordinator-system get configmap koord-scheduler-config -o jsonpath='{.data.koord-scheduler-config}' |
    kubectl jobqueue scheduler-config --merge - > merged.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	cmd.Flags().StringVar(&o.file, "merge", "", "file with the configuration; - is standard input")
	cmd.Flags().StringVar(&o.scheduler, "scheduler-name", "koord-scheduler",
		"schedulerName that the pods of jobs have; a profile must have it")
	_ = cmd.MarkFlagRequired("merge")
	return cmd
}

func (o *options) run() error {
	in, err := o.read()
	if err != nil {
		return err
	}
	out, changes, err := Merge(in, o.scheduler)
	if err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	if len(changes) == 0 {
		changes = []string{"Nothing was missing."}
	}
	if _, err := fmt.Fprintln(o.streams.ErrOut, strings.Join(changes, "\n")); err != nil {
		return err
	}
	_, err = o.streams.Out.Write(out)
	return err
}

func (o *options) read() ([]byte, error) {
	if o.file == "-" {
		return io.ReadAll(o.streams.In)
	}
	return os.ReadFile(o.file)
}
