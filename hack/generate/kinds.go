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
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/tenancy"
)

// kindsDir has a directory for each built-in kind of jobs, with the rights of both processes and the policies for
// tenants. The policies for batch Jobs are in manifests/components/tenancy. Policies of kindsDir refuse, and those of
// kindsWarnDir warn.
const (
	kindsDir     = "manifests/components/kinds"
	kindsWarnDir = "manifests/components/kinds-warn"
)

const kindKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- rights.yaml
`

const warnKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../kinds/%s
components:
- ../../tenancy-warn
`

const generatedHeader = "# Generated from the descriptors in pkg/submit/kinds by hack/generate.sh. DO NOT EDIT.\n"

// writeKinds writes both.
func writeKinds() error {
	if err := errors.Join(os.RemoveAll(kindsDir), os.RemoveAll(kindsWarnDir)); err != nil {
		return err
	}
	for _, kind := range jobkind.Builtin() {
		files, err := filesOf(&kind)
		if err != nil {
			return err
		}
		for file, text := range files {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(generatedHeader+text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesOf a kind, by path.
func filesOf(kind *jobkind.Kind) (map[string]string, error) {
	rights, err := kind.RightsManifest(kind.File())
	if err != nil {
		return nil, err
	}
	at := filepath.Join(kindsDir, kind.File())
	kustomization := filepath.Join(at, "kustomization.yaml")
	files := map[string]string{kustomization: kindKustomization, filepath.Join(at, "rights.yaml"): string(rights)}
	if kind.GVK.Group == "batch" {
		return files, nil
	}
	policies, err := tenancy.Manifest(kind, kind.File(), tenancy.Deny)
	if err != nil {
		return nil, err
	}
	files[filepath.Join(at, "tenancy.yaml")] = string(policies)
	files[kustomization] += "- tenancy.yaml\n"
	files[filepath.Join(kindsWarnDir, kind.File(), "kustomization.yaml")] = fmt.Sprintf(warnKustomization, kind.File())
	return files, nil
}
