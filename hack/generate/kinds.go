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
	"os"
	"path/filepath"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/tenancy"
)

// kindsDir has a directory for each built-in kind of jobs: what the two processes may do for it, and what tenants may
// say in such a job. For batch Jobs the latter is in manifests/components/tenancy.
const kindsDir = "manifests/components/kinds"

const kindKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- rights.yaml
`

const generatedHeader = "# Generated from the descriptors in pkg/submit/kinds by hack/generate.sh. DO NOT EDIT.\n"

// writeKinds writes them anew.
func writeKinds(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, kind := range jobkind.Builtin() {
		files, err := filesOf(&kind)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, kind.File())
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at, name), []byte(generatedHeader+text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesOf the directory of a kind, by name.
func filesOf(kind *jobkind.Kind) (map[string]string, error) {
	rights, err := kind.RightsManifest(kind.File())
	if err != nil {
		return nil, err
	}
	files := map[string]string{"kustomization.yaml": kindKustomization, "rights.yaml": string(rights)}
	if kind.GVK.Group == "batch" {
		return files, nil
	}
	policies, err := tenancy.Manifest(kind, kind.File())
	if err != nil {
		return nil, err
	}
	files["tenancy.yaml"] = string(policies)
	files["kustomization.yaml"] += "- tenancy.yaml\n"
	return files, nil
}
