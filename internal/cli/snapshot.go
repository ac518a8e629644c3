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
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/snapshot"
	facts "github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
)

type snapshotOptions struct {
	*connection
	file string
	hash bool
}

func snapshotCommand(c *connection) *cobra.Command {
	o := &snapshotOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Write queues, units, quotas and priority classes to a file, for a bug report",
		Long: `snapshot writes what the scheduler decides by to one file of YAML: Queues, QueueUnits, ElasticQuotas and
PriorityClasses. Of pod templates it keeps only what scheduling needs. It needs the right to list all of these.

A second file has the facts of the scheduler and past run times. Its name is FILE with the extension .facts.json.
simulate --snapshot reads that file. Its facts need the aggregated API and the role jobqueue-operator.
Without these, or on standard output, that file is left out.

With --hash-names it replaces every name by a hash, with a key that is not kept. It leaves out all messages, and the
labels and annotations that the queue does not read.`,
		Example: `  kubectl jobqueue snapshot -o state.yaml --hash-names`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&o.file, "output-file", "o", "", "file to write; - is standard output")
	cmd.Flags().BoolVar(&o.hash, "hash-names", false, "replace names by hashes, and leave out texts")
	_ = cmd.MarkFlagRequired("output-file")
	return cmd
}

func (o *snapshotOptions) run(ctx context.Context) error {
	reader, _, err := o.reader()
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	for _, kind := range []schema.GroupVersionKind{
		schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Kind: "ElasticQuota"},
		v1alpha1.SchemeGroupVersion.WithKind("Queue"),
		v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"),
	} {
		if err := all(ctx, reader.Objects, kind, list); err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	var key []byte
	if o.hash {
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return err
		}
	}
	for i := range list.Items {
		if err := snapshot.Reduce(&list.Items[i], key); err != nil {
			return err
		}
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		return err
	}
	if o.file == "-" {
		_, err = o.streams.Out.Write(text)
		return err
	}
	if err := os.WriteFile(o.file, text, 0o600); err != nil {
		return err
	}
	if err := o.say(fmt.Sprintf("%d objects written to %s", len(list.Items), o.file)); err != nil {
		return err
	}
	return o.facts(ctx, reader, key)
}

// facts writes the facts of the scheduler, if it says them to the caller.
func (o *snapshotOptions) facts(ctx context.Context, reader *answers.Reader, key []byte) error {
	s, err := reader.Snapshot(ctx)
	if err != nil {
		_, err = fmt.Fprintln(o.streams.ErrOut, "Without facts of the scheduler:", answers.Unanswered(err, false))
		return err
	}
	if key != nil {
		s = s.Renamed(func(name string) string { return snapshot.Name(name, key) })
	}
	var text bytes.Buffer
	if err := facts.Write(&text, s); err != nil {
		return err
	}
	path := strings.TrimSuffix(o.file, filepath.Ext(o.file)) + ".facts.json"
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return err
	}
	return o.say(fmt.Sprintf("facts of %d units written to %s", len(s.Facts.Units), path))
}

// all adds every object of a kind to a list.
func all(ctx context.Context, from client.Client, kind schema.GroupVersionKind,
	into *unstructured.UnstructuredList) error {
	for token := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := from.List(ctx, page, client.Limit(500), client.Continue(token)); err != nil {
			return err
		}
		into.Items = append(into.Items, page.Items...)
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}
