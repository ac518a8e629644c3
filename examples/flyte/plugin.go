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

// Package flyte labels the resources of Flyte's plugins for a queue system.
//
// Flyte has no interface for schedulers. Wrap decorates the plugin that builds a resource, and works with Flyte
// unchanged. SchedulePlugin is the interface of Flyte's RFC "Supporting Yunikorn and Kueue", on the same library. This
// package has small copies of the types of Flyte that Wrap and SchedulePlugin need.
package flyte

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

// Task is what Flyte's TaskExecutionContext says of a task.
type Task struct {
	// GeneratedName and Namespace of the resource. The name has the attempt in it, so each attempt has a name of its own.
	GeneratedName, Namespace string
	Submitter                submit.Submitter
	// Labels and Annotations of the execution, which its user chooses.
	Labels, Annotations map[string]string
}

// Plugin is the method of Flyte's k8s.Plugin that builds the resource of a task.
type Plugin interface {
	BuildResource(ctx context.Context, task *Task) (client.Object, error)
}

// Wrap returns a plugin that builds the same resources, with the labels of the queueing system. Flyte names a resource
// only after BuildResource, so Wrap gives it the name that it will have.
func Wrap(plugin Plugin, c *submit.Config) Plugin { return wrapped{plugin, c} }

type wrapped struct {
	Plugin
	config *submit.Config
}

func (w wrapped) BuildResource(ctx context.Context, task *Task) (client.Object, error) {
	object, err := w.Plugin.BuildResource(ctx, task)
	if err != nil {
		return nil, err
	}
	object.SetName(task.GeneratedName)
	object.SetNamespace(task.Namespace)
	job, err := w.config.Job(&task.Submitter)
	if err != nil {
		return nil, err
	}
	return edit(object, func(o submit.Object) (submit.Object, error) {
		labelled, groups, err := w.config.Driver.Label(job, o)
		if len(groups) > 0 {
			return nil, fmt.Errorf("%w: BuildResource returns one resource, and %s needs %d more", submit.ErrUnsupported,
				w.config.Driver.Name(), len(groups))
		}
		return labelled, err
	})
}

// edit returns a changed object of the same type.
func edit(object client.Object, change func(submit.Object) (submit.Object, error)) (client.Object, error) {
	fields, err := submit.ObjectOf(object)
	if err != nil {
		return nil, err
	}
	changed, err := change(fields)
	if err != nil {
		return nil, err
	}
	into, ok := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not a pointer to an object", object)
	}
	return into, submit.Into(changed, into)
}
