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

// Package jobdefaults adds the defaults of a kind to a job that says nothing about them. It is pure: from a job and the
// settings of its kind it makes another job to read instead.
package jobdefaults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// Entry has the settings of a kind of jobs.
type Entry struct {
	// Kind is one of the kinds of the configuration that can be suspended.
	Kind string `json:"kind"`
	Settings
}

// Settings hold for a job that says nothing else. An absent field sets nothing. Durations are texts as "30m".
type Settings struct {
	// Gang has a job be one gang, unless a pod template of it names a gang or the annotation min-available of Koordinator.
	Gang *Gang `json:"gang,omitempty"`
	// Preemptible is the value of the preemptible label of a job. With false its pods draw on min only.
	Preemptible *bool `json:"preemptible,omitempty"`
	// PriorityClassName names the class that gives a unit its priority. Pods keep their own: Kubernetes refuses to change
	// the class in the template of a Job.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// MaxExecutionTime is for how long a job may run, in whole seconds.
	MaxExecutionTime string `json:"maxExecutionTime,omitempty"`
	// Grace of a job after an eviction for others, in whole seconds, up to the bound of its queue.
	Grace string `json:"grace,omitempty"`
}

// Gang has settings of the gangs that the controller makes for jobs.
type Gang struct {
	// WaitTime is for how long pods of the gang wait on their nodes for the others. Absent is the time of Koordinator.
	WaitTime string `json:"waitTime,omitempty"`
	// Mode is Strict or NonStrict. Absent is Strict.
	Mode string `json:"mode,omitempty"`
}

// maxText bounds what Read takes, in bytes.
const maxText = 1 << 10

// Check returns an error that names the field and the value.
func (s *Settings) Check() error {
	if name := s.PriorityClassName; name != "" {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("priorityClassName: %.64q: %s", name, strings.Join(problems, "; "))
		}
	}
	if s.Gang != nil {
		if err := checkDuration("gang.waitTime", s.Gang.WaitTime); err != nil {
			return err
		}
		modes := []string{"", extension.GangModeStrict, extension.GangModeNonStrict}
		if !slices.Contains(modes, s.Gang.Mode) {
			return fmt.Errorf("gang.mode: %.64q is neither %s nor %s", s.Gang.Mode, modes[1], modes[2])
		}
	}
	return errors.Join(checkDuration("maxExecutionTime", s.MaxExecutionTime), checkDuration("grace", s.Grace))
}

func checkDuration(field, text string) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 || d/time.Second > math.MaxInt32 {
		return fmt.Errorf(`%s: %.64q is no time as "30m", of whole seconds from 1 to %d`, field, text, math.MaxInt32)
	}
	return nil
}

// seconds of a duration that was checked.
func seconds(text string) string {
	d, _ := time.ParseDuration(text)
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// Text is what Read reads; nil has none.
func (s *Settings) Text() string {
	if s == nil {
		return ""
	}
	text, _ := json.Marshal(s) // texts and a boolean always encode
	return string(text)
}

// Read the settings that a unit has; nil where the text is none. Others than the controller may write it.
func Read(text string) *Settings {
	if text == "" || len(text) > maxText {
		return nil
	}
	s := &Settings{}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if decoder.Decode(s) != nil || s.Check() != nil {
		return nil
	}
	return s
}

// Apply returns the job to read in place of this one. Values of the job or of its pod templates stay. Nil sets nothing.
func (s *Settings) Apply(job *jobs.Job) *jobs.Job {
	if s == nil {
		return job
	}
	edit := job.Edit()
	annotations := job.Object.GetAnnotations()
	texts := map[string]string{v1alpha1.AnnotationMaxExecutionTime: s.MaxExecutionTime, v1alpha1.AnnotationGrace: s.Grace}
	if job.Further.MaximumTime != "" { // a label of another system has the time
		delete(texts, v1alpha1.AnnotationMaxExecutionTime)
	}
	for key, text := range texts {
		if _, said := annotations[key]; !said && text != "" {
			edit.Annotate(key, seconds(text))
		}
	}
	if s.Preemptible != nil && job.Preemptible() == "" {
		edit.Label(v1alpha1.LabelPreemptible, strconv.FormatBool(*s.Preemptible))
	}
	read := edit.Job()
	read.Alias, read.Further = job.Alias, job.Further
	read.Defaults = jobs.Defaults{PriorityClass: s.PriorityClassName}
	if s.Gang != nil {
		read.Defaults.Gang = &jobs.GangDefault{Mode: s.Gang.Mode, WaitTime: s.Gang.WaitTime}
	}
	return read
}
