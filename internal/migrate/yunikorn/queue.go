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

// Package yunikorn converts queues.yaml of YuniKorn.
//
// Each queue below root becomes a quota: guaranteed is min, max is max. The right to submit becomes the right to use
// the quota.
package yunikorn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

type config struct {
	Partitions []partition `json:"partitions,omitempty"`
}

type partition struct {
	Name              string         `json:"name,omitempty"`
	Queues            []queue        `json:"queues,omitempty"`
	PlacementRules    []any          `json:"placementrules,omitempty"`
	Limits            []any          `json:"limits,omitempty"`
	NodeSortPolicy    map[string]any `json:"nodesortpolicy,omitempty"`
	Preemption        map[string]any `json:"preemption,omitempty"`
	StateDumpFilePath string         `json:"statedumpfilepath,omitempty"`
}

type queue struct {
	Name            string         `json:"name,omitempty"`
	Parent          bool           `json:"parent,omitempty"`
	Resources       amounts        `json:"resources,omitempty"`
	MaxApplications any            `json:"maxapplications,omitempty"`
	Properties      map[string]any `json:"properties,omitempty"`
	AdminACL        string         `json:"adminacl,omitempty"`
	SubmitACL       string         `json:"submitacl,omitempty"`
	ChildTemplate   map[string]any `json:"childtemplate,omitempty"`
	Queues          []queue        `json:"queues,omitempty"`
	Limits          []any          `json:"limits,omitempty"`
}

type amounts struct {
	Guaranteed document.Amounts `json:"guaranteed,omitempty"`
	Max        document.Amounts `json:"max,omitempty"`
}

// property of a queue as text; empty if it has none.
func (q *queue) property(name string) string {
	value, ok := q.Properties[name]
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}

// resources reads amounts of a queue. An unreadable amount is 0.
func resources(path, field string, given document.Amounts, out *finding.List) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		here := "resources." + field + "." + name
		wanted := name
		switch name {
		case "vcore":
			wanted = string(corev1.ResourceCPU)
		case string(corev1.ResourcePods):
			out.Add(finding.Warning, finding.ResourceNotCounted, path, here,
				"ElasticQuota does not count pods, so %v pods are no limit. koord-queue/max-jobs bounds the number of jobs.",
				given[name])
			continue
		}
		one, err := document.Amounts{wanted: given[name]}.Parse()
		if err != nil {
			out.Add(finding.Error, finding.InvalidAmount, path, here, "It counts as 0: %v", err)
			if one, err = (document.Amounts{wanted: int64(0)}).Parse(); err != nil {
				continue
			}
		}
		maps.Copy(list, one)
	}
	return list
}

// read finds the configuration in a document: the file itself, or a ConfigMap that has it.
func read(d document.Document, out *finding.List) []partition {
	documents := []document.Document{d}
	if d.Kind() == "ConfigMap" && d.Group() == "" {
		documents = nil
		data, _ := d.Content["data"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(data)) {
			text, _ := data[key].(string)
			if key == "queues.yaml" {
				documents = append(documents, document.Decode([]byte(text), out)...)
			} else {
				out.Add(finding.Info, finding.NotExpressed, d.Name(), "data."+key, "It is no configuration of queues.")
			}
		}
	} else if d.Kind() != "" {
		out.Add(finding.Info, finding.UnknownKind, d.Name(), "", "An object of kind %q is not migrated.", d.Kind())
		return nil
	}
	var partitions []partition
	for _, d := range documents {
		c := &config{}
		if d.Into(c, out) {
			partitions = append(partitions, c.Partitions...)
		}
	}
	return partitions
}

// source is the name of a queue in findings.
func source(path string) string { return "queue/" + path }

// isRoot says whether a queue is the one above all; names of queues have no case.
func isRoot(q *queue) bool { return strings.EqualFold(q.Name, "root") }
