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

// Command chart writes the Helm chart. It copies manifests/chart. Each resource of a kustomization of manifests/base or
// manifests/components becomes a template: the text of the file, with the edits and conditions for its path. Run it
// from the root of the repository.
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
	"reflect"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	controllerconfig "github.com/koord-jobqueue/koord-jobqueue/apis/config/controller/v1alpha1"
	pluginconfig "github.com/koord-jobqueue/koord-jobqueue/apis/config/v1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
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
	{"components/scheduler/*", ".Values.scheduler.enabled"},
	{"components/visibility/*", ".Values.visibility.enabled"},
	{"components/web/*", ".Values.web.enabled"},
	{"components/*/network.yaml", ".Values.networkPolicies.enabled"},
	{"components/*/disruption.yaml", ".Values.podDisruptionBudgets.enabled"},
}

const tenancyIsOn = `has .Values.tenancy.mode (list "enforce" "warn")`

const (
	managedJobs         = "base/controller/managed-jobs.yaml"
	config              = "base/controller/config.yaml"
	deployment          = "base/controller/deployment.yaml"
	schedulerConfig     = "components/scheduler/config.yaml"
	schedulerDeployment = "components/scheduler/deployment.yaml"
	webDeployment       = "components/web/deployment.yaml"
)

// notInTheChart has texts with braces, needs the definitions of the Prometheus operator, and is of no use without it.
const notInTheChart = "components/monitoring"

// edits are what values change in a file. Each must find something in every file that it names.
var edits = []struct {
	files string
	old   *regexp.Regexp
	with  string
}{
	{"base/admission/*", topMetadata, kept},
	{"base/crd/*", topMetadata, kept},
	{"base/namespaces/*", topMetadata, kept},
	{"components/admission-checks-crd/*", topMetadata, kept},
	{"components/elasticquotatree/scheduling*", topMetadata, kept},
	{"components/tenancy/[^a]*", validationActions, chosenActions}, // authors.yaml has no binding
	{"components/tenancy/account.yaml", validationActions, chosenActions},
	{"components/kinds/*/tenancy.yaml", validationActions, chosenActions},
	{"components/tenancy/authors.yaml", regexp.MustCompile(`(?s)\ndata:\n.*`),
		"\ndata:\n  {{- $$parameters := deepCopy .Values.tenancy.parameters }}\n" +
			"  {{- with .Values.managedJobs.schedulerNames }}" +
			"{{ $$_ := set $$parameters \"schedulers\" (join \"\\n\" .) }}{{ end }}\n" +
			"  {{- toYaml $$parameters | nindent 2 }}\n"},
	{managedJobs, regexp.MustCompile(`(?s)  managedJobs: .*`),
		strings.ReplaceAll(managedJobsOf(jobkind.Builtin()), "$", "$$")},
	{config, regexp.MustCompile(`\z`), "    {{- with .Values.controller.config }}{{ toYaml . | nindent 4 }}{{ end }}\n"},
	{schedulerConfig, regexp.MustCompile(`(?s)(  scheduler-config.yaml: \|\n)(.*)\z`),
		"$1    {{- if .Values.scheduler.config }}{{ .Values.scheduler.config | nindent 4 }}\n" +
			"    {{- else }}\n$2    {{- end }}\n"},
	{schedulerConfig, argsInConfig, "$1          {{- $$args := deepCopy .Values.scheduler.args }}\n" +
		"          {{- if not .Values.visibility.enabled }}\n" +
		"          {{- $$_ := set $$args \"visibility\" (dict \"port\" 0) }}\n          {{- end }}\n" +
		"          {{- toYaml $$args | nindent 10 }}\n$3"},
	{deployment, imageLine, imageOf("jobqueue-controller", "controller")},
	{deployment, replicasLine, "  replicas: {{ .Values.controller.replicas }}"},
	{deployment, resourcesBlock, resourcesOf("controller")},
	{deployment, podMetadata, restartedBy(".Values.controller.config")},
	{schedulerDeployment, imageLine, imageOf("koord-scheduler", "scheduler")},
	{schedulerDeployment, replicasLine, "  replicas: {{ .Values.scheduler.replicas }}"},
	{schedulerDeployment, resourcesBlock, resourcesOf("scheduler")},
	{schedulerDeployment, regexp.MustCompile(`(?m)^        env:$`),
		"        {{- with .Values.scheduler.flags }}{{ toYaml . | nindent 8 }}{{ end }}\n        env:"},
	{schedulerDeployment, regexp.MustCompile(`(?s)(- name: history\n)        emptyDir: \{\}\n`),
		"$1        {{- toYaml .Values.scheduler.historyVolume | nindent 8 }}\n"},
	{schedulerDeployment, podMetadata,
		restartedBy("list .Values.scheduler.args .Values.scheduler.config .Values.visibility")},
	{webDeployment, imageLine, imageOf("jobqueue-web", "web")},
	{webDeployment, replicasLine, "  replicas: {{ .Values.web.replicas }}"},
	{webDeployment, resourcesBlock, resourcesOf("web")},
	{webDeployment, regexp.MustCompile(`(?m)^        - --host=.*$`),
		"$0\n        {{- range .Values.web.hosts }}\n        - --host={{ . }}\n        {{- end }}"},
	{webDeployment, regexp.MustCompile(`secretName: .*`), "secretName: {{ .Values.web.tlsSecret }}"},
}

func imageOf(name, process string) string {
	return fmt.Sprintf("        image: {{ include \"image\" (list . %q .Values.%s.digest) }}", name, process)
}

func resourcesOf(process string) string {
	return "        resources:\n          {{- toYaml .Values." + process + ".resources | nindent 10 }}\n"
}

// restartedBy annotates pods with a hash of values. A change of these values restarts the pods.
func restartedBy(values string) string {
	return "    metadata:\n      annotations:\n        checksum/config: {{ " + values + " | toJson | sha256sum }}\n"
}

var (
	// argsInConfig are the arguments of the plugin in the configuration of the scheduler, after those before them.
	argsInConfig   = regexp.MustCompile(`(?s)(kind: JobQueueArgs\n)(.*?)(      - name: NodeResourcesFit\n)`)
	imageLine      = regexp.MustCompile(`(?m)^        image: .*$`)
	replicasLine   = regexp.MustCompile(`(?m)^  replicas: .*$`)
	resourcesBlock = regexp.MustCompile(`(?m)^        resources:\n(          .*\n)+`)
	podMetadata    = regexp.MustCompile(`(?m)^    metadata:\n`)

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
		completeSchema(filepath.Join(to, "values.schema.json")), setVersion(filepath.Join(to, "Chart.yaml"), version))
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
			text = e.old.ReplaceAllString(text, e.with)
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

	var jobs corev1.ConfigMap
	if err := read(manifests, managedJobs, &jobs); err != nil {
		return err
	}
	_, fields, ok := strings.Cut(jobs.Data[managedjobs.Key], "- Job.v1.batch\n")
	if !ok {
		return fmt.Errorf("%s does not list Job.v1.batch", managedJobs)
	}
	text.WriteString("\n# Which jobs of these kinds are managed. An entry of `kinds` here describes a further kind.\n" +
		"managedJobs:\n")
	indented(&text, "  ", fields)
	if err := addProcesses(manifests, &text); err != nil {
		return err
	}
	values, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(values, text.String()...), 0o644)
}

// addProcesses writes the values of controller, scheduler and page.
func addProcesses(manifests fs.FS, text *strings.Builder) error {
	text.WriteString("\ncontroller:\n  # Fields of its configuration file: docs/reference/configuration.md.\n" +
		"  config: {}\n")
	if err := addDeployment(manifests, deployment, text); err != nil {
		return err
	}
	shipped, err := fs.ReadFile(manifests, schedulerConfig)
	if err != nil {
		return err
	}
	args := argsInConfig.FindStringSubmatch(string(shipped))
	if args == nil {
		return fmt.Errorf("%s has no arguments of JobQueue", schedulerConfig)
	}
	text.WriteString("\n# The scheduler, next to Koordinator's: docs/operators/install.md.\nscheduler:\n" +
		"  # Without it, put the plugin into a scheduler of your own.\n  enabled: true\n" +
		"  # Further flags of koord-scheduler, such as --v=4.\n  flags: []\n" +
		"  # Where args.history.path is, at /var/lib/koord-queue, such as {persistentVolumeClaim: {claimName: history}}.\n" +
		"  historyVolume: {emptyDir: {}}\n" +
		"  # The text of a KubeSchedulerConfiguration in place of the shipped one and of args:\n" +
		"  # --set-file scheduler.config=FILE.\n" +
		"  config: \"\"\n" +
		"  # Arguments of the plugin JobQueue: docs/reference/configuration.md.\n  args:\n")
	for line := range strings.Lines(args[2]) {
		text.WriteString(strings.TrimPrefix(line, "      "))
	}
	if err := addDeployment(manifests, schedulerDeployment, text); err != nil {
		return err
	}
	text.WriteString("\n# The page in the cluster, behind a proxy that logs people in: docs/operators/web.md.\nweb:\n" +
		"  enabled: false\n" +
		"  # Names by which browsers or the proxy call the page, next to koord-jobqueue-web.koord-queue.svc.\n  hosts: []\n" +
		"  # Secret in koord-queue with the certificate of the page: tls.crt and tls.key.\n" +
		"  tlsSecret: koord-jobqueue-web\n")
	return addDeployment(manifests, webDeployment, text)
}

// addDeployment writes the values that are in a Deployment.
func addDeployment(manifests fs.FS, file string, text *strings.Builder) error {
	var d appsv1.Deployment
	if err := read(manifests, file, &d); err != nil {
		return err
	}
	raw, err := yaml.Marshal(map[string]any{
		"replicas": d.Spec.Replicas, "resources": d.Spec.Template.Spec.Containers[0].Resources,
	})
	if err != nil {
		return err
	}
	text.WriteString("  # Digest of the image, such as sha256:0123..., in place of the tag.\n  digest: \"\"\n")
	indented(text, "  ", string(raw))
	return nil
}

func indented(text *strings.Builder, by, of string) {
	for line := range strings.Lines(of) {
		text.WriteString(by + line)
	}
}

// completeSchema has the schema refuse other names of kinds, and fields and types that the processes do not know. A
// misspelled kind would stay off, and nobody would notice.
func completeSchema(file string) error {
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
	definitions := schema["definitions"].(map[string]any)
	definitions["controller"] = schemaOf(reflect.TypeFor[controllerconfig.ControllerConfiguration]())
	definitions["args"] = schemaOf(reflect.TypeFor[pluginconfig.JobQueueArgs]())
	schema["properties"].(map[string]any)["managedJobs"] = fieldsOf(reflect.TypeFor[managedjobs.Jobs]())
	if raw, err = json.MarshalIndent(schema, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

// fieldsOf is the JSON schema of a type that has other fields refused. The processes check what the fields hold.
func fieldsOf(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			properties[name] = map[string]any{}
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// schemaOf is the JSON schema of a type of configuration.
func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32:
		return map[string]any{"type": "integer"}
	case reflect.Float32:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		if t == reflect.TypeFor[metav1.Duration]() {
			return map[string]any{"type": "string"}
		}
		properties := map[string]any{}
		for i := range t.NumField() {
			field := t.Field(i)
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				properties[name] = schemaOf(field.Type)
			}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	default:
		panic("no schema for " + t.String())
	}
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
