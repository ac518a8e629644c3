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

package submit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// Errors that callers may tell from others. All of them mean that another attempt fails in the same way.
var (
	// ErrUnsupported: the system of the driver has no such thing.
	ErrUnsupported = errors.New("not supported")
	// ErrInvalid: a value is not one that the system takes.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: the object says something else already.
	ErrConflict = errors.New("conflict")
)

// Options choose a driver.
type Options struct {
	// Driver is one of Drivers.
	Driver string
	// SchedulerName of the pods, if it is not the usual one of the system.
	SchedulerName string
	// KubernetesAPI is the version of scheduling.k8s.io that the driver k8s writes, and needed for it: v1alpha2 of
	// Kubernetes 1.36, or v1beta1 of Kubernetes 1.37.
	KubernetesAPI string
	// Kinds of jobs that are not built in. They take the place of built-in kinds of the same name.
	Kinds []Kind
}

// Driver writes the labels of one queue system. Its methods change no argument, and depend only on their arguments.
type Driver struct {
	Options
	system
}

// system is what a driver knows of its queueing system.
type system struct {
	// scheduler is the usual name; empty leaves the templates as they are.
	scheduler string
	// queues, priorities, limits and nonPreemptible say what the system has for a job.
	queues, priorities, limits, nonPreemptible, podGroups bool
	// suspends: a job is created suspended, and the system resumes it.
	suspends bool
	// needsQueue: the system does nothing for a job without a queue.
	needsQueue bool
	// needsName: the name of the object is a part of its labels.
	needsName bool
	// needsPods: labels of the object alone do nothing.
	needsPods bool
	// labels of the object, and of all pods.
	labels func(*work) (object, pods Metadata, err error)
	// groups are the labels of pods by pod set, and the objects that say what the group is.
	groups func(*work) (map[string]Metadata, []Object, error)
}

var systems = map[string]system{
	"koord": {
		scheduler: "koord-scheduler", queues: true, limits: true, nonPreemptible: true, podGroups: true,
		suspends: true, labels: koordLabels, groups: koordGroups,
	},
	"yunikorn": {
		scheduler: "yunikorn", queues: true, nonPreemptible: true, needsName: true, needsPods: true,
		labels: yunikornLabels, groups: yunikornGroups,
	},
	"kueue": {
		queues: true, priorities: true, limits: true, podGroups: true, suspends: true,
		needsQueue: true, labels: kueueLabels, groups: kueueGroups,
	},
	"volcano": {
		scheduler: "volcano", queues: true, priorities: true, nonPreemptible: true, needsPods: true,
		labels: volcanoLabels, groups: volcanoGroups,
	},
	"scheduler-plugins": {
		scheduler: "scheduler-plugins-scheduler", needsPods: true, labels: noLabels, groups: schedulerPluginsGroups,
	},
	"kai": {
		scheduler: "kai-scheduler", queues: true, nonPreemptible: true, needsPods: true,
		needsQueue: true, labels: kaiLabels, groups: kaiGroups,
	},
	"k8s": {needsPods: true, labels: noLabels, groups: kubernetesGroups},
	"none": {
		queues: true, priorities: true, limits: true, nonPreemptible: true, podGroups: true,
	},
}

// Drivers are the names of all drivers, sorted.
func Drivers() []string { return slices.Sorted(maps.Keys(systems)) }

// New checks the options.
func New(o Options) (Driver, error) {
	s, known := systems[o.Driver]
	if !known {
		return Driver{}, fmt.Errorf("driver %.40q: %w: want one of %s", o.Driver, ErrInvalid, strings.Join(Drivers(), ", "))
	}
	if o.SchedulerName != "" {
		if s.scheduler == "" {
			return Driver{}, fmt.Errorf("scheduler name: %w: %s leaves the scheduler of pods as it is", ErrUnsupported, o.Driver)
		}
		if err := checkName("scheduler name", o.SchedulerName); err != nil {
			return Driver{}, err
		}
		s.scheduler = o.SchedulerName
	}
	allowed := []string{""}
	if o.Driver == "k8s" {
		allowed = kubernetesAPIs
	}
	if !slices.Contains(allowed, o.KubernetesAPI) {
		return Driver{}, fmt.Errorf("version of scheduling.k8s.io %.40q: %w: the driver k8s, and no other, needs one of %s",
			o.KubernetesAPI, ErrInvalid, strings.Join(kubernetesAPIs, ", "))
	}
	return Driver{o, s}, nil
}

// Name of the driver.
func (d Driver) Name() string { return d.Driver }

// SetSchedulerName names the scheduler in every pod template. A template that names another scheduler is an
// ErrConflict; default-scheduler is replaced.
func (d Driver) SetSchedulerName(object Object) (Object, error) {
	if d.scheduler == "" {
		return podset.Copy(object).(Object), nil
	}
	w, err := d.open(&Job{}, object)
	if err != nil {
		return nil, err
	}
	for i := range w.sets {
		if err := w.sets[i].setScheduler(d.scheduler); err != nil {
			return nil, err
		}
	}
	return w.close(), nil
}

// CreateLabels writes queue and identity onto the object and its pod templates. For a system that resumes jobs it
// suspends the job. It replaces existing values, so that a user cannot choose the queue.
func (d Driver) CreateLabels(job Job, object Object) (Object, error) {
	if d.labels == nil {
		return podset.Copy(object).(Object), nil
	}
	w, err := d.open(&job, object)
	if err != nil {
		return nil, err
	}
	own, pods, err := d.labels(w)
	if err != nil {
		return nil, err
	}
	if err := w.write(own, pods); err != nil {
		return nil, err
	}
	if d.suspends {
		if err := w.suspend(); err != nil {
			return nil, err
		}
	}
	return w.close(), nil
}

// CreateGroupLabels writes onto the pod templates what makes the pods of the job one gang. Without a gang it changes
// nothing.
func (d Driver) CreateGroupLabels(job Job, object Object) (Object, error) {
	w, groups, _, err := d.grouped(&job, object)
	if err != nil {
		return nil, err
	}
	for i := range w.sets {
		if err := w.sets[i].write(groups[w.sets[i].Name]); err != nil {
			return nil, err
		}
	}
	if d.Driver == "k8s" {
		if err := joinGroups(w, groups); err != nil {
			return nil, err
		}
	}
	return w.close(), nil
}

// GetGroupLabels are the labels and annotations that CreateGroupLabels writes for one pod set.
func (d Driver) GetGroupLabels(job Job, object Object, podSet string) (Metadata, error) {
	w, groups, _, err := d.grouped(&job, object)
	if err != nil || d.groups == nil {
		return Metadata{}, err
	}
	if !slices.ContainsFunc(w.sets, func(s PodSet) bool { return s.Name == podSet }) {
		return Metadata{}, fmt.Errorf("pod set %.63q: %w: the job has none of this name", podSet, ErrInvalid)
	}
	return groups[podSet], nil
}

// GroupObjects are the objects that describe the gang to the system, such as a PodGroup. The program creates them
// before the job, or after it with an owner reference to the job.
func (d Driver) GroupObjects(job Job, object Object) ([]Object, error) {
	_, _, objects, err := d.grouped(&job, object)
	return objects, err
}

// Label does all of it. It returns the object and its group objects.
func (d Driver) Label(job Job, object Object) (labelled Object, groups []Object, err error) {
	if groups, err = d.GroupObjects(job, object); err != nil {
		return nil, nil, err
	}
	if labelled, err = d.SetSchedulerName(object); err != nil {
		return nil, nil, err
	}
	if labelled, err = d.CreateLabels(job, labelled); err != nil {
		return nil, nil, err
	}
	labelled, err = d.CreateGroupLabels(job, labelled)
	return labelled, groups, err
}

// grouped is the job with what its groups get.
func (d Driver) grouped(job *Job, object Object) (*work, map[string]Metadata, []Object, error) {
	if d.groups == nil {
		return &work{object: podset.Copy(object).(Object), kind: &kind{}}, nil, nil, nil
	}
	w, err := d.open(job, object)
	if err != nil || job.Gang == nil && job.PodGroup == nil || !w.kind.gangs(job) {
		return w, nil, nil, err
	}
	groups, objects, err := d.system.groups(w)
	return w, groups, objects, err
}

func noLabels(*work) (object, pods Metadata, err error) { return Metadata{}, Metadata{}, nil }
