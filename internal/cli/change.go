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
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/bulk"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
)

// change is a command that writes. It says what it has changed, or would change.
type change struct {
	*connection
	dryRun         string
	queueNamespace string
	selected       bulk.Flags
}

const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func (c *change) addDryRun(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.dryRun, "dry-run", dryRunNone,
		"none; client: send nothing; server: have the API server check the request, without an effect")
}

func (c *change) addQueueNamespace(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.queueNamespace, "queue-namespace", v1alpha1.DefaultQueueNamespace, "namespace of the Queues")
}

// each changes the job that an argument names, or those that the flags select and the change is for.
func (c *change) each(
	ctx context.Context, args []string, verb string, wants func(*v1alpha1.QueueUnit) bool,
	do func(context.Context, client.Client, *v1alpha1.QueueUnit) error,
) error {
	named, err := c.selected.Named(args)
	if err != nil {
		return err
	}
	reader, namespace, err := c.reader()
	if err != nil {
		return err
	}
	if named {
		unit, err := reader.Unit(ctx, namespace, args[0])
		if err != nil {
			return err
		}
		return do(ctx, reader.Objects, unit)
	}
	query, err := c.selected.Query(c.flags)
	if err != nil {
		return err
	}
	from := func(ctx context.Context, q *unitlist.Query, yield func([]v1alpha1.QueueUnit, bool) error) error {
		return unitlist.Units(ctx, reader, q, yield)
	}
	return c.selected.Run(ctx, c.streams, c.clock.Now(), from, query, &bulk.Change{
		Verb: verb, Wants: wants,
		Do: func(ctx context.Context, u *v1alpha1.QueueUnit) error { return do(ctx, reader.Objects, u) },
	}, c.dryRun != dryRunNone)
}

// fields is part of an object: a JSON merge patch.
type fields = map[string]any

func annotations(values fields) fields { return fields{"metadata": fields{"annotations": values}} }

// patch changes fields of an object and writes note about it.
func (c *change) patch(ctx context.Context, to client.Client, object client.Object, change fields, note string) error {
	// Another object of that name is not meant.
	metadata, _ := change["metadata"].(fields)
	if metadata == nil {
		metadata = fields{}
		change["metadata"] = metadata
	}
	metadata["uid"] = object.GetUID()
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.FieldOwner("kubectl-jobqueue")}
	switch c.dryRun {
	case dryRunNone:
	case dryRunClient:
		return c.say(note + " (dry run)")
	case dryRunServer:
		options = append(options, client.DryRunAll)
		note += " (server dry run)"
	default:
		return fmt.Errorf("--dry-run: want %s, %s or %s, have %q", dryRunNone, dryRunClient, dryRunServer, c.dryRun)
	}
	if err := to.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), options...); err != nil {
		return err
	}
	return c.say(note)
}

func (c *connection) say(note string) error {
	_, err := fmt.Fprintln(c.streams.Out, note)
	return err
}

// unitOf finds the unit of a job in the namespace of the caller.
func (c *connection) unitOf(ctx context.Context, job string) (client.Client, *v1alpha1.QueueUnit, error) {
	reader, namespace, err := c.reader()
	if err != nil {
		return nil, nil, err
	}
	unit, err := reader.Unit(ctx, namespace, job)
	return reader.Objects, unit, err
}

// jobObject is the job of a unit, with its metadata alone.
func jobObject(ctx context.Context, from client.Client, of *corev1.ObjectReference, namespace string) (
	*unstructured.Unstructured, error,
) {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(of.GroupVersionKind())
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: of.Name}, job)
	if err == nil && of.UID != "" && of.UID != job.GetUID() {
		err = fmt.Errorf("%s %s was created again since; try again", of.Kind, of.Name)
	}
	return job, err
}

// queueExists asks for a Queue. A caller without the right to read Queues gets no error.
func (c *change) queueExists(ctx context.Context, from client.Client, name string) error {
	err := from.Get(ctx, types.NamespacedName{Namespace: c.queueNamespace, Name: name}, &v1alpha1.Queue{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
