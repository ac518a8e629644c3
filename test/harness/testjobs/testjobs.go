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

// Package testjobs has one small job of each kind, after the examples of its operator. It is for koord-scheduler, with
// pods of KWOK that say how long they run.
package testjobs

import (
	"embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed *.yaml
var files embed.FS

// Read reads a file, by its name without the ending; the job is the last object in it, and needs the others in its
// namespace.
func Read(name string) (others []*unstructured.Unstructured, job *unstructured.Unstructured, err error) {
	content, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, nil, err
	}
	for part := range strings.SplitSeq(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		others = append(others, object)
	}
	return others[:len(others)-1], others[len(others)-1], nil
}
