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

// Command chart writes the Helm chart. It copies manifests/chart, and makes a template of each file that a
// kustomization of manifests/base or manifests/components lists under resources. The template is the text of the file,
// with the edits and inside the conditions of its path. It is run from the root of the repository.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
)

// conditions say which values install a file. A file has the conditions of all patterns that match its path.
// DIRECTORY is the name of its directory.
var conditions = []struct{ files, when string }{
	{"components/tenancy/*", tenancyIsOn},
	{"components/kinds/*/*", `(index .Values.kinds "DIRECTORY").enabled`},
	{"components/kinds/*/tenancy.yaml", tenancyIsOn},
	{"components/admission-checks/*", ".Values.admissionChecks.enabled"},
	{"components/admission-checks-crd/*", ".Values.admissionChecks.definitions"},
	{"components/elasticquotatree/*", ".Values.elasticQuotaTree.enabled"},
	{"components/reservations/*", ".Values.reservations.enabled"},
	{"components/visibility/*", ".Values.visibility.enabled"},
	{"components/*/network.yaml", ".Values.networkPolicies.enabled"},
	{"components/*/disruption.yaml", ".Values.podDisruptionBudgets.enabled"},
}

const tenancyIsOn = `has .Values.tenancy.mode (list "enforce" "warn")`

const (
	managedJobs = "base/controller/managed-jobs.yaml"
	deployment  = "base/controller/deployment.yaml"
)

// notInTheChart has texts with braces, needs the definitions of the Prometheus operator, and is of no use without it.
const notInTheChart = "components/monitoring"

// edits are what values change in a file. Each must find something in every file that it names.
var edits = []struct {
	files string
	old   *regexp.Regexp
	with  string
}{
	{"base/crd/*", topMetadata, kept},
	{"base/namespaces/*", topMetadata, kept},
	{"components/admission-checks-crd/*", topMetadata, kept},
	{"components/elasticquotatree/scheduling*", topMetadata, kept},
	{"components/tenancy/[^a]*", validationActions, chosenActions}, // authors.yaml has no binding
	{"components/tenancy/account.yaml", validationActions, chosenActions},
	{"components/kinds/*/tenancy.yaml", validationActions, chosenActions},
	{"components/tenancy/authors.yaml", regexp.MustCompile(`(?s)\ndata:\n.*`),
		"\ndata:\n  {{- toYaml .Values.tenancy.parameters | nindent 2 }}\n"},
	{managedJobs, regexp.MustCompile(`(?s)  managedJobs: .*`), managedJobsOf(jobkind.Builtin())},
	{deployment, regexp.MustCompile(`(?m)^  replicas: .*$`), "  replicas: {{ .Values.replicas }}"},
	{deployment, regexp.MustCompile(`(?m)^        image: .*$`), `        image: {{ include "image" . }}`},
	{deployment, regexp.MustCompile(`(?m)^        ports:$`), "        {{- if .Values.visibility.enabled }}\n" +
		"        - --visibility-secret=koordinator-system/koord-jobqueue-visibility\n        {{- end }}\n" +
		"        {{- if ne .Values.defaultReclaim \"Never\" }}\n" +
		"        - --default-reclaim={{ .Values.defaultReclaim }}\n        {{- end }}\n        ports:"},
	{deployment, regexp.MustCompile(`(?m)^        resources:\n(          .*\n)+`),
		"        resources:\n          {{- toYaml .Values.resources | nindent 10 }}\n"},
}

var (
	topMetadata       = regexp.MustCompile(`(?m)^metadata:\n(  annotations:\n)?`)
	validationActions = regexp.MustCompile(`validationActions: .*`)
)

const chosenActions = `validationActions: {{ include "validationActions" . }}`

// kept has Helm leave an object when it removes the rest.
const kept = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n"

// managedJobsOf is the configuration that both processes read: the kinds that are enabled, before those that
// .Values.managedJobs describes, and its other fields.
func managedJobsOf(kinds []jobkind.Kind) string {
	var text strings.Builder
	text.WriteString("  {{- $kinds := list }}\n")
	for i := range kinds {
		fmt.Fprintf(&text, "  {{- if (index .Values.kinds %q).enabled }}{{ $kinds = append $kinds %q }}{{ end }}\n",
			kinds[i].File(), kinds[i].String())
	}
	text.WriteString(`  {{- $kinds = concat $kinds (.Values.managedJobs.kinds | default list) }}
  {{- if not $kinds }}{{ fail "No kind of jobs is enabled. Enable one, such as --set kinds.job.enabled=true" }}{{ end }}
  managedJobs: |
    {{- set (deepCopy .Values.managedJobs) "kinds" $kinds | toYaml | nindent 4 }}
`)
	return text.String()
}

func main() {
	from := flag.String("manifests", "manifests", "the directory manifests")
	to := flag.String("out", "_artifacts/chart/koord-jobqueue", "the directory to write; it is replaced")
	version := flag.String("version", "v0.0.0-dev", "version of the chart, and default tag of the image")
	flag.Parse()
	if err := run(os.DirFS(*from), *to, *version); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(manifests fs.FS, to, version string) error {
	chart, err := fs.Sub(manifests, "chart")
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, chart)); err != nil {
		return err
	}
	files, err := resources(manifests)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := template(manifests, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name := strings.ReplaceAll(file, "/", "-")
		if err := os.WriteFile(filepath.Join(to, "templates", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(addValues(manifests, filepath.Join(to, "values.yaml")),
		nameKinds(filepath.Join(to, "values.schema.json")), setVersion(filepath.Join(to, "Chart.yaml"), version))
}

// resources are the files that kustomizations of base and components list. Patches are not among them.
func resources(manifests fs.FS) (files []string, err error) {
	for _, pattern := range []string{"base/*", "components/*", "components/kinds/*"} {
		found, err := fs.Glob(manifests, pattern+"/kustomization.yaml")
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if path.Dir(file) == notInTheChart {
				continue
			}
			var kustomization struct{ Resources []string }
			if err := read(manifests, file, &kustomization); err != nil {
				return nil, err
			}
			for _, r := range kustomization.Resources {
				files = append(files, path.Join(path.Dir(file), r))
			}
		}
	}
	return files, nil
}

// template is the text of a file as a template of the chart.
func template(manifests fs.FS, file string) (string, error) {
	raw, err := fs.ReadFile(manifests, file)
	if err != nil {
		return "", err
	}
	text := string(raw)
	if strings.Contains(text, "{{") {
		return "", errors.New("braces, which a template would read")
	}
	for _, e := range edits {
		if matches(e.files, file) {
			if !e.old.MatchString(text) {
				return "", fmt.Errorf("nothing matches %s", e.old)
			}
			text = e.old.ReplaceAllLiteralString(text, e.with)
		}
	}
	for _, c := range conditions {
		if matches(c.files, file) {
			when := strings.ReplaceAll(c.when, "DIRECTORY", path.Base(path.Dir(file)))
			text = "{{- if " + when + " }}\n" + text + "{{- end }}\n"
		}
	}
	return text, nil
}

func matches(pattern, file string) bool {
	ok, err := path.Match(pattern, file)
	if err != nil {
		panic(err) // the patterns are above
	}
	return ok
}

// addValues appends the values whose defaults are in the manifests.
func addValues(manifests fs.FS, to string) error {
	var text strings.Builder
	text.WriteString("\n# Kinds of jobs that are queued: docs/operators/kinds.md. Each brings its roles and policies.\n" +
		"kinds:\n")
	for _, kind := range jobkind.Builtin() {
		fmt.Fprintf(&text, "  %s:\n    enabled: %t\n", kind.File(), kind.File() == "job")
	}

	var config corev1.ConfigMap
	if err := read(manifests, managedJobs, &config); err != nil {
		return err
	}
	_, fields, ok := strings.Cut(config.Data[managedjobs.Key], "- Job.v1.batch\n")
	if !ok {
		return fmt.Errorf("%s does not list Job.v1.batch", managedJobs)
	}
	text.WriteString("\n# Which jobs of these kinds are managed. An entry of `kinds` here describes a further kind.\n" +
		"managedJobs:\n")
	for line := range strings.Lines(fields) {
		text.WriteString("  " + line)
	}

	var controller appsv1.Deployment
	if err := read(manifests, deployment, &controller); err != nil {
		return err
	}
	raw, err := yaml.Marshal(map[string]any{
		"replicas": controller.Spec.Replicas, "resources": controller.Spec.Template.Spec.Containers[0].Resources,
	})
	if err != nil {
		return err
	}
	text.WriteString("\n# Of the controller.\n" + string(raw))

	values, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(values, text.String()...), 0o644)
}

// nameKinds has the schema refuse other names of kinds. A misspelled kind would stay off, and nobody would notice.
func nameKinds(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var names []string
	for _, kind := range jobkind.Builtin() {
		names = append(names, kind.File())
	}
	kinds := schema["properties"].(map[string]any)["kinds"].(map[string]any)
	kinds["propertyNames"] = map[string]any{"enum": names}
	if raw, err = json.MarshalIndent(schema, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

func setVersion(file, version string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := strings.NewReplacer("\nversion: 0.0.0-dev", "\nversion: "+strings.TrimPrefix(version, "v"),
		"\nappVersion: 0.0.0-dev", "\nappVersion: "+version).Replace(string(raw))
	return os.WriteFile(file, []byte(text), 0o644)
}

func read(manifests fs.FS, file string, into any) error {
	raw, err := fs.ReadFile(manifests, file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
