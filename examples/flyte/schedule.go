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

package flyte

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

// SchedulePlugin is the interface of the RFC. Each method gets a resource and returns another one.
type SchedulePlugin interface {
	SetSchedulerName(object client.Object) (client.Object, error)
	CreateLabels(task *Task, object client.Object) (client.Object, error)
	CreateGroupLabels(task *Task, object client.Object) (client.Object, error)
	GetGroupLabels(task *Task, object client.Object, group string) (submit.Metadata, error)
}

// Scheduler implements SchedulePlugin with the library.
type Scheduler struct{ Config *submit.Config }

// SetSchedulerName names the scheduler of the pods.
func (s Scheduler) SetSchedulerName(object client.Object) (client.Object, error) {
	return edit(object, s.Config.Driver.SetSchedulerName)
}

// CreateLabels writes queue and user.
func (s Scheduler) CreateLabels(task *Task, object client.Object) (client.Object, error) {
	job, err := s.Config.Job(&task.Submitter)
	if err != nil {
		return nil, err
	}
	return edit(object, func(o submit.Object) (submit.Object, error) { return s.Config.Driver.CreateLabels(job, o) })
}

// CreateGroupLabels makes the pods a gang.
func (s Scheduler) CreateGroupLabels(task *Task, object client.Object) (client.Object, error) {
	job, err := s.Config.Job(&task.Submitter)
	if err != nil {
		return nil, err
	}
	return edit(object, func(o submit.Object) (submit.Object, error) {
		return s.Config.Driver.CreateGroupLabels(job, o)
	})
}

// GetGroupLabels are the labels of one pod set.
func (s Scheduler) GetGroupLabels(task *Task, object client.Object, group string) (submit.Metadata, error) {
	job, err := s.Config.Job(&task.Submitter)
	if err != nil {
		return submit.Metadata{}, err
	}
	fields, err := submit.ObjectOf(object)
	if err != nil {
		return submit.Metadata{}, err
	}
	return s.Config.Driver.GetGroupLabels(job, fields, group)
}

// Manager is the part of Flyte's PluginManager that launches a resource.
type Manager struct {
	Plugin   Plugin
	Schedule SchedulePlugin
	Create   func(ctx context.Context, object client.Object) error
}

// launchResource is the flow of the RFC: build the resource, name it, label it, create it. The labels come last, so
// they replace those that a user gives to an execution.
func (m *Manager) launchResource(ctx context.Context, task *Task) error {
	object, err := m.Plugin.BuildResource(ctx, task)
	if err != nil {
		return err
	}
	addObjectMetadata(task, object)
	if object, err = m.Schedule.SetSchedulerName(object); err != nil {
		return err
	}
	if object, err = m.Schedule.CreateLabels(task, object); err != nil {
		return err
	}
	if object, err = m.Schedule.CreateGroupLabels(task, object); err != nil {
		return err
	}
	return m.Create(ctx, object)
}

// addObjectMetadata does what Flyte does: the labels and annotations of the task go over those of the object.
func addObjectMetadata(task *Task, object client.Object) {
	object.SetNamespace(task.Namespace)
	object.SetName(task.GeneratedName)
	object.SetLabels(union(object.GetLabels(), task.Labels))
	object.SetAnnotations(union(object.GetAnnotations(), task.Annotations))
}

func union(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}
