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
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

const yunikorn = "yunikorn.apache.org/"

// yunikornQueue is a part of the path of a queue.
var yunikornQueue = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func yunikornLabels(w *work) (own, pods Metadata, err error) {
	labels := map[string]string{yunikorn + "app-id": applicationOf(w)}
	if queue := w.job.Queue; queue != "" {
		for _, part := range strings.Split(queue, ".") {
			if !yunikornQueue.MatchString(part) {
				return own, pods, fmt.Errorf("queue %q: %w: part %q is no name of a queue", queue, ErrInvalid, part)
			}
		}
		labels[yunikorn+"queue"] = queue
	}
	annotations := map[string]string{}
	if w.job.User != "" {
		if annotations[yunikorn+"user.info"], err = w.job.yunikornUser(); err != nil {
			return own, pods, err
		}
	}
	if w.job.NonPreemptible {
		annotations[yunikorn+"allow-preemption"] = "false"
	}
	return Metadata{Labels: labels}, Metadata{Labels: labels, Annotations: annotations}, nil
}

// applicationOf is the name of the job for YuniKorn, which knows no namespaces: the namespace is a part of it. A dot
// divides the two, since a namespace has none.
func applicationOf(w *work) string {
	namespace := w.text("metadata", "namespace")
	if namespace == "" {
		return fit(w.name())
	}
	return fit(namespace + "." + w.name())
}

// yunikornUser is the identity as JSON.
func (j *Job) yunikornUser() (string, error) {
	if len(j.User) > maxUser || !yunikornUser.MatchString(j.User) {
		return "", fmt.Errorf("user %.100q: %w: YuniKorn takes no such name", j.User, ErrInvalid)
	}
	if len(j.Groups) > maxGroups {
		return "", fmt.Errorf("user %.100q: %w: %d groups, want at most %d", j.User, ErrInvalid, len(j.Groups), maxGroups)
	}
	for _, group := range j.Groups {
		if len(group) > maxUser || !yunikornGroup.MatchString(group) {
			return "", fmt.Errorf("group %.100q: %w: YuniKorn takes no such name", group, ErrInvalid)
		}
	}
	text, err := json.Marshal(struct {
		User   string   `json:"user"`
		Groups []string `json:"groups,omitempty"`
	}{j.User, j.Groups})
	return string(text), err
}

// taskGroup is one group of pods of an application.
type taskGroup struct {
	Name        string         `json:"name"`
	MinMember   int32          `json:"minMember"`
	MinResource map[string]any `json:"minResource"`
	// As in the spec of the pods, so that a placeholder gets a node that fits them.
	NodeSelector              any `json:"nodeSelector,omitempty"`
	Tolerations               any `json:"tolerations,omitempty"`
	Affinity                  any `json:"affinity,omitempty"`
	TopologySpreadConstraints any `json:"topologySpreadConstraints,omitempty"`
}

// yunikornGroups: every pod has the list of all groups, since YuniKorn reads that of the first pod which it sees. A
// group without pods is left out, which YuniKorn refuses; so is a group whose pods cannot be labelled.
func yunikornGroups(w *work) (map[string]Metadata, []Object, error) {
	groups, names := []taskGroup{}, map[string]string{}
	for i := range w.sets {
		s := &w.sets[i]
		if s.MinCount < 1 || !s.writable() {
			continue
		}
		request, err := s.request()
		if err != nil {
			return nil, nil, err
		}
		spec, _ := s.Template["spec"].(Object)
		names[s.Name] = taskGroupName(w, s)
		groups = append(groups, taskGroup{
			Name: names[s.Name], MinMember: s.MinCount, MinResource: request.object(),
			NodeSelector: spec["nodeSelector"], Tolerations: spec["tolerations"], Affinity: spec["affinity"],
			TopologySpreadConstraints: spec["topologySpreadConstraints"],
		})
	}
	if len(groups) == 0 {
		return nil, nil, nil
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", podset.ErrMalformed, err)
	}
	all := map[string]Metadata{}
	for set, name := range names {
		all[set] = Metadata{Annotations: map[string]string{
			yunikorn + "task-group-name": name, yunikorn + "task-groups": string(text),
			yunikorn + "schedulingPolicyParameters": w.job.Gang.String(),
		}}
	}
	return all, nil, nil
}

// taskGroupName is the name of the pod set. Those of Spark are the names that its operator gives.
func taskGroupName(w *work, s *PodSet) string {
	if w.kind.Kind == "SparkApplication" {
		return "spark-" + strings.TrimSuffix(s.Name, "s")
	}
	return s.Name
}
