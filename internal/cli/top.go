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
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

func topCommand(c *connection) *cobra.Command {
	var all, watch bool
	var resource, output string
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show quotas: guarantee, limit, used, reserved, pending",
		Long: `top shows the quotas that jobs of a namespace use, as a tree. Columns are the guarantee (min), the share of
this moment (runtime) and the largest limit (max). The share grows with the demand of jobs. Further columns are the use
of pods, the amount that is reserved for admitted jobs, and the number of units. Below the table is what is free on nodes
that are cordoned, not ready or being deleted: no job gets it.

top needs the aggregated API. With -A it needs the role jobqueue-operator.`,
		Example: `  kubectl jobqueue top
  kubectl jobqueue top -A --resource nvidia.com/gpu`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.repeat(cmd.Context(), watch, func(out io.Writer) error {
				quotas, err := quotasOf(cmd.Context(), c, all)
				switch {
				case err != nil:
					return err
				case output != "":
					return writeData(out, output, quotas)
				}
				if len(quotas) == 0 {
					_, err := fmt.Fprintln(c.streams.ErrOut, "No job of this namespace uses a quota. Show all quotas with -A.")
					return err
				}
				return screen.Top(out, quotas, resource)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show all quotas")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again when something changes, until interrupted")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json or yaml")
	cmd.Flags().StringVar(&resource, "resource", "", "show this resource only")
	return cmd
}

// writeData writes a value that is no object of the API.
func writeData(out io.Writer, format string, value any) error {
	var text []byte
	var err error
	switch format {
	case "json":
		if text, err = json.MarshalIndent(value, "", "    "); err == nil {
			text = append(text, '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return fmt.Errorf("unknown output format %q", format)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// writeObjects writes a list of QueueUnits as kubectl get does, also of one or none: programs read it.
func writeObjects(out io.Writer, format string, units []v1alpha1.QueueUnit) error {
	if format == "name" {
		for i := range units {
			if err := writeObject(out, format, &units[i]); err != nil {
				return err
			}
		}
		return nil
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for i := range units {
		units[i].SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"))
		list.Items = append(list.Items, runtime.RawExtension{Object: &units[i]})
	}
	return printObject(out, format, list)
}

func writeObject(out io.Writer, format string, unit *v1alpha1.QueueUnit) error {
	if format == "name" {
		_, err := fmt.Fprintf(out, "queueunit.%s/%s\n", v1alpha1.GroupName, unit.Name)
		return err
	}
	unit.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"))
	return printObject(out, format, unit)
}

func printObject(out io.Writer, format string, object runtime.Object) error {
	switch format {
	case "json":
		return (&printers.JSONPrinter{}).PrintObj(object, out)
	case "yaml":
		return (&printers.YAMLPrinter{}).PrintObj(object, out)
	default:
		return fmt.Errorf("unknown output format %q", format)
	}
}
