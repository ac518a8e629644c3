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

// Command generate writes all files that follow from the API types and tables in the code. These are deep copies,
// CustomResourceDefinitions, alerts, the dashboard and pictures. It also writes the tables in docs/ between the markers
// <!-- generate:NAME --> and <!-- end generate -->. Run it from the root of the repository.
//
// The generators of controller-tools are called as a library. So go.mod has their version, and the module proxy is the
// only source.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/hack/generate/pictures"
)

const (
	headerFile = "hack/boilerplate.go.txt"
	crdDir     = "manifests/base/crd"
	treeDir    = "manifests/components/elasticquotatree"
	checkDir   = "manifests/components/admission-checks-crd"
	docsDir    = "docs"
	imageDir   = "docs/images"
	argsFile   = "apis/config/v1/types_jobqueueargs.go"

	// A definition that is cluster-autoscaler's, for tests.
	autoscalerDir = "test/harness/standin/autoscaler"

	// kustomize reads nothing above its own directory, so the manifests hold a copy.
	schedulerConfig     = "scheduler-config.yaml"
	schedulerConfigCopy = "manifests/components/scheduler/config.yaml"
)

func main() {
	docs := flag.Bool("docs", true, "rewrite the generated tables in docs/")
	flag.Parse()
	if err := run(*docs); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(docs bool) error {
	if err := deepCopies("./apis/..."); err != nil {
		return err
	}
	crds, err := definitions("./apis/scheduling/...")
	if err != nil {
		return err
	}
	if err := writeDefinitions(crdDir, crds); err != nil {
		return err
	}
	trees, err := definitions("./apis/quotatree/...")
	if err != nil {
		return err
	}
	if err := writeDefinitions(treeDir, trees); err != nil {
		return err
	}
	checks, err := definitions("./apis/kueue/...")
	if err != nil {
		return err
	}
	if err := writeDefinitions(checkDir, alsoIn("v1beta2", checks)); err != nil {
		return err
	}
	foreign, err := definitions("./apis/autoscaling/...")
	if err != nil {
		return err
	}
	if err := writeDefinitions(autoscalerDir, foreign); err != nil {
		return err
	}
	if err := writeKinds(); err != nil {
		return err
	}
	if err := writeMonitoring(monitoringDir); err != nil {
		return err
	}
	if err := writeConfigMap(schedulerConfig, schedulerConfigCopy); err != nil {
		return err
	}
	if !docs {
		return nil
	}
	if err := pictures.Write(imageDir, picturedSections()); err != nil {
		return err
	}
	return writeTables(append(crds, trees...))
}

// writeTables writes the generated sections of the documentation.
func writeTables(crds []definition) (err error) {
	all := tables(crds)
	for name, of := range map[string][2]string{
		"jobqueueargs": {argsFile, "JobQueueArgs"},
		"managed-jobs": {"internal/jobs/managedjobs/managed.go", "Jobs"},
		"controller":   {"apis/config/controller/v1alpha1/types.go", "ControllerConfiguration"},
	} {
		if all[name], err = structTable(of[0], of[1]); err != nil {
			return err
		}
	}
	if all["labels"], err = keyTable("apis/scheduling/v1alpha1/wellknown.go"); err != nil {
		return err
	}
	return rewriteTables(docsDir, all)
}

// writeConfigMap writes the ConfigMap that the scheduler mounts.
func writeConfigMap(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Generated from %s by hack/generate.sh. DO NOT EDIT.\napiVersion: v1\nkind: ConfigMap\n"+
		"metadata:\n  name: koord-jobqueue-scheduler\n  namespace: koordinator-system\ndata:\n  %s: |\n", from, from)
	for line := range strings.Lines(string(content)) {
		if line != "\n" {
			line = "    " + line
		}
		text.WriteString(line)
	}
	return os.WriteFile(to, []byte(text.String()), 0o644)
}
