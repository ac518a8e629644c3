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

// Package command is jobqueue-migrate. It reads files or a cluster, and writes objects and findings.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// errLeftOut ends the command with a failure after it has written what it made.
var errLeftOut = errors.New("a finding is an Error: something that jobs need was left out")

type options struct {
	source      migrate.Source
	streams     genericiooptions.IOStreams
	flags       *genericclioptions.ConfigFlags
	files       []string
	fromCluster bool
	dryRun      bool
}

// New is jobqueue-migrate with all that is below it.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "jobqueue-migrate",
		Short: "Moves the configuration of another queueing system here",
		Long: `jobqueue-migrate reads the configuration of another queueing system. It writes ElasticQuotas, Queues and roles
to standard output, and findings to standard error: what cannot be expressed, what was chosen instead, and why.

It changes nothing without --dry-run=false. Its exit code is 1 if a finding is an Error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	flags := genericclioptions.NewConfigFlags(true)
	flags.AddFlags(root.PersistentFlags())
	for _, source := range migrate.Sources {
		root.AddCommand(sourceCommand(source, streams, flags))
	}
	return root
}

func sourceCommand(
	source migrate.Source, streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags,
) *cobra.Command {
	o := &options{source: source, streams: streams, flags: flags}
	cmd := &cobra.Command{
		Use:   "from-" + source.Name,
		Short: "Make quotas, queues and roles of the configuration of " + source.Title,
		Long:  "from-" + source.Name + " reads " + source.Reads + ".",
		Example: fmt.Sprintf("  jobqueue-migrate from-%[1]s -f config.yaml > migrated.yaml\n"+
			"  jobqueue-migrate from-%[1]s --from-cluster --dry-run=false", source.Name),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file with the configuration; - is standard input")
	cmd.Flags().BoolVar(&o.fromCluster, "from-cluster", false, "read the configuration from the cluster")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", true,
		"write the objects to standard output; false applies them to the cluster")
	cmd.MarkFlagsMutuallyExclusive("filename", "from-cluster")
	cmd.MarkFlagsOneRequired("filename", "from-cluster")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	var out finding.List
	documents, err := o.documents(ctx, &out)
	if err != nil {
		return err
	}
	objects := o.source.Convert(documents, &out)
	findings := out.Sorted()
	if err := writeFindings(o.streams.ErrOut, findings); err != nil {
		return err
	}
	if o.dryRun {
		err = writeObjects(o.streams.Out, objects)
	} else {
		err = o.apply(ctx, objects)
	}
	if err == nil && len(findings) > 0 && findings[0].Severity == finding.Error {
		return errLeftOut
	}
	return err
}

func (o *options) documents(ctx context.Context, out *finding.List) ([]document.Document, error) {
	if o.fromCluster {
		return o.read(ctx, out)
	}
	var all strings.Builder
	for _, name := range o.files {
		raw, err := readFile(name, o.streams.In)
		if err != nil {
			return nil, err
		}
		all.WriteString("\n---\n")
		all.Write(raw)
	}
	return document.Decode([]byte(all.String()), out), nil
}

// readFile reads one byte more than may be read, so that the bound is noticed.
func readFile(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, document.MaxBytes+1))
}

func writeObjects(to io.Writer, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		raw, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", raw); err != nil {
			return err
		}
	}
	return nil
}

func writeFindings(to io.Writer, findings []finding.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "SEVERITY\tREASON\tOBJECT\tFIELD\tMESSAGE")
	for _, f := range findings {
		field := f.Field
		if field == "" {
			field = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.Severity, f.Reason, f.Object, field, f.Message)
	}
	return table.Flush()
}
