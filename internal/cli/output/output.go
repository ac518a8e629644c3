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

// Package output writes answers and objects in the formats of -o.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Data writes a value that is no object of the API.
func Data(out io.Writer, format string, value any) error {
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

// Units writes a list of QueueUnits as kubectl get does, also of one or none: programs read it.
func Units(out io.Writer, format string, units []v1alpha1.QueueUnit) error {
	if format == "name" {
		for i := range units {
			if err := Unit(out, format, &units[i]); err != nil {
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
	return Object(out, format, list)
}

// Unit writes one QueueUnit.
func Unit(out io.Writer, format string, unit *v1alpha1.QueueUnit) error {
	if format == "name" {
		_, err := fmt.Fprintf(out, "queueunit.%s/%s\n", v1alpha1.GroupName, unit.Name)
		return err
	}
	unit.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"))
	return Object(out, format, unit)
}

// Object writes an object that says its kind.
func Object(out io.Writer, format string, object runtime.Object) error {
	switch format {
	case "json":
		return (&printers.JSONPrinter{}).PrintObj(object, out)
	case "yaml":
		return (&printers.YAMLPrinter{}).PrintObj(object, out)
	default:
		return fmt.Errorf("unknown output format %q", format)
	}
}
