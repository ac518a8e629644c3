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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxLabelValue is the bound of the API server on the value of a label.
const maxLabelValue = 63

// Bounds of YuniKorn on users and groups, and of this library on their number.
var (
	yunikornUser  = regexp.MustCompile(`^[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?$`)
	yunikornGroup = regexp.MustCompile(`^[_a-zA-Z][a-zA-Z0-9:_.-]*$`)
)

const (
	maxUser   = 256
	maxGroups = 64
)

// fit is a text of at most 63 bytes: a longer one is cut, and gets a part of its hash.
func fit(text string) string {
	if len(text) <= maxLabelValue {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	end := "-" + hex.EncodeToString(hash[:5])
	return strings.TrimRight(text[:maxLabelValue-len(end)], "-_.") + end
}

// check what the job says, before anything is written.
func (d Driver) check(job *Job) error {
	for _, c := range []struct {
		what         string
		asked, known bool
	}{
		{"a queue", job.Queue != "", d.queues},
		{"a quota", job.Quota != "" || len(job.Quotas) > 0 || job.NoQuota, d.Driver == "koord"},
		{"a priority class", job.PriorityClass != "", d.priorities},
		{"a run time", job.MaxRunTime != 0, d.limits},
		{"a job that is not preempted", job.NonPreemptible, d.nonPreemptible},
		{"a group of pods", job.PodGroup != nil, d.podGroups},
	} {
		if c.asked && !c.known {
			return fmt.Errorf("%s: %w by %s", c.what, ErrUnsupported, d.Driver)
		}
	}
	queue := job.Queue
	if d.isKoordPath(queue) {
		queue = "" // its elements are checked
	}
	for _, c := range []struct{ what, value string }{
		{"queue", queue}, {"quota", job.Quota}, {"priority class", job.PriorityClass},
	} {
		if problems := validation.IsValidLabelValue(c.value); len(problems) > 0 {
			return invalid(c.what, c.value, problems)
		}
	}
	if job.MaxRunTime < 0 || job.MaxRunTime%time.Second != 0 || job.MaxRunTime > maxSeconds*time.Second {
		return fmt.Errorf("run time %s: %w: want whole seconds", job.MaxRunTime, ErrInvalid)
	}
	if job.PriorityClass != "" {
		if err := checkName("priority class", job.PriorityClass); err != nil {
			return err
		}
	}
	return errors.Join(job.PodGroup.check(), job.Gang.check())
}

func (g *PodGroup) check() error {
	if g == nil {
		return nil
	}
	if err := checkName("group of pods", g.Name); err != nil {
		return err
	}
	if len(g.Name) > maxLabelValue || g.Size < 1 || g.Size > maxPodGroup {
		return fmt.Errorf("group of pods %.100q: %w: want a name of at most %d bytes, and 1 to %d pods", g.Name,
			ErrInvalid, maxLabelValue, maxPodGroup)
	}
	return nil
}

// maxPodGroup bounds the number of pods of a group.
const maxPodGroup = 100_000

// maxSeconds is the greatest number of seconds that the systems take.
const maxSeconds = 1<<31 - 1

// checkIdentity: gangs and applications are named by the object.
func (w *work) checkIdentity() error {
	what, name := "metadata.name", w.name()
	prefix := w.text("metadata", "generateName")
	if name == "" && prefix != "" && !w.driver.needsName && w.job.Gang == nil {
		what, name = "metadata.generateName", prefix+"x"
	}
	if err := checkName(what, name); err != nil {
		return err
	}
	if namespace := w.text("metadata", "namespace"); namespace != "" {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return invalid("metadata.namespace", namespace, problems)
		}
	}
	return nil
}

// checkName wants the name of an object.
func checkName(what, name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return invalid(what, name, problems)
	}
	return nil
}

func invalid(what, value string, problems []string) error {
	return fmt.Errorf("%s %.100q: %w: %s", what, value, ErrInvalid, strings.Join(problems, "; "))
}
