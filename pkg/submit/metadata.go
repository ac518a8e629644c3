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
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// maxAnnotations is the bound of the API server on all annotations of an object, in bytes.
const maxAnnotations = 256 << 10

// work is a copy of an object, on the way to a labelled one.
type work struct {
	job    *Job
	kind   *kind
	object Object
	sets   []PodSet
	driver Driver
}

// open checks the job, and copies the object.
func (d Driver) open(job *Job, object Object) (*work, error) {
	k, err := kindOf(object, d.Kinds)
	if err != nil {
		return nil, err
	}
	if err := d.check(job); err != nil {
		return nil, err
	}
	w := &work{job: job, kind: k, driver: d, object: podset.Copy(object).(Object)}
	if err := w.checkIdentity(); err != nil {
		return nil, err
	}
	if k.isPod() {
		w.object = wrapPod(w.object)
	}
	if w.sets, err = k.podSets(w.object); err != nil {
		return nil, errors.Join(w.valid(), err)
	}
	for i := range w.sets {
		if w.sets[i].Template["spec"] == nil {
			return nil, fmt.Errorf("%w: %s has no spec", podset.ErrMalformed, w.sets[i].found.TemplatePath())
		}
	}
	if len(w.sets) == 0 && d.needsPods {
		return nil, fmt.Errorf("%s: %w by %s: the object has no pod templates", k.Kind, ErrUnsupported, d.Driver)
	}
	return w, nil
}

// close returns the object as it was given.
func (w *work) close() Object {
	if !w.kind.isPod() {
		return w.object
	}
	template, _ := podset.Lookup(w.object, podset.Path{"spec", "template"}).(Object)
	out := Object{"apiVersion": w.object["apiVersion"], "kind": w.object["kind"]}
	for key, value := range template {
		out[key] = value
	}
	return out
}

func (w *work) text(path ...string) string {
	value, _ := podset.Lookup(w.object, path).(string)
	return value
}

func (w *work) name() string { return w.text("metadata", "name") }

// write labels onto the object and all pod templates.
func (w *work) write(own, pods Metadata) error {
	if err := writeMetadata(w.object, podset.Path{"metadata"}, own); err != nil {
		return err
	}
	for i := range w.sets {
		if err := w.sets[i].write(pods); err != nil {
			return err
		}
	}
	return nil
}

// forget takes labels and annotations of these keys from the object and all pod templates.
func (w *work) forget(keys ...string) {
	drop := func(object Object, at podset.Path) {
		values, _ := podset.Lookup(object, at).(Object)
		for _, key := range keys {
			delete(values, key)
		}
	}
	for _, key := range []podset.MetadataKey{podset.LabelsKey, podset.AnnotationsKey} {
		drop(w.object, podset.Path{"metadata", string(key)})
		for i := range w.sets {
			if to, at := w.sets[i].found.MetadataAt(key); to != nil {
				drop(to, at)
			}
		}
	}
}

// write labels onto the pods. Pods of which the object has no template keep what their operator gives them.
func (s *PodSet) write(m Metadata) error {
	for key, values := range map[podset.MetadataKey]map[string]string{
		podset.LabelsKey: m.Labels, podset.AnnotationsKey: m.Annotations,
	} {
		if to, at := s.found.MetadataAt(key); to != nil {
			if err := writeMap(to, at, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// writable says whether the object has a place for labels of these pods.
func (s *PodSet) writable() bool {
	to, _ := s.found.MetadataAt(podset.AnnotationsKey)
	return to != nil
}

// setScheduler names the scheduler of the pods.
func (s *PodSet) setScheduler(name string) error {
	to, at := s.found.Object, s.found.Template.Child("spec", "schedulerName")
	switch given := s.found.SchedulerName; {
	case len(given.Path) > 0 && given.OfJob:
		to, at = s.found.Job, given.Path
	case len(given.Path) > 0:
		at = given.Path
	case len(s.found.Template) == 0:
		return nil
	}
	if have, _ := podset.Lookup(to, at).(string); have != "" && have != "default-scheduler" && have != name {
		return fmt.Errorf("%s: %w: it names the scheduler %.100q, want %q", s.found.TemplatePath(), ErrConflict, have, name)
	}
	return writeField(to, at, name)
}

// suspend the job, if it can be. A job that the queue cannot suspend is refused.
func (w *work) suspend() error {
	if err := w.valid(); err != nil {
		return err
	}
	switch s := w.kind.Suspend; {
	case s == nil || w.kind.runs.Holds(w.object):
		return nil
	case s.Field != "":
		return writeField(w.object, podset.PathOf(s.Field), true)
	default:
		return writeMap(w.object, podset.Path{"metadata", "annotations"}, map[string]string{s.Annotation: "true"})
	}
}

// valid says what keeps the queue from taking the job.
func (w *work) valid() error {
	for i, rule := range w.kind.valid {
		if !rule.Holds(w.object) {
			return fmt.Errorf("%s: %w: %s", w.kind.Kind, ErrInvalid, w.kind.Valid[i].Message)
		}
	}
	return nil
}

func writeMetadata(object Object, at podset.Path, m Metadata) error {
	if err := writeMap(object, at.Child("labels"), m.Labels); err != nil {
		return err
	}
	return writeMap(object, at.Child("annotations"), m.Annotations)
}

// writeMap sets values in an object of texts, and leaves the others.
func writeMap(object Object, at podset.Path, values map[string]string) error {
	size := 0
	for key, value := range podset.StringMap(podset.Lookup(object, at)) {
		size += len(key) + len(value)
	}
	for key, value := range values {
		if size += len(key) + len(value); size > maxAnnotations {
			return fmt.Errorf("%s: %w: more than %d bytes", at, ErrInvalid, maxAnnotations)
		}
		if err := writeField(object, at.Child(key), value); err != nil {
			return err
		}
	}
	return nil
}

// writeField sets one field, and makes the objects on the way to it.
func writeField(object Object, at podset.Path, value any) error {
	for i, key := range at[:len(at)-1] {
		next, isObject := object[key].(Object)
		if !isObject && object[key] != nil {
			return fmt.Errorf("%w: %s is not an object", podset.ErrMalformed, at[:i+1])
		}
		if next == nil {
			next = Object{}
			object[key] = next
		}
		object = next
	}
	object[at[len(at)-1]] = value
	return nil
}

// groupName names the gang of a job: no two kinds of jobs share one.
func (w *work) groupName() string { return fit(strings.ToLower(w.kind.Kind) + "-" + w.name()) }
