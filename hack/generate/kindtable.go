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

package main

import (
	"fmt"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// proof says with what jobs of the built-in kinds were led through a queue, by the files of their descriptors.
var proof = map[string]string{
	"deployment":       "Kubernetes 1.35",
	"pod":              "Kubernetes 1.35",
	"jaxjob":           "training-operator v1.9.0",
	"job":              "Kubernetes 1.35",
	"jobset":           "JobSet v0.8.2",
	"leaderworkerset":  "stand-in",
	"mpijob-v1":        "training-operator v1.9.0",
	"mpijob-v2beta1":   "stand-in",
	"paddlejob":        "training-operator v1.9.0",
	"pytorchjob":       "training-operator v1.9.0",
	"raycluster":       "KubeRay v1.5.0",
	"rayjob":           "KubeRay v1.5.0",
	"sparkapplication": "stand-in",
	"statefulset":      "Kubernetes 1.35",
	"tfjob":            "training-operator v1.9.0",
	"trainjob":         "trainer v2.0.0, JobSet v0.8.2",
	"workflow":         "stand-in",
	"xgboostjob":       "training-operator v1.9.0",
}

func kindTable() string {
	var out strings.Builder
	out.WriteString("| kind, as in `kinds` | rights in `manifests/components/kinds` | suspended by | unit of job `j` " +
		"| tried with |\n")
	out.WriteString("|---|---|---|---|---|\n")
	for _, kind := range jobkind.Builtin() {
		suspended := "not: its pods wait in the scheduler"
		if kind.CanBeSuspended() {
			suspended = "`" + kind.SuspendField.String() + "`"
			if kind.KeepsPods() {
				suspended += ", pods that run go on"
			}
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | `%s` | %s |\n", &kind, kind.File(), suspended, kind.UnitName("j"),
			proof[kind.File()])
	}
	return out.String()
}
